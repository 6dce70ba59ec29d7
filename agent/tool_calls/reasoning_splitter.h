// SPDX-License-Identifier: Apache-2.0
#pragma once

// Splits a reply into reasoning and answer, and hands the answer to a parser of tool calls. By the
// rendered text, never by token ids, and never by looking at the prompt.
//
//     Start ---opener---> Thinking ---closer, or a tool call begins---> Answer
//       '-----closer (dropped), anything else (kept)--------------------^
//
// Only white space may stand before the opener. An opener inside reasoning is dropped; tags inside
// the answer are text. At the end of the stream open reasoning stays reasoning. Source: MiniMax-M3
// template and parsers; the same rules fit <think>.

#include <memory>
#include <string>
#include <string_view>

#include "agent/tool_calls/parser.h"

namespace belvedere::agent {

struct ReasoningMarkers {
    std::string_view open = "<think>";
    std::string_view close = "</think>";
    std::string_view implicit_end;  ///< stays in the answer; empty: none
};

class ReasoningSplitter : public ToolCallParser {
  public:
    ReasoningSplitter(ReasoningMarkers markers,
                      bool starts_in_thinking,
                      std::unique_ptr<ToolCallParser> answer);

    void feed(std::string_view chunk, ParserEvents& out) override;
    void finish(StreamEnd end, ParserEvents& out) override;

  private:
    enum class State { Start, Thinking, Answer };

    bool stepStart();
    bool stepThinking(ParserEvents& out);

    ReasoningMarkers markers_;
    State state_;
    std::string pending_;
    std::unique_ptr<ToolCallParser> answer_;
};

}  // namespace belvedere::agent
