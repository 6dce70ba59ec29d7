// SPDX-License-Identifier: Apache-2.0
#pragma once

// Guesses what comes next from what came after the same tokens before, in the prompt or in the
// answer itself: text that is quoted, edited or repeated is then confirmed several tokens a pass
// instead of computed one by one. No second model.
//
// Index: the last two tokens name a chain of all places where they stood; the place that has most
// tokens before it in common with the end of the sequence is taken (the newest of equals), and the
// tokens behind it are the draft. Length: from what drafts with as much in common were worth so
// far. Source: prompt lookup decoding, A. Saxena 2023; verification by exact sampling as in
// Leviathan et al. 2023, arXiv:2211.17192. One sequence, one thread.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "inference/tokenizer/tokenizer.h"

namespace belvedere::inference {

/// How many tokens to draft. A draft's k-th token pays where the chance that the first k are right
/// is above what one more row of a pass costs.
class DraftLength {
  public:
    /// Tokens in common that are told apart; more count as this many.
    static constexpr size_t kMaxCommon = 16;

    /// row_cost: of one more row, as a share of a pass of one row.
    explicit DraftLength(double row_cost);

    [[nodiscard]] size_t choose(size_t n_common, size_t n_max) const;

    /// Of n_drafted tokens the first n_accepted were right. Without a draft the experience fades,
    /// so that what was given up is tried again.
    void learn(size_t n_common, size_t n_drafted, size_t n_accepted);

  private:
    /// Tokens that were tried and right, older ones counting less.
    struct Experience {
        double n_tried = 0;
        double n_right = 0;
    };

    [[nodiscard]] static size_t classOf(size_t n_common);
    [[nodiscard]] double chance(size_t n_common) const;

    double row_cost_;
    std::vector<Experience> classes_;
};

class Drafter {
  public:
    explicit Drafter(double row_cost) : length_(row_cost) {}

    /// At most n_max tokens that may follow `tokens`, the whole sequence, which begins with the
    /// tokens of the call before. Valid until the next call.
    [[nodiscard]] std::span<const TokenId> draft(std::span<const TokenId> tokens, size_t n_max);

    /// Of the last draft, the first n_accepted were right.
    void learn(size_t n_accepted);

  private:
    /// A place in the sequence whose tokens before it are those at its end.
    struct Match {
        size_t next = 0;  ///< what followed
        size_t n_common = 0;
    };

    void index(std::span<const TokenId> tokens);
    [[nodiscard]] Match longestMatch(std::span<const TokenId> tokens) const;

    DraftLength length_;
    std::unordered_map<uint64_t, uint32_t> newest_;  ///< of each pair of tokens, where it ends
    std::vector<uint32_t> before_;  ///< [n indexed], where the same pair ended before; 0: nowhere
    std::vector<TokenId> draft_;
    size_t n_common_ = 0;  ///< of the last draft
};

}  // namespace belvedere::inference
