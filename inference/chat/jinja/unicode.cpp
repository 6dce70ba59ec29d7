// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/unicode.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>

#include "inference/chat/jinja/unicode_tables.h"

namespace belvedere::inference::jinja {
namespace {

constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;

[[nodiscard]] uint8_t byteAt(std::string_view bytes, size_t offset) {
    return static_cast<uint8_t>(bytes[offset]);
}

/// Length in bytes of the code point that starts with `lead`, 0 when none can.
[[nodiscard]] size_t lengthOfLead(uint8_t lead) {
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xC2 && lead < 0xE0) {
        return 2;
    }
    if (lead >= 0xE0 && lead < 0xF0) {
        return 3;
    }
    return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

[[nodiscard]] bool contains(std::span<const tables::PointRange> ranges, char32_t point) {
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), point,
                         [](char32_t p, const tables::PointRange& r) { return p < r.first; });
    return after != ranges.begin() && point <= std::prev(after)->last;
}

[[nodiscard]] bool appendSpecial(std::string& out,
                                 std::span<const tables::CaseSpecial> specials,
                                 char32_t point) {
    const auto found =
        std::lower_bound(specials.begin(), specials.end(), point,
                         [](const tables::CaseSpecial& s, char32_t p) { return s.point < p; });
    if (found == specials.end() || found->point != point) {
        return false;
    }
    for (const char32_t to : found->to) {
        if (to != 0) {
            appendPoint(out, to);
        }
    }
    return true;
}

[[nodiscard]] char32_t mapPoint(std::span<const tables::CaseRange> ranges, char32_t point) {
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), point,
                         [](char32_t p, const tables::CaseRange& r) { return p < r.first; });
    if (after == ranges.begin()) {
        return point;
    }
    const tables::CaseRange& range = *std::prev(after);
    if (point > range.last || (point - range.first) % range.step != 0) {
        return point;
    }
    return static_cast<char32_t>(static_cast<int32_t>(point) + range.delta);
}

void appendUpper(std::string& out, char32_t point) {
    if (point < 0x80) {
        out.push_back(static_cast<char>(point >= 'a' && point <= 'z' ? point - 32 : point));
    } else if (!appendSpecial(out, tables::upperSpecials(), point)) {
        appendPoint(out, mapPoint(tables::upperRanges(), point));
    }
}

void appendLower(std::string& out, char32_t point) {
    if (point < 0x80) {
        out.push_back(static_cast<char>(point >= 'A' && point <= 'Z' ? point + 32 : point));
    } else if (!appendSpecial(out, tables::lowerSpecials(), point)) {
        appendPoint(out, mapPoint(tables::lowerRanges(), point));
    }
}

void appendTitle(std::string& out, char32_t point) {
    if (point < 0x80 || !appendSpecial(out, tables::titleSpecials(), point)) {
        appendUpper(out, point);
    }
}

[[nodiscard]] bool isCaseIgnorable(char32_t point) {
    if (point < 0x80) {
        return std::string_view("'.:^`").find(static_cast<char>(point)) != std::string_view::npos;
    }
    return contains(tables::caseIgnorableRanges(), point);
}

/// Whether the capital sigma in bytes[begin, end) ends a word: a cased letter before it and none
/// after it.
[[nodiscard]] bool isFinalSigma(std::string_view bytes, size_t begin, size_t end) {
    bool cased_before = false;
    while (begin > 0) {
        begin = previousOffset(bytes, begin);
        size_t at = begin;
        const char32_t point = nextPoint(bytes, at);
        if (!isCaseIgnorable(point)) {
            cased_before = isCased(point);
            break;
        }
    }
    while (cased_before && end < bytes.size()) {
        const char32_t point = nextPoint(bytes, end);
        if (!isCaseIgnorable(point)) {
            return !isCased(point);
        }
    }
    return cased_before;
}

/// Lower case of the point in bytes[begin, end).
void appendLowerInContext(
    std::string& out, std::string_view bytes, size_t begin, size_t end, char32_t point) {
    if (point == kCapitalSigma) {
        appendPoint(out, isFinalSigma(bytes, begin, end) ? kFinalSigma : U'\u03C3');
    } else {
        appendLower(out, point);
    }
}

}  // namespace

