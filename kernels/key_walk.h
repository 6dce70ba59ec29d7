// SPDX-License-Identifier: Apache-2.0
#pragma once

// The order in which a tile of queries meets its keys: up to 64 keys at a time, ascending, with the
// queries that attend to them. Dense attention and MSA differ here and nowhere else. Each set of
// keys is met once for all queries of the tile that chose it, so it is loaded once (MSA's prefill
// by blocks, arXiv:2606.13392, 4).
//
// For the files of one instruction set: everything has internal linkage.

#include <cstddef>
#include <cstdint>

#include "kernels/table.h"

namespace belvedere::kernels {
namespace {

/// Queries of a tile.
constexpr size_t kWalkTokens = 16;
/// Keys of one step; a page is two of them.
constexpr size_t kWalkKeys = 64;
static_assert(kPageTokens % kWalkKeys == 0);

/// Queries [begin, end) of the tile.
struct TokenRun {
    size_t begin;
    size_t end;
};

class KeyWalk {
  public:
    /// Tokens [t_begin, t_begin + n_tokens) of args, keys [key_begin, key_end).
    KeyWalk(const Attend& args,
            size_t t_begin,
            size_t n_tokens,
            size_t kv_head,
            size_t key_begin,
            size_t key_end)
        : args_(args),
          first_pos_(args.first_pos + t_begin),
          n_tokens_(n_tokens),
          begin_(key_begin),
          end_(key_end < seenBy(n_tokens - 1) ? key_end : seenBy(n_tokens - 1)),
          next_key_(key_begin) {
        for (size_t t = 0; args.blocks != nullptr && t < n_tokens; ++t) {
            ids_[t] = args.blocks + ((t_begin + t) * args.n_kv_heads + kv_head) * args.top_k;
        }
    }

    /// The next keys; false when there are no more.
    bool next() {
        if (args_.blocks == nullptr) {
            return nextOfAll();
        }
        do {
            while (next_key_ < block_end_) {
                if (takeKeys()) {
                    return true;
                }
            }
        } while (nextBlock());
        return false;
    }

    /// Positions that token t of the tile attends to at most: [0, seenBy(t)).
    [[nodiscard]] size_t seenBy(size_t t) const {
        return args_.n_keys > 0 ? args_.n_keys : first_pos_ + t + 1;
    }

    /// First position of the keys, and how many: they stand in one page.
    size_t key = 0;
    size_t n_keys = 0;
    /// Queries that attend to them (each to those up to its own position).
    TokenRun runs[kWalkTokens];
    size_t n_runs = 0;

  private:
    bool nextOfAll() {
        if (next_key_ >= end_) {
            return false;
        }
        key = next_key_;
        n_keys = end_ - key < kWalkKeys ? end_ - key : kWalkKeys;
        next_key_ += kWalkKeys;
        // Queries before `key` see none of them, unless all see all.
        runs[0] = {args_.n_keys == 0 && first_pos_ < key ? key - first_pos_ : 0, n_tokens_};
        n_runs = 1;
        return true;
    }

    /// The lowest block that some query has not met yet.
    bool nextBlock() {
        int64_t lowest = -1;
        for (size_t t = 0; t < n_tokens_; ++t) {
            const int32_t id = idOf(t);
            if (id >= 0 && (lowest < 0 || id < lowest)) {
                lowest = id;
            }
        }
        if (lowest < 0) {
            return false;
        }
        for (size_t t = 0; t < n_tokens_; ++t) {
            is_member_[t] = idOf(t) == lowest;
            n_taken_[t] += is_member_[t] ? 1 : 0;
        }
        const size_t begin = static_cast<size_t>(lowest) * args_.block_tokens;
        // A range of keys need not begin with a block.
        next_key_ = begin > begin_ ? begin : begin_;
        block_end_ = begin + args_.block_tokens < end_ ? begin + args_.block_tokens : end_;
        return true;
    }

    /// Keys of the present block, where some query sees them.
    bool takeKeys() {
        key = next_key_;
        n_keys = block_end_ - key < kWalkKeys ? block_end_ - key : kWalkKeys;
        const size_t to_page_end = kPageTokens - key % kPageTokens;
        n_keys = n_keys < to_page_end ? n_keys : to_page_end;
        next_key_ += n_keys;
        n_runs = 0;
        for (size_t t = 0; t < n_tokens_; ++t) {
            if (!is_member_[t] || first_pos_ + t < key) {
                continue;
            }
            if (n_runs > 0 && runs[n_runs - 1].end == t) {
                ++runs[n_runs - 1].end;
            } else {
                runs[n_runs++] = {t, t + 1};
            }
        }
        return n_runs > 0;
    }

    [[nodiscard]] int32_t idOf(size_t t) const {
        return n_taken_[t] < args_.top_k ? ids_[t][n_taken_[t]] : -1;
    }

    const Attend& args_;
    size_t first_pos_;
    size_t n_tokens_;
    size_t begin_;
    size_t end_;
    size_t next_key_;
    size_t block_end_ = 0;  ///< of the block that is being walked
    const int32_t* ids_[kWalkTokens] = {};
    size_t n_taken_[kWalkTokens] = {};
    bool is_member_[kWalkTokens] = {};
};

}  // namespace
}  // namespace belvedere::kernels
