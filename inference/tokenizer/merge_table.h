// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which two tokens merge into which third one, and how early. Built once, then read by any thread.
// One slot is 64 bits: left id (20), right id (20), rank (24), so that the table of 49k merges is 1
// MB.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "inference/tokenizer/text_index.h"

namespace belvedere::inference {

/// A possible merge of two neighbours. Lower ranks come first.
struct Merge {
    static constexpr uint32_t kNone = UINT32_MAX;

    uint32_t rank = kNone;
    int32_t id = -1;
};

class MergeTable {
  public:
    static constexpr uint32_t kMaxId = (1U << 20) - 2;
    static constexpr uint32_t kMaxMerges = (1U << 24) - 1;

    explicit MergeTable(size_t n_merges = 0)
        : slots_(std::bit_ceil(n_merges * 2 + 2), kEmpty), ids_(n_merges) {
        shift_ = 64 - static_cast<uint32_t>(std::countr_zero(slots_.size()));
    }

    /// False when the pair is there already. Requires: ids up to kMaxId, rank below n_merges.
    bool insert(int32_t left, int32_t right, uint32_t rank, int32_t merged) {
        const uint64_t key = keyOf(left, right);
        uint64_t& slot = slots_[slotOf(key)];
        if (slot != kEmpty) {
            return false;
        }
        slot = key << kRankBits | rank;
        ids_[rank] = merged;
        return true;
    }

    [[nodiscard]] Merge find(int32_t left, int32_t right) const {
        const uint64_t slot = slots_[slotOf(keyOf(left, right))];
        if (slot == kEmpty) {
            return {};
        }
        const auto rank = static_cast<uint32_t>(slot & ((1U << kRankBits) - 1));
        return {rank, ids_[rank]};
    }

  private:
    static constexpr uint32_t kRankBits = 24;
    static constexpr uint64_t kEmpty = UINT64_MAX;

    static uint64_t keyOf(int32_t left, int32_t right) {
        return static_cast<uint64_t>(left) << 20 | static_cast<uint64_t>(right);
    }

    [[nodiscard]] size_t slotOf(uint64_t key) const {
        const size_t mask = slots_.size() - 1;
        size_t i = (key * kHashFactor) >> shift_;
        while (slots_[i] != kEmpty && slots_[i] >> kRankBits != key) {
            i = (i + 1) & mask;
        }
        return i;
    }

    std::vector<uint64_t> slots_;  // a power of two, at most half full
    std::vector<int32_t> ids_;     // by rank
    uint32_t shift_ = 0;
};

}  // namespace belvedere::inference
