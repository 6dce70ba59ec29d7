// SPDX-License-Identifier: Apache-2.0
#include "inference/block_shares.h"

#include <algorithm>

namespace belvedere::inference {

BlockShares::BlockShares(const ModelConfig& config, std::span<const size_t> layers)
    : layers_(layers.empty() ? config.msaLayers()
                             : std::vector<size_t>(layers.begin(), layers.end())),
      n_heads_(config.msa.n_heads),
      ids_per_token_(config.msa.n_heads * config.msa.top_k) {}

std::vector<BlockShare> BlockShares::add(const Decoder& decoder, size_t row) {
    std::vector<BlockShare> shares;
    if (layers_.empty()) {
        return shares;
    }
    std::fill(counts_.begin(), counts_.end(), 0);
    for (const size_t layer : layers_) {
        const auto ids = decoder.chosenBlocks(layer).subspan(row * ids_per_token_, ids_per_token_);
        for (const int32_t id : ids) {
            if (id < 0) {
                continue;
            }
            const auto block = static_cast<size_t>(id);
            if (block >= counts_.size()) {
                counts_.resize(block + 1, 0);
            }
            ++counts_[block];
        }
    }
    all_counts_.resize(counts_.size(), 0);
    ++n_tokens_;
    const auto n_pairs = static_cast<float>(layers_.size() * n_heads_);
    for (size_t block = 0; block < counts_.size(); ++block) {
        if (counts_[block] > 0) {
            all_counts_[block] += counts_[block];
            shares.push_back(
                {static_cast<uint32_t>(block), static_cast<float>(counts_[block]) / n_pairs});
        }
    }
    return shares;
}

std::vector<BlockShare> BlockShares::mean() const {
    std::vector<BlockShare> shares;
    const auto n_pairs = static_cast<double>(layers_.size() * n_heads_ * n_tokens_);
    for (size_t block = 0; block < all_counts_.size(); ++block) {
        if (all_counts_[block] > 0) {
            shares.push_back(
                {static_cast<uint32_t>(block),
                 static_cast<float>(static_cast<double>(all_counts_[block]) / n_pairs)});
        }
    }
    return shares;
}

}  // namespace belvedere::inference
