// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes of files and processes as text: what is UTF-8, where lines end, and a form that may be
// shown and stored as JSON. Pure functions; any thread.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace belvedere::tools {

/// Bytes of the UTF-8 character at the start, 0 where there is none (RFC 3629: no overlong forms,
/// no surrogates).
[[nodiscard]] size_t utf8CharacterBytes(std::string_view text);

/// Valid UTF-8 for people, models and JSON: bytes that are none and control characters except tab,
/// line feed and carriage return become \xNN.
struct ShownText {
    std::string text;
    size_t n_invalid_bytes = 0;  ///< not UTF-8
    size_t n_controls = 0;
};

[[nodiscard]] ShownText showText(std::string_view bytes);

[[nodiscard]] bool isUtf8(std::string_view bytes);

/// The longest start that ends with a whole character: what may be passed on while more is to come.
[[nodiscard]] size_t completeUtf8Bytes(std::string_view bytes);

/// At most max_bytes of UTF-8 text, cut between characters.
[[nodiscard]] std::string_view cutText(std::string_view text, size_t max_bytes);

/// A NUL byte: images, programs, UTF-16.
[[nodiscard]] bool isBinary(std::string_view bytes);

/// Lines with their ends ("\n" or "\r\n"); the last may have none. No lines for no bytes.
[[nodiscard]] std::vector<std::string_view> linesWithEnds(std::string_view bytes);

[[nodiscard]] std::string_view withoutLineEnd(std::string_view line);

struct LineEnds {
    size_t n_lf = 0;    ///< "\n" alone
    size_t n_crlf = 0;  ///< "\r\n"
};

[[nodiscard]] LineEnds countLineEnds(std::string_view bytes);

inline constexpr std::string_view kUtf8Bom = "\xEF\xBB\xBF";

}  // namespace belvedere::tools
