// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's own chat template, compiled once and rendered to prompt text that knows where each byte
// came from. The language is Jinja2 3.1 as model authors expect it: trim_blocks and lstrip_blocks
// on, loop controls, no HTML escaping, immutable values, raise_exception and strftime_now. It has
// no access to files, network, clock zone or process. A construct that is not supported is an error
// that names it and its line, never a different prompt. Immutable after compile(); any thread,
// several at once.
//
//     const ChatTemplate chat = BV_TRY(ChatTemplate::compile(source));
//     const RenderedText prompt = BV_TRY(chat.render(variables));

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/base/result.h"

namespace belvedere::inference {

namespace jinja {
struct Program;
}

/// A template is another party's program: every resource that it can use is bounded.
struct TemplateLimits {
    size_t max_steps = 8'000'000;         ///< evaluated nodes, plus one for each 128 bytes copied
    size_t max_output_bytes = 32U << 20;  ///< of the prompt, and of any text captured on the way
    size_t max_value_bytes = 256U << 20;  ///< estimate of all live values together
    size_t max_depth = 400;               ///< nested nodes and calls while rendering; nested values
};

/// A piece of the rendered text and where it came from.
struct RenderedSpan {
    size_t begin = 0;  ///< byte offsets into RenderedText::text, [begin, end)
    size_t end = 0;
    bool trusted = false;  ///< text of the template itself (special tokens allowed), not of an
                           ///< interpolated value
    int64_t source = -1;   ///< the id that the caller gave this text, -1: none

    friend bool operator==(const RenderedSpan&, const RenderedSpan&) = default;
};

struct RenderedText {
    std::string text;  ///< UTF-8
    std::vector<RenderedSpan>
        spans;  ///< cover the text in order, without gaps; equal neighbours are one span
};

/// Bytes [begin, end) of one string variable carry the id `source`.
struct SourceRange {
    size_t begin = 0;
    size_t end = 0;
    int64_t source = -1;
};

struct SourcedText {
    std::string json_pointer;  ///< of the string inside the variables, e.g. "/messages/0/content"
    std::vector<SourceRange> ranges;  ///< ascending, not overlapping
};

struct RenderOptions {
    std::vector<SourcedText> sources;
    /// Names of top-level variables whose strings may hold special tokens, like the template's own
    /// text.
    std::vector<std::string> trusted_variables = {"bos_token", "eos_token"};
    /// Wall-clock time that strftime_now shows; nullopt: the system's local time. Pin it to keep
    /// prompts reusable.
    std::optional<std::chrono::sys_seconds> now;
};

class ChatTemplate {
  public:
    /// `name` says in messages which template it is ("tokenizer.chat_template of m.gguf").
    /// Errors: Corrupt for a syntax error, Unsupported for a construct that is not implemented;
    /// both with the line.
    [[nodiscard]] static Result<ChatTemplate> compile(std::string_view source,
                                                      const TemplateLimits& limits = {},
                                                      std::string name = "chat template");

    /// variables: an object; its members are the template's variables, with Python's meaning of
    /// JSON. Errors: InvalidArgument when the template refuses the messages (raise_exception, wrong
    /// types, undefined values) or an
    ///         argument is wrong; Unsupported; Corrupt when a limit is passed.
    [[nodiscard]] Result<RenderedText> render(const nlohmann::ordered_json& variables,
                                              const RenderOptions& options = {}) const;

    [[nodiscard]] const std::string& name() const { return name_; }

    [[nodiscard]] const std::string& source() const { return source_; }

  private:
    ChatTemplate() = default;

    std::string name_;
    std::string source_;
    TemplateLimits limits_;
    std::shared_ptr<const jinja::Program>
        program_;  // shared by copies of this template, never changed
};

}  // namespace belvedere::inference
