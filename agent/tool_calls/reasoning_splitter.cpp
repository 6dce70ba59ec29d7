// SPDX-License-Identifier: Apache-2.0
#include "agent/tool_calls/reasoning_splitter.h"

#include <utility>

#include "agent/tool_calls/markers.h"

namespace belvedere::agent {

ReasoningSplitter::ReasoningSplitter(ReasoningMarkers markers,
                                     bool starts_in_thinking,
                                     std::unique_ptr<ToolCallParser> answer)
    : markers_(markers),
      state_(starts_in_thinking ? State::Thinking : State::Start),
      answer_(std::move(answer)) {}

void ReasoningSplitter::feed(std::string_view chunk, ParserEvents& out) {
    if (state_ == State::Answer) {
        answer_->feed(chunk, out);
        return;
    }
    pending_ += chunk;
    while (state_ == State::Start ? stepStart() : state_ == State::Thinking && stepThinking(out)) {
    }
    if (state_ == State::Answer) {
        answer_->feed(std::exchange(pending_, {}), out);
    }
}

/// True where the state has changed.
bool ReasoningSplitter::stepStart() {
    const size_t begin = pending_.find_first_not_of(kWhiteSpace);
    if (begin == std::string::npos) {
        return false;
    }
    const std::string_view rest = std::string_view(pending_).substr(begin);
    const Match open = matchPrefix(rest, markers_.open);
    const Match close = matchPrefix(rest, markers_.close);
    if (open == Match::Yes || close == Match::Yes) {
        state_ = open == Match::Yes ? State::Thinking : State::Answer;
        pending_.erase(0, begin + (open == Match::Yes ? markers_.open : markers_.close).size());
        return true;
    }
    if (open == Match::Partial || close == Match::Partial) {
        return false;
    }
    state_ = State::Answer;
    return true;
}

/// True where a marker was found.
bool ReasoningSplitter::stepThinking(ParserEvents& out) {
    const MarkerHit hit =
        findFirst(pending_, {markers_.close, markers_.open, markers_.implicit_end});
    if (hit.pos == std::string_view::npos) {
        const size_t held =
            partialMarkerBytes(pending_, {markers_.close, markers_.open, markers_.implicit_end});
        addText(out, ParserEvent::Kind::Thinking,
                std::string_view(pending_).substr(0, pending_.size() - held));
        pending_.erase(0, pending_.size() - held);
        return false;
    }
    addText(out, ParserEvent::Kind::Thinking, std::string_view(pending_).substr(0, hit.pos));
    const bool is_implicit = hit.marker == markers_.implicit_end;
    pending_.erase(0, hit.pos + (is_implicit ? 0 : hit.marker.size()));
    if (hit.marker != markers_.open) {
        state_ = State::Answer;
    }
    return true;
}

void ReasoningSplitter::finish(StreamEnd end, ParserEvents& out) {
    if (state_ == State::Thinking) {
        addText(out, ParserEvent::Kind::Thinking, pending_);
    } else {
        answer_->feed(pending_, out);
    }
    pending_.clear();
    answer_->finish(end, out);
}

}  // namespace belvedere::agent
