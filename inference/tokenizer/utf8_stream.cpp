// SPDX-License-Identifier: Apache-2.0
#include "inference/tokenizer/utf8_stream.h"

#include <cstddef>
#include <cstdint>

#include "inference/tokenizer/utf8.h"

namespace belvedere::inference {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Subpart {
    size_t n_bytes = 1;  ///< the longest start of a well-formed character here, at least one byte
    bool complete = false;  ///< it is a whole character
    bool wanting = false;   ///< it ends with the text and a further byte could continue it
};

/// How many bytes a character with this first byte has, 0 for a byte that starts none.
size_t lengthOf(uint32_t lead) {
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        return 2;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        return 3;
    }
    return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

/// Some first bytes narrow what the second may be (table 3-7): no overlong forms, no surrogates,
/// nothing above U+10FFFF.
bool mayFollow(uint32_t lead, uint32_t second) {
    const uint32_t low = lead == 0xE0 ? 0xA0U : lead == 0xF0 ? 0x90U : 0x80U;
    const uint32_t high = lead == 0xED ? 0x9FU : lead == 0xF4 ? 0x8FU : 0xBFU;
    return second >= low && second <= high;
}

Subpart subpartAt(std::string_view text) {
    const auto byte = [text](size_t i) {
        return static_cast<uint32_t>(static_cast<unsigned char>(text[i]));
    };
    const size_t length = lengthOf(byte(0));
    if (length == 0) {
        return {};
    }
    size_t n = 1;
    while (n < length && n < text.size() &&
           (n == 1 ? mayFollow(byte(0), byte(1)) : (byte(n) & 0xC0U) == 0x80U)) {
        ++n;
    }
    return {n, n == length, n < length && n == text.size()};
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
    std::string joined;
    if (!held_.empty()) {
        joined = held_;
        joined += bytes;
        bytes = joined;
        held_.clear();
    }
    std::string out;
    out.reserve(bytes.size());
    while (!bytes.empty()) {
        const Subpart part = subpartAt(bytes);
        if (part.wanting) {
            held_ = bytes;
            break;
        }
        out += part.complete ? bytes.substr(0, part.n_bytes) : kReplacement;
        bytes.remove_prefix(part.n_bytes);
    }
    return out;
}

std::string Utf8Stream::flush() {
    const bool incomplete = !held_.empty();
    held_.clear();
    return std::string(incomplete ? kReplacement : std::string_view());
}

}  // namespace belvedere::inference
