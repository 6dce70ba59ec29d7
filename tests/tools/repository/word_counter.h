// SPDX-License-Identifier: Apache-2.0
#pragma once

// A token counter for tests: one id per run of letters and digits, one per other byte. Different
// texts get different ids.

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "agent/token_counter.h"

namespace belvedere::testing {

class WordCounter final : public agent::TokenCounter {
  public:
    explicit WordCounter(std::string key = "words") : key_(std::move(key)) {}

    [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
        std::vector<int32_t> ids;
        bool in_word = false;
        for (const char c : text) {
            const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0;
            if (is_word && in_word) {
                ids.back() = (ids.back() * 31 + c) & 0xFFFF;
            } else {
                ids.push_back(c & 0xFF);
            }
            in_word = is_word;
        }
        return ids;
    }

    [[nodiscard]] std::string key() const override { return key_; }

  private:
    std::string key_;
};

}  // namespace belvedere::testing
