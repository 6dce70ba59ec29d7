// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/source_text.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/core.h>

namespace belvedere::tools {
namespace {

constexpr std::string_view kWhiteSpace = " \t\n\r\f\v";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool isContinuation(unsigned char c) {
    return (c & 0xC0) == 0x80;
}

/// Bytes of the well-formed sequence at `at` (Unicode 15, table 3-7), 0 where there is none.
size_t sequenceLength(std::string_view bytes, size_t at) {
    const auto byte = [&](size_t i) {
        return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U;
    };
    const unsigned lead = byte(0);
    const unsigned second = byte(1);
    const auto tail = [&](size_t i) { return isContinuation(static_cast<unsigned char>(byte(i))); };
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        return tail(1) ? 2 : 0;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        const bool overlong = lead == 0xE0 && second < 0xA0;
        const bool surrogate = lead == 0xED && second > 0x9F;
        return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        const bool overlong = lead == 0xF0 && second < 0x90;
        const bool too_high = lead == 0xF4 && second > 0x8F;
        return tail(1) && tail(2) && tail(3) && !overlong && !too_high ? 4 : 0;
    }
    return 0;
}

/// First position from `at` on that is not ASCII: eight bytes at a time, as most source is ASCII
/// throughout.
size_t skipAscii(std::string_view bytes, size_t at) {
    while (at + 8 <= bytes.size()) {
        uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, 8);
        if ((word & 0x8080808080808080ULL) != 0) {
            break;
        }
        at += 8;
    }
    while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) {
        ++at;
    }
    return at;
}

size_t lineOf(std::string_view bytes, size_t at) {
    return 1 + static_cast<size_t>(std::count(
                   bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

void dropCarriageReturns(std::string& text) {
    size_t to = text.find("\r\n");
    if (to == std::string::npos) {
        return;
    }
    for (size_t from = to; from < text.size(); ++from) {
        if (text[from] == '\r' && from + 1 < text.size() && text[from + 1] == '\n') {
            continue;
        }
        text[to++] = text[from];
    }
    text.resize(to);
}

}  // namespace

std::optional<SourceText> readSourceText(std::string_view bytes, size_t& first_bad_line) {
    if (bytes.starts_with(kByteOrderMark)) {
        bytes.remove_prefix(kByteOrderMark.size());
    }
    SourceText source;
    source.text.reserve(bytes.size());
    size_t begin = 0;  // start of the stretch not yet copied
    size_t at = 0;
    const size_t max_repaired = std::min(kMaxRepairedBytes, bytes.size() / kRepairedShare);
    while ((at = skipAscii(bytes, at)) < bytes.size()) {
        const size_t length = sequenceLength(bytes, at);
        if (length > 0) {
            at += length;
            continue;
        }
        if (source.n_repaired == 0) {
            first_bad_line = lineOf(bytes, at);
        }
        if (++source.n_repaired > max_repaired) {
            return std::nullopt;
        }
        source.text.append(bytes.substr(begin, at - begin)).append(kReplacement);
        begin = ++at;
    }
    source.text.append(bytes.substr(begin));
    dropCarriageReturns(source.text);
    source.text.resize(source.text.find_last_not_of(kWhiteSpace) +
                       1);  // npos + 1 is 0: nothing but white space
    return source;
}

std::vector<std::string_view> splitLines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

std::string pieceText(std::string_view path,
                      const std::vector<std::string_view>& lines,
                      const PieceLines& piece) {
    std::string text = fmt::format("\n### {}:{}-{}\n", path, piece.first_line, piece.last_line);
    for (size_t line = piece.first_line; line <= piece.last_line; ++line) {
        if (line > piece.first_line) {
            text += '\n';
        }
        text += lines[line - 1];
    }
    return text;
}

uint64_t contentHash(std::string_view bytes) {
    constexpr uint64_t kFactor = 0x9E3779B97F4A7C15ULL;  // 2^64 over the golden ratio, odd
    uint64_t hash = bytes.size() * kFactor + 1;
    const auto mix = [&hash](uint64_t word) { hash = std::rotl((hash ^ word) * kFactor, 29); };
    while (bytes.size() >= 8) {
        uint64_t word = 0;
        std::memcpy(&word, bytes.data(), 8);
        mix(word);
        bytes.remove_prefix(8);
    }
    uint64_t rest = 0;
    if (!bytes.empty()) {
        std::memcpy(&rest, bytes.data(), bytes.size());
    }
    mix(rest);
    mix(hash >> 32);
    return hash;
}

}  // namespace belvedere::tools
