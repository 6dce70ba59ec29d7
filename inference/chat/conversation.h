// SPDX-License-Identifier: Apache-2.0
#pragma once

// A conversation as the engine is given it, and its rendering through a chat template. Any thread.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "inference/chat/template.h"

namespace belvedere::inference {

enum class ChatPartKind { Text, Image, Video };

/// One piece of a message. Images and videos appear in the prompt as the template's placeholder, in
/// order.
struct ChatPart {
    ChatPartKind kind = ChatPartKind::Text;
    std::string text;     ///< UTF-8; empty unless kind is Text
    int64_t source = -1;  ///< id that the rendered text of this part carries, -1: none
};

struct ChatToolCall {
    std::string id;
    std::string name;
    nlohmann::ordered_json arguments = nlohmann::ordered_json::object();  ///< an object, parsed
};

struct ChatMessage {
    std::string role;  ///< system, user, assistant, tool, or what the template knows
    std::vector<ChatPart> content;
    std::optional<std::string>
        reasoning;  ///< assistant: shown to the template as reasoning_content
    std::vector<ChatToolCall> tool_calls;  ///< assistant
    std::string tool_call_id;              ///< tool: the call that this answers
    std::string tool_name;                 ///< tool: its name, which some templates print
};

struct ChatToolSpec {
    std::string name;
    std::string description;
    nlohmann::ordered_json parameters;  ///< JSON Schema of the arguments
};

struct ChatRequest {
    std::vector<ChatMessage> messages;
    std::vector<ChatToolSpec> tools;
    bool add_generation_prompt = true;  ///< end with the start of an assistant turn
    nlohmann::ordered_json variables =
        nlohmann::ordered_json::object();         ///< more of them, e.g. thinking_mode
    std::optional<std::chrono::sys_seconds> now;  ///< see RenderOptions
};

/// The prompt text of a request. A message whose parts are all text becomes one string; with an
/// image or a video it becomes a list of typed parts. `bos` and `eos` are trusted, everything else
/// that comes from the request is not. Errors: as ChatTemplate::render.
[[nodiscard]] Result<RenderedText> renderChat(const ChatTemplate& chat_template,
                                              const ChatRequest& request,
                                              std::string_view bos,
                                              std::string_view eos);

}  // namespace belvedere::inference
