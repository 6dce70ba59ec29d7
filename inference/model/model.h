// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model ready to run: file, adapters, config, backend and decoder, opened and checked together.
// What the engine and the inspection commands share. One thread at a time for the decoder; the
// facts are immutable.

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "inference/backend/backend.h"
#include "inference/cache/digest.h"
#include "inference/engine.h"
#include "inference/model/adapter.h"
#include "inference/model/decoder.h"
#include "inference/model/model_config.h"
#include "inference/model/model_source.h"
#include "inference/model/vision_source.h"
#include "inference/model/vision_tower.h"
#include "kernels/kernels.h"

namespace belvedere::inference {

struct ModelOptions {
    Compute compute = Compute::Fast;
    kernels::CacheType cache_type = kernels::CacheType::F16;         ///< Exact always uses F32
    kernels::CacheType index_cache_type = kernels::CacheType::BF16;  ///< likewise
    Attention attention = Attention::Msa;
    size_t n_threads = 0;       ///< 0: one per core this process may use
    size_t context_tokens = 0;  ///< 0: the model's own window, or what fits this machine
    size_t max_pass_tokens = 512;
    uint64_t expert_budget_bytes = 0;               ///< BackendShape::expert_budget_bytes
    const kernels::KernelTable* kernels = nullptr;  ///< nullptr: kernels::active()
    uint64_t machine_bytes = 0;                     ///< 0: the memory of this machine
};

class Model {
  public:
    /// Errors: as Engine::load.
    [[nodiscard]] static Result<std::unique_ptr<Model>> load(const LoadRequest& request,
                                                             const ModelOptions& options,
                                                             const LoadProgress& progress,
                                                             const std::stop_token& stop);

    [[nodiscard]] const ModelSource& source() const { return *source_; }

    [[nodiscard]] const ModelConfig& config() const { return config_; }

    [[nodiscard]] const ModelInfo& info() const { return info_; }

    [[nodiscard]] ModelInfo& info() { return info_; }

    [[nodiscard]] Backend& backend() { return *backend_; }

    [[nodiscard]] Decoder& decoder() { return *decoder_; }

    /// nullptr: the model reads text only.
    [[nodiscard]] VisionTower* tower() { return tower_.get(); }

    /// Which tower it is: another one makes other embeddings of the same image.
    [[nodiscard]] uint64_t towerKey() const { return tower_key_; }

    [[nodiscard]] const kernels::KernelTable& kernels() const { return *kernels_; }

    /// Of weights, adapters and settings: what entries of the cache depend on, beside the tokens
    /// and the types of the cache. The first call reads from all tensors. Engine thread.
    [[nodiscard]] Digest digest();

    /// Errors: Io where a model file shrank while it is in use: the weights that are read in place
    /// are gone.
    [[nodiscard]] Result<void> checkWhole() const;

  private:
    explicit Model(std::unique_ptr<ModelSource> source) : source_(std::move(source)) {}

    std::unique_ptr<ModelSource> source_;
    AdapterSet adapters_;
    ModelConfig config_;
    std::optional<VisionSource> vision_;
    ModelInfo info_;
    Compute compute_ = Compute::Fast;
    std::optional<Digest> digest_;
    const kernels::KernelTable* kernels_ = nullptr;
    std::unique_ptr<Backend> backend_;
    std::unique_ptr<Decoder> decoder_;  // after backend_: its memory goes first
    std::unique_ptr<VisionTower> tower_;
    uint64_t tower_key_ = 0;
};

/// Facts from the headers alone.
[[nodiscard]] ModelInfo describeSource(const ModelSource& source);

/// What the config says, and what a cache of these types takes.
void addConfigFacts(const ModelConfig& config, const CacheTypes& types, ModelInfo& info);

/// How attention runs, where the user could expect otherwise. `indexed`: layers that have an index
/// branch, whether it is used or not.
void addAttentionNotices(const ModelConfig& config,
                         const std::vector<size_t>& indexed,
                         std::vector<std::string>& notices);

/// "mmproj-F16.gguf: 32 layers".
[[nodiscard]] std::string visionText(const VisionSource& vision, const ModelSource& text);

/// What a model with a window would take, from the shapes of its tensors: no weights are moved.
/// `vision`: nullptr where there is none.
[[nodiscard]] Result<MemoryNeed> measureMemory(const ModelSource& source,
                                               const AdapterSet& adapters,
                                               const ModelConfig& config,
                                               const VisionSource* vision,
                                               const ModelOptions& options,
                                               size_t context_tokens);

/// Bytes of K, V and index keys that one token takes in all layers.
[[nodiscard]] uint64_t cacheBytesPerToken(const ModelConfig& config, const CacheTypes& types);

}  // namespace belvedere::inference
