// SPDX-License-Identifier: Apache-2.0
#pragma once

// The small door for tools that compare us with a reference: token ids, logits, facts of a model
// file. Any thread; each call loads what it needs.

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "inference/engine.h"
#include "inference/format/output_tensor.h"
#include "inference/vision/media.h"
#include "kernels/base/result.h"
#include "kernels/kernels.h"

namespace belvedere::inference {

/// The tokenizer of a model (also of a GGUF that is nothing else) or of a tokenizer.json.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> loadTokenizer(const std::string& path);

/// The chat template that a model comes with. Errors: NotFound where it has none.
[[nodiscard]] Result<std::string> readChatTemplate(const std::string& path);

/// What a model is, from its headers alone: no weights are read.
[[nodiscard]] Result<ModelInfo> inspectModel(const std::string& path);

struct LogitsRequest {
    LoadRequest load;
    std::vector<TokenId> ids;
    Compute compute = Compute::Exact;
    Attention attention = Attention::Msa;
    size_t chunk = 0;      ///< tokens a forward pass; 0: the engine's own
    size_t n_threads = 0;  ///< 0: one per core
    bool observe = false;  ///< also what the layers compute: slower
    /// Images and clips in the order of the prompt; `ids` hold a placeholder for each of their
    /// tokens.
    std::vector<std::shared_ptr<const Media>> media = {};
    const kernels::KernelTable* kernels = nullptr;  ///< nullptr: kernels::active()
};

struct Logits {
    size_t n_tokens = 0;
    size_t vocab_size = 0;
    std::vector<float> values;  ///< [n_tokens, vocab_size]
    /// Of images tower_images [n_patches, tower's dim], the rows after its last layer, and
    /// projected_images [n_tokens, dim], the embeddings; of clips tower_video and projected_video.
    /// Where `observe`: hidden [n_layers + 1, n_tokens, dim]; of MSA layers selected_blocks
    /// [layers, groups, n_tokens, top_k]; of layers with experts expert_ids and expert_weights
    /// [layers, n_tokens, n_used].
    std::vector<OutputTensor> observed;
};

/// Errors: those of Engine::load; InvalidArgument where an id is outside the vocabulary or the ids
/// exceed the window, the model takes no images, or the placeholders do not fit the images.
[[nodiscard]] Result<Logits> computeLogits(const LogitsRequest& request, std::stop_token stop);

/// Writes `logits` and what was observed as a safetensors file, through a temporary file and a
/// rename. Errors: Io.
[[nodiscard]] Result<void> writeLogits(const std::string& path, Logits logits);

struct SupportedFormats {
    std::vector<std::string> architectures;
    std::vector<std::string> weight_types;
    std::vector<std::string> tokenizers;
};

[[nodiscard]] SupportedFormats supportedFormats();

/// The instruction set the kernels use, and what the CPU offers, for `belvedere doctor`.
struct ComputeInfo {
    std::string cpu;
    std::string cpu_features;
    std::string instruction_set;
    size_t n_cores = 0;
    std::string gpu;  ///< "none: built without CUDA", "NVIDIA H200, 139.8 GiB"
};

[[nodiscard]] Result<ComputeInfo> computeInfo();

}  // namespace belvedere::inference
