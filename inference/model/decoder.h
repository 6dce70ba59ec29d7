// SPDX-License-Identifier: Apache-2.0
#pragma once

// The forward pass: a list of layers, each a few steps that a backend runs. Holds the weights and
// the activations of one pass; the KV cache stays with the caller, who hands in its pages. One
// thread at a time (the engine thread).
//
//     BV_TRY(decoder.forward(tokens, first_pos, pages, stop));
//     std::span<float> logits = BV_TRY(decoder.logits(tokens.size() - 1, 1));

#include <memory>
#include <span>
#include <stop_token>

#include "inference/backend/backend.h"
#include "inference/model/model_config.h"
#include "inference/model/weights.h"

namespace belvedere::inference {

/// Elements of the cache: of K and V, and of index keys.
struct CacheTypes {
    kernels::CacheType kv = kernels::CacheType::F16;
    kernels::CacheType index = kernels::CacheType::BF16;
};

/// Rows of a pass whose embeddings are given: those of images.
struct GivenRows {
    size_t first_row = 0;
    std::span<const float> values;  ///< [n_rows, dim]
};

/// Sees what a pass computes, for comparisons with a reference; each call waits for the backend, so
/// a pass that is observed is slower. Called on the thread of forward().
class PassObserver {
  public:
    virtual ~PassObserver() = default;

    /// The residual stream [n_tokens, dim] before a layer, in order of layers; last, as layer
    /// n_layers, after the final norm.
    virtual void onHidden(size_t layer, std::span<const float> values) = 0;
    /// [n_tokens, n_heads, top_k] of an MSA layer.
    virtual void onBlocks(size_t layer, std::span<const int32_t> ids) = 0;
    virtual void onExperts(size_t layer, const ChosenExperts& chosen) = 0;
};

class Decoder {
  public:
    /// Rows of logits that one call may ask for.
    static constexpr size_t kMaxLogitRows = 32;

    /// max_tokens of one pass. Errors: OutOfMemory.
    [[nodiscard]] static Result<std::unique_ptr<Decoder>> create(const ModelConfig& config,
                                                                 ModelWeights weights,
                                                                 Backend& backend,
                                                                 size_t max_tokens);

    /// What a backend for this model must provide.
    [[nodiscard]] static BackendShape backendShape(const ModelConfig& config,
                                                   std::span<const float> rope_divisors,
                                                   const CacheTypes& cache,
                                                   size_t context_tokens,
                                                   size_t max_tokens);

    /// Runs all layers over the tokens of `runs`, one run behind the other; the pages of each hold
    /// everything before it. Requires: 0 < tokens.size() <= max_tokens, as many as the runs have;
    /// ids inside the vocabulary, or below 0 where the row is one of `given`; an observer only with
    /// a prompt. Errors: Cancelled
    /// between two steps: the entries of these positions are then undefined. Internal from the
    /// device.
    [[nodiscard]] Result<void> forward(std::span<const int32_t> tokens,
                                       std::span<const PassRun> runs,
                                       const std::stop_token& stop,
                                       PassObserver* observer = nullptr,
                                       std::span<const GivenRows> given = {},
                                       PassKind kind = PassKind::Prompt);

    /// One run, at first_pos, first_pos + 1, ...
    [[nodiscard]] Result<void> forward(std::span<const int32_t> tokens,
                                       size_t first_pos,
                                       std::span<const PageId> pages,
                                       const std::stop_token& stop,
                                       PassObserver* observer = nullptr,
                                       std::span<const GivenRows> given = {},
                                       PassKind kind = PassKind::Prompt) {
        const PassRun run = {tokens.size(), first_pos, pages};
        return forward(tokens, std::span(&run, 1), stop, observer, given, kind);
    }

    /// Blocks that an MSA layer chose in the last pass, after logits(): [n_tokens, n_heads, top_k].
    [[nodiscard]] std::span<const int32_t> chosenBlocks(size_t layer) const {
        return backend_.chosenBlocks(layer);
    }

    /// Logits [n_rows, vocab_size] of rows of the last pass; waits for it. Valid until the next
    /// call; may be changed.
    [[nodiscard]] Result<std::span<float>> logits(size_t first_row, size_t n_rows);

    [[nodiscard]] size_t maxTokens() const { return max_tokens_; }

  private:
    Decoder(const ModelConfig& config, ModelWeights weights, Backend& backend, size_t max_tokens);

    [[nodiscard]] Result<void> makeBuffers();
    [[nodiscard]] Result<std::unique_ptr<DeviceBuffer>> buffer(size_t width);
    void attention(const LayerWeights& layer, size_t index, size_t n_tokens);
    void project(const LayerWeights& layer, size_t n_tokens);
    void mlp(const LayerWeights& layer, size_t n_tokens);
    void gateAndUp(const LayerWeights& layer, size_t n_tokens);
    void down(const LayerWeights& layer, size_t n_tokens);
    [[nodiscard]] Prologue activation() const;
    [[nodiscard]] Result<void> observeLayer(size_t layer, PassObserver& observer);
    [[nodiscard]] Result<void> observeEnd(size_t n_tokens, PassObserver& observer);

    const ModelConfig config_;
    ModelWeights weights_;
    Backend& backend_;
    size_t max_tokens_;
    std::unique_ptr<DeviceBuffer> hidden_;  ///< [max_tokens, dim], the residual stream
    std::unique_ptr<DeviceBuffer> q_;       ///< [max_tokens, n_heads * head_dim]
    std::unique_ptr<DeviceBuffer> k_;       ///< [max_tokens, n_kv_heads * head_dim]
    std::unique_ptr<DeviceBuffer> v_;
    std::unique_ptr<DeviceBuffer> attended_;  ///< [max_tokens, n_heads * head_dim]
    std::unique_ptr<DeviceBuffer> index_q_;   ///< [max_tokens, index heads * their size]
    std::unique_ptr<DeviceBuffer> index_k_;
    std::unique_ptr<DeviceBuffer> gate_;  ///< [max_tokens, ff_dim]
    std::unique_ptr<DeviceBuffer> up_;
    std::unique_ptr<DeviceBuffer> shared_gate_;  ///< [max_tokens, shared_ff_dim]
    std::unique_ptr<DeviceBuffer> shared_up_;
    std::unique_ptr<DeviceBuffer> logits_;  ///< [kMaxLogitRows, vocab_size]
};

}  // namespace belvedere::inference
