// SPDX-License-Identifier: Apache-2.0
//
//     Text ---opening tag---> Opened ---'{' or '['---> Json ---closing tag---> Text
//       ^---no call follows-----'  '----a call's tag--> Xml ---block ends-----> Text
#include "agent/tool_calls/tagged_parser.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "agent/tool_calls/json_call.h"
#include "agent/tool_calls/markers.h"
#include "agent/tool_calls/xml_call_reader.h"

namespace belvedere::agent {

namespace {

constexpr size_t kMaxRecoveries = 8;  // of blocks with a quote that never ends

constexpr XmlSpelling kQwenSpelling = {
    "<function=", "</function>", "<parameter=", "</parameter>", "</tool_call>", true};
constexpr XmlSpelling kMinimaxSpelling = {"<invoke name=",        "</invoke>",
                                          "<parameter name=",     "</parameter>",
                                          "</minimax:tool_call>", false};

class TaggedParser : public ToolCallParser {
  public:
    TaggedParser(TaggedFormat format, std::vector<ToolSpec> tools)
        : tools_(std::move(tools)),
          spelling_(format == TaggedFormat::MinimaxM2 ? kMinimaxSpelling : kQwenSpelling),
          block_open_(format == TaggedFormat::MinimaxM2 ? "<minimax:tool_call>" : "<tool_call>"),
          // Calls without a block around them: Qwen3-Coder leaves the first tag out at times.
          bare_open_(format == TaggedFormat::QwenXml ? kQwenSpelling.call_open
                                                     : std::string_view()),
          allows_json_(format != TaggedFormat::MinimaxM2) {}

    void feed(std::string_view chunk, ParserEvents& out) override {
        if (state_ == State::Xml) {
            feedXml(chunk, out);
        } else {
            buffer_ += chunk;
        }
        while (step(out)) {
        }
    }

    void finish(StreamEnd end, ParserEvents& out) override {
        is_last_ = true;
        feed({}, out);
        while (state_ == State::Json) {
            finishJson(end, out);
            while (step(out)) {
            }
        }
        if (state_ == State::Xml) {
            reader_->finish(end, out);
            emitText(reader_->takeRest(), out);
        }
        emitText(std::exchange(buffer_, {}), out);
    }

  private:
    enum class State { Text, Opened, Json, Xml };

    bool step(ParserEvents& out) {
        switch (state_) {
            case State::Text:
                return stepText(out);
            case State::Opened:
                return stepOpened(out);
            case State::Json:
                return stepJson(out);
            case State::Xml:
                return false;
        }
        return false;
    }

    void emitText(std::string_view text, ParserEvents& out) {
        if (!text.empty()) {
            addText(out, ParserEvent::Kind::Text, text);
            last_char_ = text.back();
        }
    }

    void passText(size_t n_bytes, ParserEvents& out) {
        emitText(std::string_view(buffer_).substr(0, n_bytes), out);
        buffer_.erase(0, n_bytes);
    }

    bool stepText(ParserEvents& out) {
        const MarkerHit hit = findFirst(buffer_, {block_open_, bare_open_});
        if (hit.pos == std::string_view::npos) {
            const size_t held =
                is_last_ ? 0 : partialMarkerBytes(buffer_, {block_open_, bare_open_});
            passText(buffer_.size() - held, out);
            return false;
        }
        passText(hit.pos, out);
        if (hit.marker == bare_open_ && last_char_ != '\n') {
            passText(bare_open_.size(), out);
            return true;
        }
        if (hit.marker == bare_open_) {
            beginXml(out);
        } else {
            state_ = State::Opened;
        }
        return true;
    }

    /// Decides by what follows the opening tag at the front of the buffer.
    bool stepOpened(ParserEvents& out) {
        const std::string_view rest = std::string_view(buffer_).substr(block_open_.size());
        const size_t begin = skipSpaceAndFence(rest);
        const std::string_view call = rest.substr(begin);
        const bool can_wait = !is_last_ && begin <= kMaxSpaceBytes;
        if (allows_json_ && (call.starts_with('{') || call.starts_with('['))) {
            buffer_.erase(0, block_open_.size() + begin);
            state_ = State::Json;
            scanner_ = {};
            pos_ = 0;
            complete_end_ = std::string::npos;
            return true;
        }
        const Match xml = matchPrefix(call, spelling_.call_open);
        if (xml == Match::Yes) {
            buffer_.erase(0, block_open_.size() + begin);
            beginXml(out);
            return true;
        }
        if (can_wait && (xml == Match::Partial || matchPrefix(call, "```") == Match::Partial ||
                         isOpenFence(call))) {
            return false;
        }
        state_ = State::Text;
        passText(block_open_.size(), out);
        return true;
    }

