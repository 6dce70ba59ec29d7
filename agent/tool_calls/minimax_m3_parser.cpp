// SPDX-License-Identifier: Apache-2.0
//
// Two states, Text and Block. In a block frames_ is the stack of open elements: frames_[0] is the
// invoke, the last is the one whose text is being read. Elements are decoded when they close, so
// that depth costs no recursion.
#include "agent/tool_calls/minimax_m3_parser.h"

#include <algorithm>
#include <string>
#include <utility>

#include "agent/tool_calls/markers.h"
#include "agent/tool_calls/schema.h"

namespace belvedere::agent {

namespace {

constexpr std::string_view kMarker = kMinimaxM3Marker;
constexpr std::string_view kBareOpen = "<tool_call>";
constexpr std::string_view kInvoke = "invoke name=";
constexpr std::string_view kBareInvoke =
    "]<]minimax[>[<invoke name=";  // a block without its opening tag
constexpr size_t kMaxTagBytes = 1024;

class MinimaxM3Parser : public ToolCallParser {
  public:
    explicit MinimaxM3Parser(std::vector<ToolSpec> tools) : tools_(std::move(tools)) {}

    void feed(std::string_view chunk, ParserEvents& out) override {
        buffer_ += chunk;
        while (in_block_ ? stepBlock(out) : stepText(out)) {
        }
    }

    void finish(StreamEnd, ParserEvents& out) override {
        is_last_ = true;
        feed({}, out);
        if (in_block_ && !frames_.empty()) {
            fail("the reply ended inside the call");
            endInvoke(out);
        } else if (!in_block_) {
            addText(out, ParserEvent::Kind::Text, buffer_);
        }
        buffer_.clear();
    }

  private:
    struct Frame {
        std::string name;
        SchemaView schema;
        std::string text;
        std::vector<NamedValue> children;
    };

    void passText(size_t n_bytes, ParserEvents& out) {
        if (n_bytes > 0) {
            addText(out, ParserEvent::Kind::Text, std::string_view(buffer_).substr(0, n_bytes));
            last_char_ = buffer_[n_bytes - 1];
            buffer_.erase(0, n_bytes);
        }
    }

    bool stepText(ParserEvents& out) {
        const MarkerHit hit = findFirst(buffer_, {kMinimaxM3BlockOpen, kBareInvoke, kBareOpen});
        if (hit.pos == std::string_view::npos) {
            const size_t held =
                is_last_
                    ? 0
                    : partialMarkerBytes(buffer_, {kMinimaxM3BlockOpen, kBareInvoke, kBareOpen});
            passText(buffer_.size() - held, out);
            return false;
        }
        passText(hit.pos, out);
        if (hit.marker == kBareOpen) {
            const Match match = last_char_ == '\n' ? invokeFollows(kBareOpen.size()) : Match::No;
            if (match != Match::Yes) {
                if (match == Match::No || is_last_) {
                    passText(kBareOpen.size(), out);
                    return true;
                }
                return false;
            }
        }
        buffer_.erase(0, hit.marker == kBareInvoke ? 0 : hit.marker.size());
        in_block_ = true;
        return true;
    }

    /// Behind the opening tag that has lost its marker: only a call makes it one.
    [[nodiscard]] Match invokeFollows(size_t pos) const {
        const size_t next = std::min(buffer_.find_first_not_of(kWhiteSpace, pos), buffer_.size());
        if (next - pos > kMaxSpaceBytes) {
            return Match::No;
        }
        return matchPrefix(std::string_view(buffer_).substr(next), kBareInvoke);
    }

    /// Up to and with the next tag.
    bool stepBlock(ParserEvents& out) {
        const size_t pos = buffer_.find(kMarker);
        if (pos == std::string::npos) {
            takeText(buffer_.size() - (is_last_ ? 0 : partialMarkerBytes(buffer_, {kMarker})));
            return false;
        }
        takeText(pos);
        const size_t tag =
            std::min(buffer_.find_first_not_of(kWhiteSpace, kMarker.size()), buffer_.size());
        if (tag == buffer_.size() && !is_last_ && tag <= kMaxSpaceBytes) {
            return false;
        }
        const bool is_tag = tag < buffer_.size() && buffer_[tag] == '<';
        const size_t end = is_tag ? buffer_.find('>', tag) : std::string::npos;
        if (is_tag && end == std::string::npos && !is_last_ && buffer_.size() <= kMaxTagBytes) {
            return false;
        }
        if (end == std::string::npos) {
            // A marker without a tag. Straight behind <invoke ...> it is the trace of a parameter's
            // lost opening tag.
            const bool is_lost_tag =
                frames_.size() == 1 && frames_[0].children.empty() && frames_[0].text.empty();
            if (is_lost_tag) {
                buffer_.erase(0, kMarker.size());
            } else {
                takeText(kMarker.size());
            }
            return true;
        }
        const std::string name = buffer_.substr(tag + 1, end - tag - 1);
        keep(std::string_view(buffer_).substr(0, end + 1));
        buffer_.erase(0, end + 1);
        handleTag(name, out);
        return true;
    }

    /// Moves text into the open element; between calls it is white space or worth nothing.
    void takeText(size_t n_bytes) {
        const std::string_view text = std::string_view(buffer_).substr(0, n_bytes);
        keep(text);
        if (!frames_.empty() && failure_.empty()) {
            frames_.back().text += text;
            n_call_bytes_ += n_bytes;
            if (n_call_bytes_ > kMaxCallBytes) {
                fail("the call is too large");
            }
        }
        buffer_.erase(0, n_bytes);
    }

