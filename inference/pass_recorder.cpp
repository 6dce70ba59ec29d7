// SPDX-License-Identifier: Apache-2.0
#include "inference/pass_recorder.h"

#include <algorithm>

namespace belvedere::inference {
namespace {

template <class T>
std::vector<T> joined(const std::vector<std::vector<T>>& lists) {
    std::vector<T> all;
    for (const std::vector<T>& list : lists) {
        all.insert(all.end(), list.begin(), list.end());
    }
    return all;
}

template <class T>
size_t countFilled(const std::vector<std::vector<T>>& lists) {
    return static_cast<size_t>(std::count_if(
        lists.begin(), lists.end(), [](const std::vector<T>& list) { return !list.empty(); }));
}

}  // namespace

PassRecorder::PassRecorder(const ModelConfig& config, size_t n_tokens)
    : config_(config),
      n_tokens_(n_tokens),
      hidden_(config.n_layers + 1),
      blocks_(config.n_layers),
      experts_(config.n_layers),
      weights_(config.n_layers) {}

void PassRecorder::onHidden(size_t layer, std::span<const float> values) {
    hidden_[layer].insert(hidden_[layer].end(), values.begin(), values.end());
}

void PassRecorder::onBlocks(size_t layer, std::span<const int32_t> ids) {
    blocks_[layer].insert(blocks_[layer].end(), ids.begin(), ids.end());
}

void PassRecorder::onExperts(size_t layer, const ChosenExperts& chosen) {
    experts_[layer].insert(experts_[layer].end(), chosen.ids.begin(), chosen.ids.end());
    weights_[layer].insert(weights_[layer].end(), chosen.weights.begin(), chosen.weights.end());
}

OutputTensor PassRecorder::blocks() const {
    const size_t n_heads = config_.msa.n_heads;
    const size_t top_k = config_.msa.top_k;
    std::vector<int32_t> ids;
    for (const std::vector<int32_t>& layer : blocks_) {
        for (size_t head = 0; head < n_heads && !layer.empty(); ++head) {
            for (size_t t = 0; t < n_tokens_; ++t) {
                const auto begin =
                    layer.begin() + static_cast<std::ptrdiff_t>((t * n_heads + head) * top_k);
                ids.insert(ids.end(), begin, begin + static_cast<std::ptrdiff_t>(top_k));
            }
        }
    }
    return {"selected_blocks", {countFilled(blocks_), n_heads, n_tokens_, top_k}, std::move(ids)};
}

std::vector<OutputTensor> PassRecorder::take() {
    std::vector<OutputTensor> tensors;
    tensors.push_back({"hidden", {config_.n_layers + 1, n_tokens_, config_.dim}, joined(hidden_)});
    hidden_.clear();
    if (countFilled(blocks_) > 0) {
        tensors.push_back(blocks());
    }
    if (const size_t n_layers = countFilled(experts_); n_layers > 0) {
        const std::vector<size_t> shape = {n_layers, n_tokens_, config_.moe.n_used};
        tensors.push_back({"expert_ids", shape, joined(experts_)});
        tensors.push_back({"expert_weights", shape, joined(weights_)});
    }
    return tensors;
}

}  // namespace belvedere::inference
