// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/string_literal.h"

#include <charconv>
#include <cstddef>
#include <cstdint>

#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

/// Appends the point that n_digits hexadecimal digits at `at` name, and moves behind them.
[[nodiscard]] Result<void> readHex(std::string& out,
                                   std::string_view body,
                                   size_t& at,
                                   size_t n_digits) {
    const std::string_view digits = body.substr(at, n_digits);
    uint32_t point = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), point, 16);
    if (digits.size() < n_digits || parsed.ec != std::errc() ||
        parsed.ptr != digits.data() + digits.size()) {
        return fail(ErrorCode::Corrupt, "a string escape needs {} hexadecimal digits, found '{}'",
                    n_digits, digits);
    }
    if (point > 0x10FFFF) {
        return fail(ErrorCode::Corrupt, "a string escape names character {:x}, at most 10ffff",
                    point);
    }
    if (point >= 0xD800 && point < 0xE000) {
        return fail(ErrorCode::Unsupported, "a string escape names the surrogate {:x}", point);
    }
    appendPoint(out, point);
    at += n_digits;
    return {};
}

/// Up to three octal digits, the first at `at`.
void readOctal(std::string& out, std::string_view body, size_t& at) {
    char32_t point = 0;
    for (int i = 0; i < 3 && at < body.size() && body[at] >= '0' && body[at] <= '7'; ++i, ++at) {
        point = point * 8 + static_cast<char32_t>(body[at] - '0');
    }
    appendPoint(out, point);
}

/// The escape whose letter is at `at`.
[[nodiscard]] Result<void> readEscape(std::string& out, std::string_view body, size_t& at) {
    constexpr std::string_view kLetters = "\\'\"abfnrtv";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const char letter = body[at];
    if (const size_t known = kLetters.find(letter); known != std::string_view::npos) {
        out.push_back(kMeanings[known]);
        ++at;
        return {};
    }
    if (letter >= '0' && letter <= '7') {
        readOctal(out, body, at);
        return {};
    }
    if (letter == 'x' || letter == 'u' || letter == 'U') {
        ++at;
        return readHex(out, body, at, letter == 'x' ? 2 : (letter == 'u' ? 4 : 8));
    }
    if (letter == 'N') {
        return fail(ErrorCode::Unsupported, "a string names a character by \\N{{...}}");
    }
    if (letter == '\n') {  // a line that goes on
        ++at;
        return {};
    }
    out.push_back('\\');  // Python keeps the backslash of an unknown escape
    return {};
}

}  // namespace

Result<std::string> decodeStringLiteral(std::string_view body) {
    std::string out;
    out.reserve(body.size());
    size_t at = 0;
    while (at < body.size()) {
        if (body[at] != '\\' || at + 1 == body.size()) {
            out.push_back(body[at]);
            ++at;
            continue;
        }
        ++at;
        BV_TRY(readEscape(out, body, at));
    }
    return out;
}

}  // namespace belvedere::inference::jinja
