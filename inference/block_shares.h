// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which blocks of the context the MSA layers chose for generated tokens, reduced to one number a
// block: the share of (layer, index head) pairs that chose it. Private to inference/. One
// generation, the engine thread.

#include <cstdint>
#include <span>
#include <vector>

#include "inference/engine.h"
#include "inference/model/decoder.h"

namespace belvedere::inference {

class BlockShares {
  public:
    /// `layers`: the MSA layers that count; empty: all of them.
    BlockShares(const ModelConfig& config, std::span<const size_t> layers);

    /// What the token of a row of the last pass chose, blocks ascending; nothing in a dense model.
    /// Counts towards mean().
    [[nodiscard]] std::vector<BlockShare> add(const Decoder& decoder, size_t row);

    /// Over the tokens so far, blocks ascending.
    [[nodiscard]] std::vector<BlockShare> mean() const;

  private:
    const std::vector<size_t> layers_;
    const size_t n_heads_;
    const size_t ids_per_token_;
    size_t n_tokens_ = 0;
    std::vector<uint32_t> counts_;      ///< of each block, for one token
    std::vector<uint64_t> all_counts_;  ///< for all tokens
};

}  // namespace belvedere::inference
