// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads JSON as models write it: trailing commas, single or typographic quotes, Python's True,
// False and None, raw newlines in strings. Everything that is valid JSON is read as such. Bounded:
// linear in the text, nesting up to kMaxCallDepth. Any thread.

#include <string_view>

#include "agent/message.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

struct LenientValue {
    Json value;
    size_t n_bytes = 0;  ///< used from the text, white space before the value included
};

/// One value at the start of the text; what follows is not looked at. Errors: InvalidArgument with
/// the byte offset.
[[nodiscard]] Result<LenientValue> readLenientJson(std::string_view text);

/// The opening quote at the start of `text` and the bytes it takes: ", ', or a typographic one; 0:
/// none.
[[nodiscard]] size_t openingQuoteBytes(std::string_view text);

/// Does the quote that `opening` began end at the start of `text`? The bytes it takes; 0: no.
[[nodiscard]] size_t closingQuoteBytes(std::string_view text, char opening);

}  // namespace belvedere::agent
