// SPDX-License-Identifier: Apache-2.0
#include "agent/tool_calls/xml_call_reader.h"

#include <algorithm>
#include <utility>

#include "agent/tool_calls/json_call.h"
#include "agent/tool_calls/lenient_json.h"
#include "agent/tool_calls/markers.h"

namespace belvedere::agent {

namespace {

constexpr size_t kMaxNameBytes = 512;

}  // namespace

XmlCallReader::XmlCallReader(XmlSpelling spelling, const std::vector<ToolSpec>& tools)
    : spelling_(spelling), tools_(tools) {}

std::string XmlCallReader::takeRest() {
    return std::exchange(buffer_, {});
}

void XmlCallReader::feed(std::string_view chunk, ParserEvents& out) {
    buffer_ += chunk;
    if (state_ != State::Between && raw_.size() < kMaxKeptBytes) {
        raw_ += chunk.substr(0, kMaxKeptBytes);
    }
    while (state_ != State::Ended && step(out)) {
    }
}

XmlCallReader::Tag XmlCallReader::tagAt(size_t pos) const {
    const std::string_view rest = std::string_view(buffer_).substr(pos);
    if (rest.empty()) {
        return is_last_ ? Tag::None : Tag::Undecided;
    }

    struct Candidate {
        std::string_view text;
        Tag tag;
    };

    const Candidate candidates[] = {{spelling_.value_open, Tag::ValueOpen},
                                    {spelling_.call_close, Tag::CallClose},
                                    {spelling_.call_open, Tag::CallOpen},
                                    {spelling_.block_close, Tag::BlockClose}};
    bool is_partial = false;
    for (const Candidate& candidate : candidates) {
        const Match match = matchPrefix(rest, candidate.text);
        if (match == Match::Yes) {
            return candidate.tag;
        }
        is_partial = is_partial || match == Match::Partial;
    }
    return is_partial && !is_last_ ? Tag::Undecided : Tag::None;
}

XmlCallReader::Tag XmlCallReader::tagAfterSpace(size_t pos) const {
    const size_t next = std::min(buffer_.find_first_not_of(kWhiteSpace, pos), buffer_.size());
    return next - pos > kMaxSpaceBytes ? Tag::None : tagAt(next);
}

/// One piece of the text; false: more is needed.
bool XmlCallReader::step(ParserEvents& out) {
    if (state_ == State::InValue) {
        return stepInValue();
    }
    if (state_ == State::InJson) {
        return stepInJson();
    }
    buffer_.erase(0, std::min(buffer_.find_first_not_of(kWhiteSpace), buffer_.size()));
    if (buffer_.empty()) {
        return false;
    }
    const Tag tag = tagAt(0);
    if (tag == Tag::Undecided) {
        return false;
    }
    return state_ == State::Between ? stepBetween(tag, out) : stepInCall(tag, out);
}

bool XmlCallReader::stepBetween(Tag tag, ParserEvents& out) {
    if (tag == Tag::CallOpen) {
        return beginCall(out);
    }
    if (tag == Tag::BlockClose) {
        buffer_.erase(0, spelling_.block_close.size());
    }
    state_ = State::Ended;  // anything else: the closing tag is missing
    return false;
}

bool XmlCallReader::stepInCall(Tag tag, ParserEvents& out) {
    switch (tag) {
        case Tag::ValueOpen:
            if (!takeName(spelling_.value_open, key_)) {
                return false;
            }
            state_ = State::InValue;
            scan_ = 0;
            return true;
        case Tag::CallClose:
            buffer_.erase(0, spelling_.call_close.size());
            endCall(out);
            return true;
        case Tag::CallOpen:  // the closing tag of this call is missing
        case Tag::BlockClose:
            endCall(out);
            return true;
        default:
            break;
    }
    if (buffer_.front() == '{' && values_.empty()) {
        state_ = State::InJson;
        scan_ = 0;
        return true;
    }
    failure_ = "text where a parameter or the end of the call was expected";
    skipGarbage();
    return true;
}

/// The arguments as one JSON object between the tags of the call, which some models write.
bool XmlCallReader::stepInJson() {
    const size_t close = buffer_.find(spelling_.call_close, scan_);
    if (close == std::string::npos && !is_last_) {
        scan_ = buffer_.size() - std::min(buffer_.size(), spelling_.call_close.size() - 1);
        if (buffer_.size() <= kMaxCallBytes) {
            return false;
        }
    }
    const size_t end = std::min(close, buffer_.size());
    const Result<LenientValue> read = readLenientJson(std::string_view(buffer_).substr(0, end));
    if (close == std::string::npos) {
        failure_ = "the call is not closed";
    } else if (!read.has_value() || !read->value.is_object()) {
        failure_ = read.has_value() ? "the arguments are not an object" : read.error().message;
    } else {
        call_.arguments = read->value;
        if (const ToolSpec* tool = findTool(tools_, call_.name)) {
            coerceArguments(call_.arguments, tool->parameters);
        }
    }
    buffer_.erase(0, end);
    state_ = State::InCall;
    return true;
}

bool XmlCallReader::stepInValue() {
    const std::string_view text = buffer_;
    const MarkerHit hit = findFirst(text, {spelling_.value_close, spelling_.call_close}, scan_);
    if (hit.pos == std::string_view::npos) {
        const size_t longest = std::max(spelling_.value_close.size(), spelling_.call_close.size());
        scan_ = std::max(scan_, text.size() - std::min(text.size(), longest - 1));
        if (text.size() > kMaxCallBytes) {
            failure_ = "a parameter is larger than a call may be";
            takeValue(text.size(), 0);
            return true;
        }
        return false;
    }
    const Tag next = tagAfterSpace(hit.pos + hit.marker.size());
    if (next == Tag::Undecided) {
        return false;
    }
    const bool at_end = is_last_ && trimmed(text.substr(hit.pos + hit.marker.size())).empty();
    if (hit.marker == spelling_.value_close && (next != Tag::None || at_end)) {
        takeValue(hit.pos, hit.marker.size());
    } else if (hit.marker == spelling_.call_close && (next == Tag::BlockClose || at_end)) {
        takeValue(hit.pos, 0);  // the closing tag of the value is missing
    } else {
        scan_ = hit.pos + 1;
    }
    return true;
}

/// buffer_[0, end) is the value, n_tag bytes behind it its closing tag.
void XmlCallReader::takeValue(size_t end, size_t n_tag) {
    std::string_view text = std::string_view(buffer_).substr(0, end);
    if (spelling_.strips_newlines) {
        if (text.starts_with('\n')) {
            text.remove_prefix(1);
        }
        if (text.ends_with('\n')) {
            text.remove_suffix(1);
        }
    }
    const ToolSpec* tool = findTool(tools_, call_.name);
    const SchemaView schema =
        tool == nullptr ? SchemaView() : SchemaView(tool->parameters).property(key_);
    values_.push_back({key_, valueFromText(text, schema)});
    buffer_.erase(0, end + n_tag);
    state_ = State::InCall;
}

/// "<invoke name="f">": the name, quotes removed. False: '>' has not arrived.
bool XmlCallReader::takeName(std::string_view open, std::string& name) {
    const size_t end = buffer_.find('>', open.size());
    if (end == std::string::npos) {
        if (buffer_.size() <= open.size() + kMaxNameBytes) {
            return false;
        }
        failure_ = "a tag is not closed";
        name.clear();
        buffer_.erase(0, open.size());
        return true;
    }
    std::string_view text =
        trimmed(std::string_view(buffer_).substr(open.size(), end - open.size()));
    if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
        text.back() == text.front()) {
        text = text.substr(1, text.size() - 2);
    }
    name = text;
    buffer_.erase(0, end + 1);
    return true;
}

