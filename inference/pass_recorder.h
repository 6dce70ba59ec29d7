// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collects what the passes over one sequence compute beside logits, for comparisons with a
// reference. Private to inference/. One thread: that of Decoder::forward.

#include <vector>

#include "inference/format/output_tensor.h"
#include "inference/model/decoder.h"

namespace belvedere::inference {

class PassRecorder : public PassObserver {
  public:
    /// n_tokens of the whole sequence.
    PassRecorder(const ModelConfig& config, size_t n_tokens);

    void onHidden(size_t layer, std::span<const float> values) override;
    void onBlocks(size_t layer, std::span<const int32_t> ids) override;
    void onExperts(size_t layer, const ChosenExperts& chosen) override;

    /// hidden [n_layers + 1, n_tokens, dim], each layer's input and the output of the final norm;
    /// where some layer chooses blocks, selected_blocks [such layers, n_heads, n_tokens, top_k],
    /// ids ascending and -1 behind them; where some has experts, expert_ids and expert_weights
    /// [such layers, n_tokens, n_used], ids ascending, weights with the sum 1. Call after the last
    /// pass.
    [[nodiscard]] std::vector<OutputTensor> take();

  private:
    [[nodiscard]] OutputTensor blocks() const;

    const ModelConfig& config_;
    size_t n_tokens_;
    std::vector<std::vector<float>> hidden_;     ///< by layer, as the next three
    std::vector<std::vector<int32_t>> blocks_;   ///< [n_tokens, n_heads, top_k]
    std::vector<std::vector<int32_t>> experts_;  ///< [n_tokens, n_used]
    std::vector<std::vector<float>> weights_;
};

}  // namespace belvedere::inference
