// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/conversation.h"

#include <algorithm>
#include <utility>

namespace belvedere::inference {
namespace {

using Json = nlohmann::ordered_json;

[[nodiscard]] bool isText(const ChatPart& part) {
    return part.kind == ChatPartKind::Text;
}

void addRange(std::vector<SourcedText>& sources, const std::string& pointer, SourceRange range) {
    if (range.source < 0 || range.begin == range.end) {
        return;
    }
    if (sources.empty() || sources.back().json_pointer != pointer) {
        sources.push_back({pointer, {}});
    }
    sources.back().ranges.push_back(range);
}

/// Text parts only: one string. Else: a list of typed parts, as multimodal templates take them.
[[nodiscard]] Json contentOf(const ChatMessage& message,
                             const std::string& pointer,
                             std::vector<SourcedText>& sources) {
    if (std::ranges::all_of(message.content, isText)) {
        std::string text;
        for (const ChatPart& part : message.content) {
            addRange(sources, pointer, {text.size(), text.size() + part.text.size(), part.source});
            text += part.text;
        }
        return text;
    }
    Json parts = Json::array();
    for (const ChatPart& part : message.content) {
        if (isText(part)) {
            addRange(sources, fmt::format("{}/{}/text", pointer, parts.size()),
                     {0, part.text.size(), part.source});
            parts.push_back({{"type", "text"}, {"text", part.text}});
        } else {
            parts.push_back({{"type", part.kind == ChatPartKind::Image ? "image" : "video"}});
        }
    }
    return parts;
}

[[nodiscard]] Json callOf(const ChatToolCall& call) {
    Json json = Json::object();
    if (!call.id.empty()) {
        json["id"] = call.id;
    }
    json["type"] = "function";
    json["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    return json;
}

[[nodiscard]] Json messageOf(const ChatMessage& message,
                             size_t index,
                             std::vector<SourcedText>& sources) {
    Json json = Json::object();
    json["role"] = message.role;
    json["content"] = contentOf(message, fmt::format("/messages/{}/content", index), sources);
    if (message.reasoning.has_value()) {
        json["reasoning_content"] = *message.reasoning;
    }
    for (const ChatToolCall& call : message.tool_calls) {
        json["tool_calls"].push_back(callOf(call));
    }
    if (!message.tool_call_id.empty()) {
        json["tool_call_id"] = message.tool_call_id;
    }
    if (!message.tool_name.empty()) {
        json["name"] = message.tool_name;
    }
    return json;
}

[[nodiscard]] Json toolOf(const ChatToolSpec& tool) {
    Json function = Json::object();
    function["name"] = tool.name;
    function["description"] = tool.description;
    function["parameters"] = tool.parameters;
    return {{"type", "function"}, {"function", std::move(function)}};
}

[[nodiscard]] Result<void> checkRequest(const ChatRequest& request) {
    for (size_t i = 0; i < request.messages.size(); ++i) {
        for (const ChatToolCall& call : request.messages[i].tool_calls) {
            if (!call.arguments.is_object()) {
                return fail(ErrorCode::InvalidArgument,
                            "message {}: the arguments of tool call '{}' are {}, not an object", i,
                            call.name, call.arguments.type_name());
            }
        }
    }
    if (!request.variables.is_object() && !request.variables.is_null()) {
        return fail(ErrorCode::InvalidArgument,
                    "the template variables of a request must be an object");
    }
    return {};
}

}  // namespace

Result<RenderedText> renderChat(const ChatTemplate& chat_template,
                                const ChatRequest& request,
                                std::string_view bos,
                                std::string_view eos) {
    BV_TRY(checkRequest(request));
    RenderOptions options;
    options.now = request.now;
    Json variables = request.variables.is_null() ? Json::object() : request.variables;
    Json messages = Json::array();
    for (size_t i = 0; i < request.messages.size(); ++i) {
        messages.push_back(messageOf(request.messages[i], i, options.sources));
    }
    for (const ChatToolSpec& tool : request.tools) {  // without any, `tools` stays undefined
        variables["tools"].push_back(toolOf(tool));
    }
    variables["messages"] = std::move(messages);
    variables["add_generation_prompt"] = request.add_generation_prompt;
    variables["bos_token"] = bos;
    variables["eos_token"] = eos;
    return chat_template.render(variables, options);
}

}  // namespace belvedere::inference
