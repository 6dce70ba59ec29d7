// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unicode normalisation form C, for vocabularies whose tokenizer.json asks for it. Any thread.
// Source: Unicode Standard Annex #15; done by ICU.

#include <string>
#include <string_view>

namespace belvedere::inference {

/// `text` composed; bytes that are not UTF-8 stay as they are, and nothing composes across them.
[[nodiscard]] std::string composeNfc(std::string_view text);

}  // namespace belvedere::inference
