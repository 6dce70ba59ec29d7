// SPDX-License-Identifier: Apache-2.0
#pragma once

// One code point from UTF-8 text that may be broken. Any thread.
// Source: The Unicode Standard 15.0, table 3-7 (well-formed byte sequences).

#include <cstdint>

namespace belvedere::inference {

constexpr uint32_t kInvalidCodePoint = 0xFFFFFFFF;

struct CodePoint {
    uint32_t value = kInvalidCodePoint;
    uint32_t n_bytes = 1;  ///< 1 for a byte that starts no well-formed character
};

/// Requires: p < end.
inline CodePoint decodeUtf8(const char* p, const char* end) {
    const auto byte = [p](int i) {
        return static_cast<uint32_t>(static_cast<unsigned char>(p[i]));
    };
    const auto continues = [&](int i) { return (byte(i) & 0xC0U) == 0x80U; };
    const uint32_t lead = byte(0);
    if (lead < 0x80) {
        return {lead, 1};
    }
    if (lead >= 0xC2 && lead <= 0xDF && end - p >= 2 && continues(1)) {
        return {(lead & 0x1FU) << 6 | (byte(1) & 0x3FU), 2};
    }
    if ((lead & 0xF0U) == 0xE0U && end - p >= 3 && continues(1) && continues(2)) {
        const uint32_t value = (lead & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
        if (value >= 0x800 && (value < 0xD800 || value > 0xDFFF)) {
            return {value, 3};
        }
    }
    if (lead >= 0xF0 && lead <= 0xF4 && end - p >= 4 && continues(1) && continues(2) &&
        continues(3)) {
        const uint32_t value = (lead & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 |
                               (byte(2) & 0x3FU) << 6 | (byte(3) & 0x3FU);
        if (value >= 0x10000 && value <= 0x10FFFF) {
            return {value, 4};
        }
    }
    return {};
}

/// Appends a valid code point.
template <class String>
void appendUtf8(String& out, uint32_t value) {
    const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (value < 0x80) {
        put(value);
    } else if (value < 0x800) {
        put(0xC0U | value >> 6);
        put(0x80U | (value & 0x3FU));
    } else if (value < 0x10000) {
        put(0xE0U | value >> 12);
        put(0x80U | (value >> 6 & 0x3FU));
        put(0x80U | (value & 0x3FU));
    } else {
        put(0xF0U | value >> 18);
        put(0x80U | (value >> 12 & 0x3FU));
        put(0x80U | (value >> 6 & 0x3FU));
        put(0x80U | (value & 0x3FU));
    }
}

}  // namespace belvedere::inference
