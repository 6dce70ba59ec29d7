// SPDX-License-Identifier: Apache-2.0
#pragma once

// One reply of the model as it arrives: text and reasoning go out as events at once, the answer so
// far is saved as a draft, tool calls are collected. Turn thread.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/events.h"
#include "agent/model/language_model.h"
#include "agent/tool_calls/parser.h"

namespace belvedere::agent {

struct ParsedCall {
    ToolCall call;       ///< without an id
    std::string reason;  ///< why it is malformed; empty: it is not
};

class TurnStream : public ModelSink {
  public:
    using Post = std::function<void(EventPayload)>;
    using NoticePost = std::function<void(std::string text)>;
    using SaveDraft = std::function<void(const std::string& text)>;

    TurnStream(const ParserOptions& options, Post post, NoticePost notice, SaveDraft save_draft);

    void onPrefill(size_t n_done, size_t n_total) override;
    void onNotice(const std::string& text) override;
    void onText(std::string_view text) override;

    void finish(StreamEnd end);

    [[nodiscard]] const std::string& text() const { return text_; }

    [[nodiscard]] const std::string& reasoning() const { return reasoning_; }

    [[nodiscard]] std::vector<ParsedCall> takeCalls() { return std::move(calls_); }

  private:
    void handle(ParserEvents& events);

    std::unique_ptr<ToolCallParser> parser_;
    Post post_;
    NoticePost notice_;
    SaveDraft save_draft_;
    std::string text_;
    std::string reasoning_;
    std::vector<ParsedCall> calls_;
    std::chrono::steady_clock::time_point next_draft_{};
};

}  // namespace belvedere::agent
