// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds tool calls and reasoning in a model's streamed text. One parser reads one reply. The result
// does not depend on where the text is cut into chunks: what may be the start of a marker is held
// back until it is decided. One thread.
//
//     auto parser = makeToolCallParser({ToolCallFormat::Hermes, tools});
//     for (chunk : stream) { parser->feed(chunk, events); handle(events); }
//     parser->finish(StreamEnd::Complete, events);

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/message.h"
#include "agent/model/language_model.h"

namespace belvedere::agent {

struct ParserEvent {
    enum class Kind {
        Text,           ///< text: of the answer
        Thinking,       ///< text: of the reasoning
        CallStarted,    ///< call.name: the model is writing this call
        CallFinished,   ///< call: complete, without an id
        MalformedCall,  ///< text: as written, shortened; reason; call.name where it is known
    };
    Kind kind = Kind::Text;
    std::string text;
    std::string reason;
    ToolCall call;
};

using ParserEvents = std::vector<ParserEvent>;

enum class StreamEnd {
    Complete,  ///< the model ended its turn
    Cut,       ///< length limit, cancelled, error: what is open was not meant to end here
};

class ToolCallParser {
  public:
    virtual ~ToolCallParser() = default;

    /// Appends to `out`.
    virtual void feed(std::string_view chunk, ParserEvents& out) = 0;
    virtual void finish(StreamEnd end, ParserEvents& out) = 0;
};

struct ParserOptions {
    ToolCallFormat format = ToolCallFormat::None;  ///< None: reasoning only
    std::vector<ToolSpec> tools;                   ///< their schemas decide how values are read
    bool starts_in_thinking = false;    ///< the prompt ends with the opening tag of the reasoning
    bool has_minimax_thinking = false;  ///< <mm:think> instead of <think>
};

[[nodiscard]] std::unique_ptr<ToolCallParser> makeToolCallParser(const ParserOptions& options);

/// A call larger than this is malformed, and so is one nested deeper: the work for any output stays
/// bounded.
inline constexpr size_t kMaxCallBytes = size_t{8} << 20;
inline constexpr size_t kMaxCallDepth = 128;

// For the parsers themselves.

void addText(ParserEvents& out,
             ParserEvent::Kind kind,
             std::string_view text);  ///< joins with a last event of the kind
void addCall(ParserEvents& out, ParserEvent::Kind kind, ToolCall call);
void addMalformed(ParserEvents& out, std::string name, std::string_view raw, std::string reason);

/// "functions.read_file" -> "read_file", unless a tool has the long name.
[[nodiscard]] std::string toolName(std::string_view written, const std::vector<ToolSpec>& tools);

/// nullptr where no tool has the name.
[[nodiscard]] const ToolSpec* findTool(const std::vector<ToolSpec>& tools, std::string_view name);

}  // namespace belvedere::agent
