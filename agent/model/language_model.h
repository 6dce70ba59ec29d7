// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the loop needs of a model: tokens for a prompt, streamed text. Implemented by engine_model
// (our engine), later by HTTP clients. Methods may be called from any thread; generate() blocks the
// turn thread.

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/events.h"
#include "agent/message.h"
#include "agent/token_counter.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

/// How the model writes tool calls; chosen from its template or name.
enum class ToolCallFormat { None, Hermes, QwenXml, LlamaJson, MinimaxM2, MinimaxM3 };

struct ModelDescription {
    std::string name;
    std::string architecture;
    size_t window_tokens = 0;
    ToolCallFormat tool_calls = ToolCallFormat::Hermes;
    bool takes_images = false;
    bool has_native_tools = false;  ///< its template renders the tool list itself
    bool answers_with_citations =
        false;                         ///< trained on the repository prompt form: use it as it is
    bool starts_in_thinking = false;   ///< its template opens the reasoning in the prompt
    std::vector<std::string> notices;  ///< limits to be honest about
};

struct ToolSpec {
    std::string name;
    std::string description;
    Json parameters;
};

struct GenerationOptions {
    float temperature = 0.0F;
    uint32_t top_k = 0;
    float top_p = 1.0F;
    float min_p = 0.0F;
    float repetition_penalty = 1.0F;
    uint64_t seed = 0;
    size_t max_tokens = 1024;
};

struct ModelRequest {
    std::string
        conversation;  ///< key of the KV cache: requests of one conversation share their prefix
    std::vector<Message> messages;
    std::vector<ToolSpec> tools;
    GenerationOptions options;
};

/// Tokens of a request before it is sent; piece_tokens in the order of the pieces in the messages.
struct PromptCost {
    size_t n_tokens = 0;
    size_t n_cached = 0;
    size_t n_system = 0;
    size_t n_sources = 0;
    size_t n_conversation = 0;
    size_t n_tools = 0;
};

enum class ReplyEnd { EndOfTurn, MaxTokens, ContextFull, Cancelled };

struct ModelReply {
    ReplyEnd end = ReplyEnd::EndOfTurn;
    UsageUpdated usage;
};

class ModelSink {
  public:
    virtual ~ModelSink() = default;
    virtual void onPrefill(size_t n_done, size_t n_total) = 0;
    /// What the user should see and that is no error.
    virtual void onNotice(const std::string& text) = 0;
    virtual void onText(std::string_view text) = 0;  ///< whole UTF-8 characters, markers included
};

class LanguageModel {
  public:
    virtual ~LanguageModel() = default;

    [[nodiscard]] virtual const ModelDescription& description() const = 0;
    [[nodiscard]] virtual std::shared_ptr<const TokenCounter> tokenCounter() const = 0;

    /// Errors: those of the chat template.
    [[nodiscard]] virtual Result<PromptCost> measure(const ModelRequest& request) const = 0;

    /// Errors: InvalidArgument where the prompt exceeds the window, with the numbers; those of the
    /// engine or the connection.
    virtual Result<ModelReply> generate(const ModelRequest& request,
                                        ModelSink& sink,
                                        std::stop_token stop) = 0;
};

}  // namespace belvedere::agent
