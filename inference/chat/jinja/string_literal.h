// SPDX-License-Identifier: Apache-2.0
#pragma once

// What stands between the quotes of a string in a template, to its text. Any thread.
// Source: Python 3 language reference, 2.4.1 "String and Bytes literals" (escape sequences).

#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace belvedere::inference::jinja {

/// Errors: Corrupt for a broken escape; Unsupported for \N{...} and for escapes that name half a
/// surrogate pair.
[[nodiscard]] Result<std::string> decodeStringLiteral(std::string_view body);

}  // namespace belvedere::inference::jinja
