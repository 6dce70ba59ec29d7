// SPDX-License-Identifier: Apache-2.0
#pragma once

// Case and class of the code points from U+0080 up, as Python 3.11 (Unicode 14) sees them. Any
// thread.

#include <array>
#include <cstdint>
#include <span>

namespace belvedere::inference::jinja::tables {

/// first, first + step, ..., last map to themselves plus delta.
struct CaseRange {
    char32_t first;
    char32_t last;
    uint32_t step;
    int32_t delta;
};

/// A point that maps to up to three points; unused ones are 0.
struct CaseSpecial {
    char32_t point;
    std::array<char32_t, 3> to;
};

struct PointRange {
    char32_t first;
    char32_t last;
};

/// All tables ascend.
[[nodiscard]] std::span<const CaseRange> upperRanges();
[[nodiscard]] std::span<const CaseRange> lowerRanges();
[[nodiscard]] std::span<const CaseSpecial> upperSpecials();
[[nodiscard]] std::span<const CaseSpecial> lowerSpecials();
/// Where the title form differs from the upper form.
[[nodiscard]] std::span<const CaseSpecial> titleSpecials();
[[nodiscard]] std::span<const PointRange> unprintableRanges();
[[nodiscard]] std::span<const PointRange> casedRanges();
[[nodiscard]] std::span<const PointRange> caseIgnorableRanges();

}  // namespace belvedere::inference::jinja::tables
