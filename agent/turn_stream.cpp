// SPDX-License-Identifier: Apache-2.0
#include "agent/turn_stream.h"

#include <utility>

namespace belvedere::agent {

namespace {

// How much of a streaming answer a crash may cost; the store writes no more often than this anyway.
constexpr std::chrono::milliseconds kDraftInterval{200};

}  // namespace

TurnStream::TurnStream(const ParserOptions& options,
                       Post post,
                       NoticePost notice,
                       SaveDraft save_draft)
    : parser_(makeToolCallParser(options)),
      post_(std::move(post)),
      notice_(std::move(notice)),
      save_draft_(std::move(save_draft)) {}

void TurnStream::onPrefill(size_t n_done, size_t n_total) {
    post_(PrefillProgress{n_done, n_total});
}

void TurnStream::onNotice(const std::string& text) {
    notice_(text);
}

void TurnStream::onText(std::string_view text) {
    ParserEvents events;
    parser_->feed(text, events);
    handle(events);
    const auto now = std::chrono::steady_clock::now();
    if (!text_.empty() && now >= next_draft_) {
        save_draft_(text_);
        next_draft_ = now + kDraftInterval;
    }
}

void TurnStream::finish(StreamEnd end) {
    ParserEvents events;
    parser_->finish(end, events);
    handle(events);
}

void TurnStream::handle(ParserEvents& events) {
    for (ParserEvent& event : events) {
        switch (event.kind) {
            case ParserEvent::Kind::Text:
                text_ += event.text;
                post_(TextDelta{std::move(event.text)});
                break;
            case ParserEvent::Kind::Thinking:
                reasoning_ += event.text;
                post_(ThinkingDelta{std::move(event.text)});
                break;
            case ParserEvent::Kind::CallStarted:
                break;  // shown when it is complete and decided
            case ParserEvent::Kind::CallFinished:
                calls_.push_back({std::move(event.call), {}});
                break;
            case ParserEvent::Kind::MalformedCall:
                event.call.arguments = {{"text", std::move(event.text)}};
                calls_.push_back({std::move(event.call), std::move(event.reason)});
                break;
        }
    }
}

}  // namespace belvedere::agent
