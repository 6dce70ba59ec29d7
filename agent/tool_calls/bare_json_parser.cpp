// SPDX-License-Identifier: Apache-2.0
//
//     Start ---'{'---> Json ---a call---> Start (separators dropped) ...
//       '---else-------'--- no call ----> Text ---<|python_tag|>---> Start
#include "agent/tool_calls/bare_json_parser.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "agent/tool_calls/json_call.h"
#include "agent/tool_calls/markers.h"

namespace belvedere::agent {

namespace {

constexpr std::string_view kPythonTag = "<|python_tag|>";

class BareJsonParser : public ToolCallParser {
  public:
    BareJsonParser(BareJsonNames names,
                   std::vector<ToolSpec> tools,
                   std::unique_ptr<ToolCallParser> next)
        : names_(names), tools_(std::move(tools)), next_(std::move(next)) {}

    void feed(std::string_view chunk, ParserEvents& out) override {
        buffer_ += chunk;
        while (step(out)) {
        }
    }

    void finish(StreamEnd end, ParserEvents& out) override {
        is_last_ = true;
        feed({}, out);
        if (state_ == State::Json) {
            if (names_ == BareJsonNames::Any && looksLikeCall() != Match::No) {
                addMalformed(out, {}, json(),
                             end == StreamEnd::Cut ? "the reply ended inside the call"
                                                   : "the JSON of the call is not complete");
            } else {
                next_->feed(buffer_, out);
            }
        } else if (!has_calls_) {
            next_->feed(buffer_, out);
        }
        buffer_.clear();
        next_->finish(end, out);
    }

  private:
    enum class State { Start, Json, Text };

    bool step(ParserEvents& out) {
        return state_ == State::Start  ? stepStart(out)
               : state_ == State::Json ? stepJson(out)
                                       : stepText(out);
    }

    [[nodiscard]] std::string_view json() const { return std::string_view(buffer_).substr(begin_); }

    /// Looks past white space, the tag, and a code fence; between calls also past separators.
    bool stepStart(ParserEvents& out) {
        const std::string_view text = buffer_;
        size_t pos =
            std::min(text.find_first_not_of(has_calls_ ? " \t\r\n;,`" : " \t\r\n"), text.size());
        const bool allows_tag = names_ == BareJsonNames::Any;
        const Match tag = allows_tag ? matchPrefix(text.substr(pos), kPythonTag) : Match::No;
        if (tag == Match::Yes) {
            pos =
                std::min(text.find_first_not_of(kWhiteSpace, pos + kPythonTag.size()), text.size());
        }
        const bool in_fence = text.substr(pos).starts_with("```");
        if (in_fence) {
            const size_t line_end = text.find_first_of("\n{", pos);
            pos = std::min(line_end == std::string_view::npos
                               ? line_end
                               : text.find_first_not_of(kWhiteSpace, line_end),
                           text.size());
        }
        if (pos < text.size() && text[pos] == '{') {
            begin_ = pos;
            scan_ = pos;
            scanner_ = {};
            state_ = State::Json;
            return true;
        }
        const bool undecided = pos == text.size() || (tag != Match::Yes && tag == Match::Partial) ||
                               matchPrefix(text.substr(pos), "```") == Match::Partial;
        if (undecided && !is_last_ && text.size() <= kMaxSpaceBytes) {
            return false;
        }
        if (is_last_ && pos == text.size()) {
            return false;
        }
        return toText(out);
    }

    bool toText(ParserEvents& out) {
        state_ = State::Text;
        if (buffer_.starts_with(kPythonTag)) {
            buffer_.erase(
                0, kPythonTag.size());  // a built-in tool's code, which we do not run: show it
        }
        return stepText(out);
    }

    bool stepText(ParserEvents& out) {
        if (names_ == BareJsonNames::KnownTools) {
            next_->feed(std::exchange(buffer_, {}), out);
            return false;
        }
        const size_t tag = buffer_.find(kPythonTag);
        const size_t held =
            is_last_ || tag != std::string::npos ? 0 : partialMarkerBytes(buffer_, {kPythonTag});
        const size_t n_text = std::min(tag, buffer_.size() - held);
        next_->feed(std::string_view(buffer_).substr(0, n_text), out);
        buffer_.erase(0, n_text);
        if (tag == std::string::npos) {
            return false;
        }
        state_ = State::Start;
        return true;
    }

    /// Is the first name in the object one that calls begin with?
    [[nodiscard]] Match looksLikeCall() const {
        constexpr std::array<std::string_view, 7> kNames = {
            "name", "type", "function", "parameters", "arguments", "tool", "id"};
        const std::string_view text = json().substr(1);
        const size_t quote = text.find_first_not_of(kWhiteSpace);
        if (quote == std::string_view::npos) {
            return Match::Partial;
        }
        if (text[quote] != '"' && text[quote] != '\'') {
            return Match::No;
        }
        const std::string_view rest = text.substr(quote + 1);
        const size_t end = rest.find(text[quote]);
        const std::string_view name = rest.substr(0, end);
        for (const std::string_view known : kNames) {
            if (end == std::string_view::npos ? known.starts_with(name) : known == name) {
                return end == std::string_view::npos ? Match::Partial : Match::Yes;
            }
        }
        return Match::No;
    }

    bool stepJson(ParserEvents& out) {
        if (!is_call_like_) {
            const Match match = looksLikeCall();
            if (match == Match::No) {
                return toText(out);
            }
            is_call_like_ = match == Match::Yes;
        }
        while (scan_ < buffer_.size() && !scanner_.isComplete()) {
            if (!scanner_.advance(buffer_, scan_, is_last_)) {
                return false;
            }
        }
        if (buffer_.size() > kMaxCallBytes) {
            return toText(out);
        }
        return scanner_.isComplete() && endJson(out);
    }

    bool endJson(ParserEvents& out) {
        is_call_like_ = false;
        Result<std::vector<ToolCall>> calls =
            callsFromText(json().substr(0, scan_ - begin_), tools_);
        const bool is_call =
            calls.has_value() &&
            (names_ == BareJsonNames::Any ||
             std::all_of(calls->begin(), calls->end(), [this](const ToolCall& call) {
                 return findTool(tools_, call.name) != nullptr;
             }));
        if (!is_call) {
            return toText(out);
        }
        for (ToolCall& call : *calls) {
            ToolCall name_only;
            name_only.name = call.name;
            addCall(out, ParserEvent::Kind::CallStarted, std::move(name_only));
            addCall(out, ParserEvent::Kind::CallFinished, std::move(call));
        }
        buffer_.erase(0, scan_);
        has_calls_ = true;
        state_ = State::Start;
        return true;
    }

    const BareJsonNames names_;
    const std::vector<ToolSpec> tools_;
    std::unique_ptr<ToolCallParser> next_;
    State state_ = State::Start;
    std::string buffer_;
    size_t begin_ = 0;  ///< of the object in the buffer
    size_t scan_ = 0;   ///< how far scanner_ has looked
    JsonScanner scanner_;
    bool is_call_like_ = false;
    bool has_calls_ = false;
    bool is_last_ = false;
};

}  // namespace

std::unique_ptr<ToolCallParser> makeBareJsonParser(BareJsonNames names,
                                                   std::vector<ToolSpec> tools,
                                                   std::unique_ptr<ToolCallParser> next) {
    return std::make_unique<BareJsonParser>(names, std::move(tools), std::move(next));
}

}  // namespace belvedere::agent
