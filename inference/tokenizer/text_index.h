// SPDX-License-Identifier: Apache-2.0
#pragma once

// A hash table from text to token id that keeps no text of its own: the caller says what the text
// of an id is. Built once, then read by any thread.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace belvedere::inference {

constexpr uint64_t kHashFactor = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio

inline uint64_t mixHash(uint64_t x) {
    x = (x ^ x >> 32) * kHashFactor;
    return x ^ x >> 29;
}

inline uint64_t hashText(std::string_view text) {
    uint64_t hash = text.size() * kHashFactor;
    const char* p = text.data();
    size_t left = text.size();
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word = 0;
        std::memcpy(&word, p, 8);
        hash = mixHash(hash ^ word);
    }
    uint64_t word = 0;
    std::memcpy(&word, p, left);
    return mixHash(hash ^ word);
}

class TextIndex {
  public:
    explicit TextIndex(size_t n_texts = 0) : slots_(std::bit_ceil(n_texts * 2 + 2), -1) {}

    /// The id already there with this text, or -1 after adding `id`. At most n_texts additions.
    template <class TextOf>
    int32_t insert(std::string_view text, int32_t id, TextOf&& textOf) {
        int32_t& slot = slots_[slotOf(text, textOf)];
        if (slot >= 0) {
            return slot;
        }
        slot = id;
        return -1;
    }

    /// The id whose text this is, -1 if there is none.
    template <class TextOf>
    [[nodiscard]] int32_t find(std::string_view text, TextOf&& textOf) const {
        return slots_[slotOf(text, textOf)];
    }

  private:
    template <class TextOf>
    [[nodiscard]] size_t slotOf(std::string_view text, TextOf&& textOf) const {
        const size_t mask = slots_.size() - 1;
        size_t i = hashText(text) & mask;
        while (slots_[i] >= 0 && textOf(slots_[i]) != text) {
            i = (i + 1) & mask;
        }
        return i;
    }

    std::vector<int32_t> slots_;  // a power of two, at most half full
};

}  // namespace belvedere::inference