bool XmlCallReader::beginCall(ParserEvents& out) {
    std::string kept = buffer_.substr(0, kMaxKeptBytes);
    std::string name;
    if (!takeName(spelling_.call_open, name)) {
        return false;
    }
    raw_ = std::move(kept);
    call_ = {};
    call_.name = toolName(name, tools_);
    if (call_.name.empty()) {
        failure_ = "the call has no name";
    }
    addCall(out, ParserEvent::Kind::CallStarted, call_);
    state_ = State::InCall;
    return true;
}

void XmlCallReader::endCall(ParserEvents& out) {
    if (!failure_.empty()) {
        addMalformed(out, call_.name, raw_, failure_);
    } else {
        if (!values_.empty()) {
            call_.arguments =
                valueFromChildren(std::move(values_), {}, SchemaView(Json{{"type", "object"}}));
        }
        addCall(out, ParserEvent::Kind::CallFinished, std::move(call_));
    }
    values_.clear();
    failure_.clear();
    raw_.clear();
    state_ = State::Between;
}

void XmlCallReader::skipGarbage() {
    buffer_.erase(0, std::min(buffer_.find('<', 1), buffer_.size()));
}

void XmlCallReader::finish(StreamEnd end, ParserEvents& out) {
    is_last_ = true;
    feed({}, out);
    if (state_ == State::Between || state_ == State::Ended) {
        return;
    }
    // Without the closing tag of the call: whole only where the model ended its turn behind a whole
    // parameter.
    if (state_ != State::InCall || end == StreamEnd::Cut || values_.empty()) {
        failure_ = "the reply ended inside the call";
    }
    endCall(out);
}

}  // namespace belvedere::agent
