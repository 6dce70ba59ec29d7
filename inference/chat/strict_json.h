// SPDX-License-Identifier: Apache-2.0
#pragma once

// JSON from people and programs, read without guessing: names given twice and numbers that would
// lose digits are errors. Any thread.

#include <string_view>

#include <nlohmann/json.hpp>

#include "kernels/base/result.h"

namespace belvedere::inference {

/// Errors: InvalidArgument with the place for invalid JSON, a name given twice, a whole number
/// beyond 64 bits, nesting over 100.
[[nodiscard]] Result<nlohmann::ordered_json> parseStrictJson(std::string_view text);

}  // namespace belvedere::inference
