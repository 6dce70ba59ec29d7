// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a decoder is, as a value: families differ in these numbers and in the table of
// model_config.cpp, never in code. Read from GGUF metadata and checked; tensor shapes are checked
// against it in weights.cpp. A plain value: any thread.
//
// Other kinds of attention (MSA blocks, sliding windows) and of MLP (experts) join as values of
// LayerConfig.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inference/format/gguf.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// Which elements of a head turn together. Llama's converter reorders the rows of q and k for
/// Adjacent.
enum class RopePairing { Adjacent, HalfSplit };

enum class AttentionKind { Dense };
enum class MlpKind { Dense };

/// What a family's files must have beyond the common tensors.
struct FamilyTraits {
    std::string_view architecture;  ///< general.architecture, also the prefix of its keys
    RopePairing rope;
    bool needs_qkv_bias;
    bool needs_qk_norm;
};

/// Every family this decoder runs.
[[nodiscard]] std::span<const FamilyTraits> families();

struct LayerConfig {
    AttentionKind attention = AttentionKind::Dense;
    MlpKind mlp = MlpKind::Dense;
};

struct RopeConfig {
    RopePairing pairing = RopePairing::Adjacent;
    double freq_base = 10000.0;
    size_t n_dims = 0;           ///< of a head that are rotated; the rest pass through
    double linear_factor = 1.0;  ///< positions are divided by it
};

struct ModelConfig {
    const FamilyTraits* family = nullptr;
    std::string name;
    size_t n_layers = 0;
    size_t dim = 0;
    size_t ff_dim = 0;
    size_t n_heads = 0;
    size_t n_kv_heads = 0;
    size_t head_dim = 0;
    size_t vocab_size = 0;  ///< rows of the embedding
    size_t context_tokens = 0;
    float norm_eps = 0.0F;
    RopeConfig rope;
    std::vector<LayerConfig> layers;
};

/// Metadata that replaces the model's own: from adapters. The key without its architecture prefix.
struct ConfigOverrides {
    std::optional<double> freq_base;
    std::optional<uint64_t> context_tokens;
};

/// Errors: Corrupt for missing, absurd or contradicting values, Unsupported for architectures and
/// features that this decoder lacks; the message names the key.
[[nodiscard]] Result<ModelConfig> modelConfigFromGguf(const GgufFile& file,
                                                      const ConfigOverrides& overrides = {});

/// Radians per position of each rotated pair. `divisors` come from rope_freqs.weight (Llama 3), or
/// are empty.
[[nodiscard]] std::vector<float> ropeFrequencies(const RopeConfig& rope,
                                                 std::span<const float> divisors);

}  // namespace belvedere::inference
