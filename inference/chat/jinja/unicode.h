// SPDX-License-Identifier: Apache-2.0
#pragma once

// UTF-8 and the character facts that Python's str methods show. Any thread.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace belvedere::inference::jinja {

/// Offset of the first byte that is not well-formed UTF-8 (RFC 3629: no surrogates, nothing over
/// U+10FFFF, shortest form).
[[nodiscard]] std::optional<size_t> findInvalidUtf8(std::string_view bytes);

/// The functions below take well-formed UTF-8.
[[nodiscard]] size_t countPoints(std::string_view bytes);

/// Byte offset of code point number `index`; bytes.size() when there are fewer.
[[nodiscard]] size_t offsetOfPoint(std::string_view bytes, size_t index);

/// Reads the code point at `offset` and moves the offset behind it. Requires offset < bytes.size().
[[nodiscard]] char32_t nextPoint(std::string_view bytes, size_t& offset);

/// Start of the code point that ends at `offset`. Requires offset > 0.
[[nodiscard]] size_t previousOffset(std::string_view bytes, size_t offset);

void appendPoint(std::string& out, char32_t point);

[[nodiscard]] bool isSpace(char32_t point);
[[nodiscard]] bool isPrintable(char32_t point);
[[nodiscard]] bool isCased(char32_t point);

[[nodiscard]] std::string toUpper(std::string_view bytes);
[[nodiscard]] std::string toLower(std::string_view bytes);
/// str.title(): the first cased letter after an uncased one becomes a title letter.
[[nodiscard]] std::string toTitle(std::string_view bytes);
/// str.capitalize(): the first letter becomes a title letter, the others lower case.
[[nodiscard]] std::string toCapitalized(std::string_view bytes);

}  // namespace belvedere::inference::jinja
