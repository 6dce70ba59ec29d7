// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a decoder is, as a value: families differ in these numbers and in the table of
// model_config.cpp, never in code. Read from a GGUF's metadata or a checkpoint's config.json and
// checked; tensor shapes are checked against it in weights.cpp. A plain value: any thread.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace belvedere::inference {

/// Which elements of a head turn together. Llama's converter to GGUF reorders the rows of q and k
/// for Adjacent; checkpoints are HalfSplit throughout.
enum class RopePairing { Adjacent, HalfSplit };

/// Msa: the layer has an index branch that chooses the blocks it attends to.
enum class AttentionKind { Dense, Msa };
enum class MlpKind { Dense, Experts };

/// What RMS norm of q and k covers: nothing, each head by itself, or all heads of a token at once.
enum class QkNorm { None, PerHead, PerToken };

/// How gate and up become one.
enum class Activation { SwiGlu, SwiGluOai };

/// How logits of the router become scores of experts.
enum class RouterKind { Softmax, Sigmoid };

/// What a family's files must have beyond the common tensors.
struct FamilyTraits {
    std::string_view architecture;  ///< general.architecture, also the prefix of its keys
    RopePairing rope;               ///< of its GGUF files
    bool needs_qkv_bias;
    QkNorm qk_norm;
    Activation activation = Activation::SwiGlu;
    bool has_experts = false;
};

/// Every family this decoder runs.
[[nodiscard]] std::span<const FamilyTraits> families();

/// Errors: Unsupported with the supported ones; `file` stands in the message.
[[nodiscard]] Result<const FamilyTraits*> findFamily(const std::string& file,
                                                     std::string_view architecture);

struct LayerConfig {
    AttentionKind attention = AttentionKind::Dense;
    MlpKind mlp = MlpKind::Dense;
};

/// The index branch of the layers whose attention is Msa. Source: MSA, arXiv:2606.13392.
struct MsaConfig {
    size_t n_heads = 0;  ///< one for each KV head
    size_t head_dim = 0;
    size_t block_tokens = 0;
    size_t top_k = 0;  ///< blocks
    size_t n_init = 0;
    size_t n_local = 1;
};

/// The layers whose MLP is Experts.
struct MoeConfig {
    size_t n_experts = 0;
    size_t n_used = 0;
    size_t ff_dim = 0;
    size_t shared_ff_dim = 0;  ///< 0: no shared expert
    RouterKind router = RouterKind::Softmax;
    bool has_choice_bias = false;  ///< added to the scores for the choice only
    float scale = 1.0F;            ///< of the routed part, whose weights sum to 1
};

/// Of Activation::SwiGluOai; KernelTable::swiglu_oai has the formula. GGUF does not store them, so
/// these are MiniMax-M3's values.
struct SwiGluOaiConfig {
    float alpha = 1.702F;
    float limit = 7.0F;
};

struct RopeConfig {
    RopePairing pairing = RopePairing::Adjacent;
    double freq_base = 10000.0;
    size_t n_dims = 0;            ///< of a head that are rotated; the rest pass through
    double linear_factor = 1.0;   ///< positions are divided by it
    std::vector<float> divisors;  ///< of each frequency, or empty; a tensor of that kind goes first
};

/// Biases that every layer must have.
struct BiasConfig {
    bool qkv = false;
    bool output = false;  ///< of attention
    bool mlp = false;
};

struct ModelConfig {
    const FamilyTraits* family = nullptr;
    std::string name;
    size_t n_layers = 0;
    size_t dim = 0;
    size_t ff_dim = 0;  ///< of dense MLPs; 0 where every layer has experts
    size_t n_heads = 0;
    size_t n_kv_heads = 0;
    size_t head_dim = 0;
    size_t vocab_size = 0;  ///< rows of the embedding
    size_t context_tokens = 0;
    float norm_eps = 0.0F;
    RopeConfig rope;
    MsaConfig msa;  ///< where some layer is Msa
    MoeConfig moe;  ///< where some layer has Experts
    SwiGluOaiConfig swiglu_oai;
    BiasConfig biases;
    std::vector<LayerConfig> layers;

    [[nodiscard]] bool hasMsa() const;
    /// Layers that choose blocks, ascending.
    [[nodiscard]] std::vector<size_t> msaLayers() const;
};

/// Metadata that replaces or adds to the model's own: from adapters. Keys without their
/// architecture prefix.
struct ConfigOverrides {
    std::optional<double> freq_base;
    std::optional<uint64_t> context_tokens;
    std::optional<MsaConfig> msa;
    std::vector<size_t> msa_layers;  ///< ascending
};

/// Radians per position of each rotated pair. `divisors` are Llama 3's, or empty.
[[nodiscard]] std::vector<float> ropeFrequencies(const RopeConfig& rope,
                                                 std::span<const float> divisors);

}  // namespace belvedere::inference
