// SPDX-License-Identifier: Apache-2.0
#pragma once

// From sampled tokens to text that may be shown: whole UTF-8 characters, hidden markers left out,
// nothing from a stop string on. Text that could be the beginning of a stop string is held back
// until it is known. One answer, one thread.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inference/tokenizer/tokenizer.h"
#include "inference/tokenizer/utf8_stream.h"

namespace belvedere::inference {

class AnswerStream {
  public:
    AnswerStream(const Tokenizer& tokenizer,
                 std::vector<std::string> stop_strings,
                 bool show_special_tokens);

    /// Adds a token. True where its text completed a stop string: the answer ends there.
    [[nodiscard]] bool push(TokenId id);

    /// Text that is free to be shown now; empties it.
    [[nodiscard]] std::string take();

    /// The answer is over: frees what was held back.
    void finish();

  private:
    [[nodiscard]] bool release(bool at_end);

    const Tokenizer& tokenizer_;
    const std::vector<std::string> stop_strings_;
    const bool show_special_tokens_;
    Utf8Stream utf8_;
    std::string held_;  ///< could begin a stop string
    std::string free_;
    bool stopped_ = false;
};

}  // namespace belvedere::inference