    /// "```json" without the end of its line yet.
    static bool isOpenFence(std::string_view text) {
        return text.starts_with("```") && text.find_first_of("\n{[") == std::string_view::npos;
    }

    static size_t skipSpaceAndFence(std::string_view text) {
        size_t pos = std::min(text.find_first_not_of(kWhiteSpace), text.size());
        if (text.substr(pos).starts_with("```")) {
            const size_t end = text.find_first_of("\n{[<", pos);
            if (end != std::string_view::npos) {
                pos = std::min(text.find_first_not_of(kWhiteSpace, end), text.size());
            }
        }
        return pos;
    }

    bool stepJson(ParserEvents& out) {
        while (pos_ < buffer_.size()) {
            const std::string_view rest = std::string_view(buffer_).substr(pos_);
            if (!scanner_.inString() && rest.front() == '<') {
                const Match close = matchPrefix(rest, spelling_.block_close);
                const Match next =
                    scanner_.isComplete() ? matchPrefix(rest, block_open_) : Match::No;
                if (close == Match::Yes || next == Match::Yes) {
                    endJson(pos_, close == Match::Yes ? spelling_.block_close.size() : 0, out);
                    return true;
                }
                if (!is_last_ && (close == Match::Partial || next == Match::Partial)) {
                    return false;
                }
            }
            if (!scanner_.advance(buffer_, pos_, is_last_)) {
                return false;
            }
            if (scanner_.isComplete() && complete_end_ == std::string::npos) {
                complete_end_ = pos_;
            }
        }
        if (buffer_.size() > kMaxCallBytes) {
            addMalformed(out, {}, buffer_, "the call is too large");
            buffer_.clear();
            state_ = State::Text;
        }
        return false;
    }

    /// The block is buffer_[0, end), with its closing tag behind it.
    void endJson(size_t end, size_t n_tag, ParserEvents& out) {
        const std::string_view body = std::string_view(buffer_).substr(0, end);
        Result<std::vector<ToolCall>> calls = callsFromText(body, tools_);
        if (calls.has_value()) {
            for (ToolCall& call : *calls) {
                ToolCall name_only;
                name_only.name = call.name;
                addCall(out, ParserEvent::Kind::CallStarted, std::move(name_only));
                addCall(out, ParserEvent::Kind::CallFinished, std::move(call));
            }
        } else {
            addMalformed(out, {}, body, calls.error().message);
        }
        buffer_.erase(0, end + n_tag);
        last_char_ = '\n';
        state_ = State::Text;
    }

    /// The stream has ended inside a block.
    void finishJson(StreamEnd end, ParserEvents& out) {
        const size_t closing_tag = buffer_.find(spelling_.block_close);
        if (scanner_.inString() && closing_tag != std::string::npos &&
            n_recoveries_++ < kMaxRecoveries) {
            endJson(closing_tag, spelling_.block_close.size(),
                    out);  // a quote that never ends has hidden it
        } else if (complete_end_ != std::string::npos &&
                   !callsFromText(buffer_, tools_).has_value()) {
            endJson(complete_end_, 0, out);  // the closing tag is missing, and text follows
        } else if (end == StreamEnd::Cut && !scanner_.isComplete()) {
            addMalformed(out, {}, buffer_, "the reply ended inside the call");
            buffer_.clear();
            state_ = State::Text;
        } else {
            endJson(buffer_.size(), 0, out);
        }
    }

    void beginXml(ParserEvents& out) {
        state_ = State::Xml;
        reader_.emplace(spelling_, tools_);
        feedXml(std::exchange(buffer_, {}), out);
    }

    void feedXml(std::string_view text, ParserEvents& out) {
        reader_->feed(text, out);
        if (reader_->hasEnded()) {
            buffer_ = reader_->takeRest();
            last_char_ = '\n';
            state_ = State::Text;
        }
    }

    const std::vector<ToolSpec> tools_;
    const XmlSpelling spelling_;
    const std::string_view block_open_;
    const std::string_view bare_open_;
    const bool allows_json_;
    State state_ = State::Text;
    std::string buffer_;
    char last_char_ = '\n';  ///< before the buffer; a reply begins like a line
    bool is_last_ = false;
    JsonScanner scanner_;
    size_t pos_ = 0;                           ///< how far scanner_ has looked
    size_t complete_end_ = std::string::npos;  ///< where the first JSON value of the block ended
    size_t n_recoveries_ = 0;
    std::optional<XmlCallReader> reader_;
};

}  // namespace

std::unique_ptr<ToolCallParser> makeTaggedParser(TaggedFormat format, std::vector<ToolSpec> tools) {
    return std::make_unique<TaggedParser>(format, std::move(tools));
}

}  // namespace belvedere::agent
