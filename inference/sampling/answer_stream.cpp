// SPDX-License-Identifier: Apache-2.0
#include "inference/sampling/answer_stream.h"

#include <algorithm>
#include <utility>

namespace belvedere::inference {
namespace {

/// Length of the longest end of `text` that begins `stop`, without being all of it.
size_t overlap(std::string_view text, std::string_view stop) {
    for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
        if (text.ends_with(stop.substr(0, n))) {
            return n;
        }
    }
    return 0;
}

}  // namespace

AnswerStream::AnswerStream(const Tokenizer& tokenizer,
                           std::vector<std::string> stop_strings,
                           bool show_special_tokens)
    : tokenizer_(tokenizer),
      stop_strings_(std::move(stop_strings)),
      show_special_tokens_(show_special_tokens) {}

bool AnswerStream::push(TokenId id) {
    if (show_special_tokens_ || !tokenizer_.hiddenFromUser(id)) {
        held_ += utf8_.push(tokenizer_.bytesOf(id));
    }
    return release(false);
}

bool AnswerStream::release(bool at_end) {
    if (stopped_) {
        return true;
    }
    size_t first = std::string::npos;
    size_t n_held = 0;
    for (const std::string& stop : stop_strings_) {
        if (stop.empty()) {
            continue;
        }
        first = std::min(first, held_.find(stop));
        n_held = std::max(n_held, overlap(held_, stop));
    }
    if (first != std::string::npos) {
        free_ += held_.substr(0, first);
        held_.clear();
        stopped_ = true;
        return true;
    }
    const size_t n_free = at_end ? held_.size() : held_.size() - n_held;
    free_ += held_.substr(0, n_free);
    held_.erase(0, n_free);
    return false;
}

std::string AnswerStream::take() {
    return std::exchange(free_, std::string());
}

void AnswerStream::finish() {
    if (!stopped_) {
        held_ += utf8_.flush();
        static_cast<void>(release(true));
    }
}

}  // namespace belvedere::inference