std::optional<size_t> findInvalidUtf8(std::string_view bytes) {
    size_t at = 0;
    while (at < bytes.size()) {
        const uint8_t lead = byteAt(bytes, at);
        if (lead < 0x80) {
            ++at;
            continue;
        }
        const size_t length = lengthOfLead(lead);
        if (length == 0 || at + length > bytes.size()) {
            return at;
        }
        for (size_t i = 1; i < length; ++i) {
            if ((byteAt(bytes, at + i) & 0xC0) != 0x80) {
                return at;
            }
        }
        const uint8_t second = byteAt(bytes, at + 1);
        const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
        const bool surrogate = lead == 0xED && second >= 0xA0;
        if (overlong || surrogate || (lead == 0xF4 && second >= 0x90)) {
            return at;
        }
        at += length;
    }
    return std::nullopt;
}

size_t countPoints(std::string_view bytes) {
    size_t n_inner = 0;  // bytes 10xxxxxx, which continue a code point; eight at a time
    size_t at = 0;
    for (; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, sizeof(word));
        n_inner +=
            static_cast<size_t>(std::popcount((word >> 7) & ~(word >> 6) & 0x0101010101010101U));
    }
    for (; at < bytes.size(); ++at) {
        n_inner += (byteAt(bytes, at) & 0xC0) == 0x80 ? size_t{1} : size_t{0};
    }
    return bytes.size() - n_inner;
}

size_t offsetOfPoint(std::string_view bytes, size_t index) {
    size_t at = 0;
    while (index > 0 && at < bytes.size()) {
        at += lengthOfLead(byteAt(bytes, at));
        --index;
    }
    return at;
}

char32_t nextPoint(std::string_view bytes, size_t& offset) {
    const uint8_t lead = byteAt(bytes, offset);
    const size_t length = lengthOfLead(lead);
    char32_t point = length == 1 ? lead : lead & (0x7FU >> length);
    for (size_t i = 1; i < length; ++i) {
        point = (point << 6) | (byteAt(bytes, offset + i) & 0x3FU);
    }
    offset += length;
    return point;
}

size_t previousOffset(std::string_view bytes, size_t offset) {
    do {
        --offset;
    } while (offset > 0 && (byteAt(bytes, offset) & 0xC0) == 0x80);
    return offset;
}

void appendPoint(std::string& out, char32_t point) {
    const auto put = [&out](char32_t value) { out.push_back(static_cast<char>(value)); };
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xC0 | (point >> 6));
        put(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        put(0xE0 | (point >> 12));
        put(0x80 | ((point >> 6) & 0x3F));
        put(0x80 | (point & 0x3F));
    } else {
        put(0xF0 | (point >> 18));
        put(0x80 | ((point >> 12) & 0x3F));
        put(0x80 | ((point >> 6) & 0x3F));
        put(0x80 | (point & 0x3F));
    }
}

bool isSpace(char32_t point) {
    return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85 ||
           point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) ||
           point == 0x2028 || point == 0x2029 || point == 0x202F || point == 0x205F ||
           point == 0x3000;
}

bool isPrintable(char32_t point) {
    return point < 0x80 ? point >= 0x20 && point < 0x7F
                        : !contains(tables::unprintableRanges(), point);
}

bool isCased(char32_t point) {
    if (point < 0x80) {
        return (point >= 'a' && point <= 'z') || (point >= 'A' && point <= 'Z');
    }
    return contains(tables::casedRanges(), point);
}

std::string toUpper(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (size_t at = 0; at < bytes.size();) {
        appendUpper(out, nextPoint(bytes, at));
    }
    return out;
}

std::string toLower(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (size_t at = 0; at < bytes.size();) {
        const size_t begin = at;
        const char32_t point = nextPoint(bytes, at);
        appendLowerInContext(out, bytes, begin, at, point);
    }
    return out;
}

std::string toTitle(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    bool inside_word = false;
    for (size_t at = 0; at < bytes.size();) {
        const size_t begin = at;
        const char32_t point = nextPoint(bytes, at);
        if (inside_word) {
            appendLowerInContext(out, bytes, begin, at, point);
        } else {
            appendTitle(out, point);
        }
        inside_word = isCased(point);
    }
    return out;
}

std::string toCapitalized(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (size_t at = 0; at < bytes.size();) {
        const size_t begin = at;
        const char32_t point = nextPoint(bytes, at);
        if (begin == 0) {
            appendTitle(out, point);
        } else {
            appendLowerInContext(out, bytes, begin, at, point);
        }
    }
    return out;
}

}  // namespace belvedere::inference::jinja
