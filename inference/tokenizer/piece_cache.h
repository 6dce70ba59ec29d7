// SPDX-License-Identifier: Apache-2.0
#pragma once

// Remembers the ids of pieces seen lately: source code repeats the same few thousand words. Fixed
// size, two entries a bucket, the older one gives way. One thread at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "inference/tokenizer/text_index.h"

namespace belvedere::inference {

template <size_t kTextWords, size_t kMaxIds, size_t kBuckets>
class PieceCache {
    static_assert((kBuckets & (kBuckets - 1)) == 0);

  public:
    static constexpr size_t kMaxTextBytes = kTextWords * 8;

    /// A piece as this cache compares it: zero-padded words and the hash of them.
    struct Key {
        std::array<uint64_t, kTextWords> words{};
        uint64_t hash = 0;
        uint32_t n_bytes = 0;
    };

    PieceCache() : entries_(kBuckets * 2) {}

    /// Requires: piece is not empty, at most kMaxTextBytes, and lies in a buffer that ends at
    /// buffer_end.
    static Key keyOf(std::string_view piece, const char* buffer_end) {
        Key key;
        key.n_bytes = static_cast<uint32_t>(piece.size());
        uint64_t hash = piece.size();
        for (size_t i = 0; i < kTextWords && i * 8 < piece.size(); ++i) {
            key.words[i] = loadWord(piece.data() + i * 8, piece.size() - i * 8, buffer_end);
            hash = (hash ^ key.words[i]) * kHashFactor;
            hash ^= hash >> 32;
        }
        key.hash = hash;
        return key;
    }

    /// The ids of the piece; an empty span when it is not here (no piece has a cached empty
    /// result).
    [[nodiscard]] std::span<const int32_t> find(const Key& key) const {
        const Entry* bucket = &entries_[(key.hash & (kBuckets - 1)) * 2];
        for (size_t way = 0; way < 2; ++way) {
            if (bucket[way].n_bytes == key.n_bytes && sameWords(bucket[way].words, key.words)) {
                return {bucket[way].ids.data(), bucket[way].n_ids};
            }
        }
        return {};
    }

    void insert(const Key& key, std::span<const int32_t> ids) {
        if (ids.empty() || ids.size() > kMaxIds) {
            return;
        }
        Entry* bucket = &entries_[(key.hash & (kBuckets - 1)) * 2];
        bucket[1] = bucket[0];
        bucket[0].words = key.words;
        bucket[0].n_bytes = static_cast<uint16_t>(key.n_bytes);
        bucket[0].n_ids = static_cast<uint16_t>(ids.size());
        std::copy(ids.begin(), ids.end(), bucket[0].ids.begin());
    }

  private:
    struct Entry {
        std::array<uint64_t, kTextWords> words{};
        uint16_t n_bytes = 0;  ///< 0: empty
        uint16_t n_ids = 0;
        std::array<int32_t, kMaxIds> ids{};
    };

    using Words = std::array<uint64_t, kTextWords>;

    /// Without the call of memcmp that operator== of two arrays makes: a fifth of the time of
    /// encode.
    static bool sameWords(const Words& a, const Words& b) {
        uint64_t difference = 0;
        for (size_t i = 0; i < kTextWords; ++i) {
            difference |= a[i] ^ b[i];
        }
        return difference == 0;
    }

    /// The first min(8, n) bytes at p, zeros above. Reads 8 bytes where the buffer has them.
    static uint64_t loadWord(const char* p, size_t n, const char* buffer_end) {
        uint64_t word = 0;
        if (n >= 8) {
            std::memcpy(&word, p, 8);
        } else if (buffer_end - p >= 8) {
            std::memcpy(&word, p, 8);
            word &= (uint64_t{1} << (n * 8)) - 1;  // little-endian: the first byte is the lowest
        } else {
            std::memcpy(&word, p, n);
        }
        return word;
    }

    std::vector<Entry> entries_;
};

}  // namespace belvedere::inference
