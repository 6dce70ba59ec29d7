// SPDX-License-Identifier: Apache-2.0
#include "agent/tool_calls/markers.h"

#include <algorithm>

namespace belvedere::agent {

MarkerHit findFirst(std::string_view text,
                    std::initializer_list<std::string_view> markers,
                    size_t from) {
    MarkerHit hit;
    for (const std::string_view marker : markers) {
        if (marker.empty()) {
            continue;
        }
        const size_t pos = text.find(marker, from);
        if (pos < hit.pos) {
            hit = {pos, marker};
        }
    }
    return hit;
}

size_t partialMarkerBytes(std::string_view text, std::initializer_list<std::string_view> markers) {
    size_t longest = 0;
    for (const std::string_view marker : markers) {
        for (size_t n = std::min(text.size(), marker.empty() ? 0 : marker.size() - 1); n > longest;
             --n) {
            if (text.substr(text.size() - n) == marker.substr(0, n)) {
                longest = n;
            }
        }
    }
    return longest;
}

Match matchPrefix(std::string_view text, std::string_view marker) {
    if (text.starts_with(marker)) {
        return Match::Yes;
    }
    return marker.starts_with(text) ? Match::Partial : Match::No;
}

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(kWhiteSpace);
    if (begin == std::string_view::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(kWhiteSpace) + 1 - begin);
}

std::string_view cutAtCharacter(std::string_view text, size_t n_bytes) {
    if (text.size() <= n_bytes) {
        return text;
    }
    while (n_bytes > 0 && (static_cast<unsigned char>(text[n_bytes]) & 0xC0U) == 0x80U) {
        --n_bytes;
    }
    return text.substr(0, n_bytes);
}

}  // namespace belvedere::agent
