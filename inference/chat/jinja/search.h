// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finding text in text in time linear in both, whatever they hold: a template chooses them, and the
// library's search is quadratic at its worst. Any thread. Source: Knuth, Morris, Pratt 1977, "Fast
// Pattern Matching in Strings".

#include <cstddef>
#include <string_view>

namespace belvedere::inference::jinja {

/// As std::string_view::find and rfind; npos when `part` is not there.
[[nodiscard]] size_t findBytes(std::string_view text, std::string_view part, size_t from = 0);
[[nodiscard]] size_t rfindBytes(std::string_view text, std::string_view part);

/// Bytes that such a search may be charged for, so that a step costs about the same time
/// everywhere.
[[nodiscard]] size_t searchCost(std::string_view text, std::string_view part);

}  // namespace belvedere::inference::jinja
