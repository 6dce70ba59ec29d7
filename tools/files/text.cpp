// SPDX-License-Identifier: Apache-2.0
#include "tools/files/text.h"

#include <algorithm>

#include <fmt/core.h>

namespace belvedere::tools {
namespace {

unsigned byteAt(std::string_view text, size_t i) {
    return static_cast<unsigned char>(text[i]);
}

/// Bytes that a character with this first byte has; 0: it starts none.
size_t announcedBytes(unsigned first) {
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xC2 && first <= 0xDF) {
        return 2;
    }
    if (first >= 0xE0 && first <= 0xEF) {
        return 3;
    }
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

/// May `second` follow `first`? Excludes overlong forms, surrogates and what lies above U+10FFFF.
bool isSecondByte(unsigned first, unsigned second) {
    switch (first) {
        case 0xE0:
            return second >= 0xA0 && second <= 0xBF;
        case 0xED:
            return second >= 0x80 && second <= 0x9F;
        case 0xF0:
            return second >= 0x90 && second <= 0xBF;
        case 0xF4:
            return second >= 0x80 && second <= 0x8F;
        default:
            return second >= 0x80 && second <= 0xBF;
    }
}

}  // namespace

size_t utf8CharacterBytes(std::string_view text) {
    if (text.empty()) {
        return 0;
    }
    const size_t n = announcedBytes(byteAt(text, 0));
    if (n == 0 || n > text.size() || (n > 1 && !isSecondByte(byteAt(text, 0), byteAt(text, 1)))) {
        return 0;
    }
    for (size_t i = 2; i < n; ++i) {
        if ((byteAt(text, i) & 0xC0) != 0x80) {
            return 0;
        }
    }
    return n;
}

ShownText showText(std::string_view bytes) {
    ShownText shown;
    shown.text.reserve(bytes.size());
    while (!bytes.empty()) {
        const size_t n = utf8CharacterBytes(bytes);
        const unsigned first = byteAt(bytes, 0);
        const bool is_control =
            n == 1 &&
            ((first < 0x20 && first != '\t' && first != '\n' && first != '\r') || first == 0x7F);
        if (n == 0 || is_control) {
            ++(n == 0 ? shown.n_invalid_bytes : shown.n_controls);
            shown.text += fmt::format("\\x{:02X}", first);
            bytes.remove_prefix(1);
        } else {
            shown.text.append(bytes.substr(0, n));
            bytes.remove_prefix(n);
        }
    }
    return shown;
}

bool isUtf8(std::string_view bytes) {
    while (!bytes.empty()) {
        const size_t n = utf8CharacterBytes(bytes);
        if (n == 0) {
            return false;
        }
        bytes.remove_prefix(n);
    }
    return true;
}

size_t completeUtf8Bytes(std::string_view bytes) {
    for (size_t back = 1; back <= std::min<size_t>(3, bytes.size()); ++back) {
        const size_t start = bytes.size() - back;
        const unsigned first = byteAt(bytes, start);
        if ((first & 0xC0) != 0x80) {  // not a continuation: the last character starts here
            return announcedBytes(first) > back ? start : bytes.size();
        }
    }
    return bytes.size();
}

std::string_view cutText(std::string_view text, size_t max_bytes) {
    if (text.size() <= max_bytes) {
        return text;
    }
    size_t n = max_bytes;
    while (n > 0 && (byteAt(text, n) & 0xC0) == 0x80) {
        --n;
    }
    return text.substr(0, n);
}

bool isBinary(std::string_view bytes) {
    return bytes.find('\0') != std::string_view::npos;
}

std::vector<std::string_view> linesWithEnds(std::string_view bytes) {
    std::vector<std::string_view> lines;
    while (!bytes.empty()) {
        const size_t end = bytes.find('\n');
        const size_t n = end == std::string_view::npos ? bytes.size() : end + 1;
        lines.push_back(bytes.substr(0, n));
        bytes.remove_prefix(n);
    }
    return lines;
}

std::string_view withoutLineEnd(std::string_view line) {
    if (line.ends_with('\n')) {
        line.remove_suffix(1);
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
    }
    return line;
}

LineEnds countLineEnds(std::string_view bytes) {
    LineEnds ends;
    for (size_t at = bytes.find('\n'); at != std::string_view::npos;
         at = bytes.find('\n', at + 1)) {
        ++(at > 0 && bytes[at - 1] == '\r' ? ends.n_crlf : ends.n_lf);
    }
    return ends;
}

}  // namespace belvedere::tools
