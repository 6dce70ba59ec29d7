// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the inside of a block of calls with one element a parameter and unescaped values:
//
//     <invoke name="f"> <parameter name="k">value</parameter> </invoke>        MiniMax-M2
//     <function=f> <parameter=k>\nvalue\n</parameter> </function>              Qwen3-Coder
//
// As nothing in a value is escaped, a closing tag inside it ends the value only where what follows
// fits: another parameter, or the end of the call. One thread.

#include <string>
#include <string_view>
#include <vector>

#include "agent/tool_calls/parser.h"
#include "agent/tool_calls/schema.h"

namespace belvedere::agent {

struct XmlSpelling {
    std::string_view call_open;    ///< up to the name: "<function="
    std::string_view call_close;   ///< "</function>"
    std::string_view value_open;   ///< up to the name: "<parameter="
    std::string_view value_close;  ///< "</parameter>"
    std::string_view block_close;  ///< "</tool_call>"
    bool strips_newlines = false;  ///< one at each end of a value is layout
};

class XmlCallReader {
  public:
    XmlCallReader(XmlSpelling spelling, const std::vector<ToolSpec>& tools);

    /// The text begins behind the opening tag of the block.
    void feed(std::string_view chunk, ParserEvents& out);
    void finish(StreamEnd end, ParserEvents& out);

    /// The block is over; what follows it is in takeRest().
    [[nodiscard]] bool hasEnded() const { return state_ == State::Ended; }

    [[nodiscard]] std::string takeRest();

  private:
    enum class State { Between, InCall, InValue, InJson, Ended };
    enum class Tag { None, Undecided, CallOpen, CallClose, ValueOpen, BlockClose };

    [[nodiscard]] Tag tagAt(size_t pos) const;
    bool step(ParserEvents& out);
    bool stepBetween(Tag tag, ParserEvents& out);
    bool stepInCall(Tag tag, ParserEvents& out);
    bool stepInValue();
    bool stepInJson();
    [[nodiscard]] Tag tagAfterSpace(size_t pos) const;
    bool takeName(std::string_view open, std::string& name);
    bool beginCall(ParserEvents& out);
    void endCall(ParserEvents& out);
    void takeValue(size_t end, size_t n_tag);
    void skipGarbage();

    XmlSpelling spelling_;
    const std::vector<ToolSpec>& tools_;
    State state_ = State::Between;
    std::string buffer_;
    size_t scan_ = 0;       ///< of a value: no closing tag begins before it
    bool is_last_ = false;  ///< nothing will follow the buffer
    ToolCall call_;
    std::string key_;
    std::string failure_;  ///< why the current call is malformed; empty: it is not
    std::string raw_;      ///< of the current call, for a malformed one
    std::vector<NamedValue> values_;
};

}  // namespace belvedere::agent