    void keep(std::string_view text) {
        if (!frames_.empty() && raw_.size() < kMaxKeptBytes) {
            raw_ += text.substr(0, kMaxKeptBytes);
        }
    }

    void fail(std::string reason) {
        if (failure_.empty()) {
            failure_ = std::move(reason);
            frames_.resize(1);  // free what was read: nothing of it will be used
            frames_[0].children.clear();
        }
    }

    void handleTag(const std::string& name, ParserEvents& out) {
        if (name.starts_with(kInvoke)) {
            closeInvoke(out);
            beginInvoke(std::string_view(name).substr(kInvoke.size()), out);
        } else if (name == "/invoke") {
            closeInvoke(out);
        } else if (name == "/tool_call" && !isOpen("tool_call")) {
            closeInvoke(out);
            in_block_ = false;
            last_char_ = '\n';
        } else if (frames_.empty() || !failure_.empty()) {
            // Outside a call, or inside one that is lost: wait for the next tag of the block.
        } else if (name.starts_with('/')) {
            closeElement(name.substr(1));
        } else {
            openElement(name);
        }
    }

    [[nodiscard]] bool isOpen(std::string_view name) const {
        return frames_.size() > 1 && frames_.back().name == name;
    }

    void beginInvoke(std::string_view quoted_name, ParserEvents& out) {
        std::string_view name = trimmed(quoted_name);
        if (name.size() >= 2 && (name.front() == '"' || name.front() == '\'') &&
            name.back() == name.front()) {
            name = name.substr(1, name.size() - 2);
        }
        Frame frame;
        frame.name = toolName(name, tools_);
        const ToolSpec* tool = findTool(tools_, frame.name);
        frame.schema = tool != nullptr ? SchemaView(tool->parameters) : SchemaView();
        ToolCall call;
        call.name = frame.name;
        addCall(out, ParserEvent::Kind::CallStarted, std::move(call));
        raw_ = std::string(kMarker) + "<" + std::string(kInvoke) + std::string(quoted_name) + ">";
        n_call_bytes_ = 0;
        failure_ = frame.name.empty() ? "the call has no name" : "";
        frames_.push_back(std::move(frame));
    }

    /// N</invoke>, or a tag that can only stand behind it.
    void closeInvoke(ParserEvents& out) {
        if (frames_.empty()) {
            return;
        }
        if (frames_.size() > 1) {
            fail("the parameter \"" + frames_[1].name + "\" is not closed");
        } else if (!trimmed(frames_[0].text).empty()) {
            fail("text outside the parameters");
        }
        endInvoke(out);
    }

    void endInvoke(ParserEvents& out) {
        if (failure_.empty()) {
            ToolCall call;
            call.name = frames_[0].name;
            call.arguments =
                valueFromChildren(std::move(frames_[0].children), {}, SchemaView(kObjectSchema));
            addCall(out, ParserEvent::Kind::CallFinished, std::move(call));
        } else {
            addMalformed(out, frames_[0].name, raw_, failure_);
        }
        frames_.clear();
        failure_.clear();
        raw_.clear();
    }

    void openElement(const std::string& name) {
        if (frames_.size() > kMaxCallDepth) {
            fail("nested deeper than " + std::to_string(kMaxCallDepth) + " levels");
            return;
        }
        const Frame& parent = frames_.back();
        Frame frame;
        frame.name = name;
        frame.schema = parent.schema.allows("array") && !parent.schema.allows("object")
                           ? parent.schema.items()
                           : parent.schema.property(name);
        if (!frame.schema.isKnown() && name == "item") {
            frame.schema = parent.schema.items();
        }
        frames_.push_back(std::move(frame));
    }

    void closeElement(const std::string& name) {
        if (frames_.size() > 1 && frames_.back().name == name) {
            Frame frame = std::move(frames_.back());
            frames_.pop_back();
            Json value = frame.children.empty() ? valueFromText(frame.text, frame.schema)
                                                : valueFromChildren(std::move(frame.children),
                                                                    frame.text, frame.schema);
            frames_.back().children.push_back({std::move(frame.name), std::move(value)});
            return;
        }
        Frame& invoke = frames_[0];
        if (frames_.size() == 1 && invoke.children.empty() && !trimmed(invoke.text).empty()) {
            // The first parameter has lost its opening tag: what was read so far is its value.
            const Json value = valueFromText(trimmed(invoke.text), invoke.schema.property(name));
            invoke.children.push_back({name, value});
            invoke.text.clear();
            return;
        }
        fail("the closing tag of \"" + name + "\" has no opening tag");
    }

    inline static const Json kObjectSchema = {{"type", "object"}};

    const std::vector<ToolSpec> tools_;
    bool in_block_ = false;
    bool is_last_ = false;
    char last_char_ = '\n';  ///< before the buffer, outside blocks
    std::string buffer_;
    std::vector<Frame> frames_;
    std::string failure_;  ///< why the open call is malformed; empty: it is not
    std::string raw_;      ///< of the open call, shortened
    size_t n_call_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ToolCallParser> makeMinimaxM3Parser(std::vector<ToolSpec> tools) {
    return std::make_unique<MinimaxM3Parser>(std::move(tools));
}

}  // namespace belvedere::agent
