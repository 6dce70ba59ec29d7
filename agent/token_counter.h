// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts and splits text with the loaded model's tokenizer, so that tools need no inference.
// Implemented beside engine_model. Any thread, many at once.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belvedere::agent {

class TokenCounter {
  public:
    virtual ~TokenCounter() = default;

    /// Ids of plain text: nothing in it becomes a special token, no BOS or EOS.
    [[nodiscard]] virtual std::vector<int32_t> encode(std::string_view text) const = 0;

    /// Differs when the ids of some text would differ: the key of stored token counts.
    [[nodiscard]] virtual std::string key() const = 0;
};

}  // namespace belvedere::agent
