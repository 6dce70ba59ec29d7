// SPDX-License-Identifier: Apache-2.0
#pragma once

// Byte-level vocabularies store every byte as one printable character: the printable Latin-1
// characters stand for themselves, the other 68 bytes for U+0100 and up, in order. Any thread.
// Source: Radford et al. 2019 (GPT-2), section 2.2, and the encoder file published with it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "inference/tokenizer/utf8.h"

namespace belvedere::inference {

constexpr uint32_t kByteAlphabetEnd = 256 + 68;

constexpr bool isPrintableLatin1(uint32_t byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

/// By code point: the byte it stands for, -1 for none.
constexpr std::array<int16_t, kByteAlphabetEnd> makeByteOfCharacter() {
    std::array<int16_t, kByteAlphabetEnd> bytes{};
    bytes.fill(-1);
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
        bytes[isPrintableLatin1(byte) ? byte : next++] = static_cast<int16_t>(byte);
    }
    return bytes;
}

inline constexpr std::array<int16_t, kByteAlphabetEnd> kByteOfCharacter = makeByteOfCharacter();

/// The bytes that a stored token stands for; nullopt when a character of it is not in the alphabet.
inline std::optional<std::string> bytesOfStoredToken(std::string_view stored) {
    std::string bytes;
    const char* const end = stored.data() + stored.size();
    for (const char* p = stored.data(); p < end;) {
        const CodePoint c = decodeUtf8(p, end);
        if (c.value >= kByteAlphabetEnd || kByteOfCharacter[c.value] < 0) {
            return std::nullopt;
        }
        bytes.push_back(static_cast<char>(kByteOfCharacter[c.value]));
        p += c.n_bytes;
    }
    return bytes;
}

}  // namespace belvedere::inference
