// SPDX-License-Identifier: Apache-2.0
#include "inference/model/model_config.h"

#include <algorithm>
#include <cmath>

#include "inference/model/key_reader.h"
#include "inference/model/sparse_config.h"

namespace belvedere::inference {
namespace {

// Far above any published model of these families, far below where a product of three overflows.
constexpr uint64_t kMaxLayers = 1024;
constexpr uint64_t kMaxDim = 1U << 18;
constexpr uint64_t kMaxHeads = 4096;
constexpr uint64_t kMaxHeadDim = 1024;
constexpr uint64_t kMaxVocab = 1U << 24;
constexpr uint64_t kMaxContext = 1U << 28;

constexpr FamilyTraits kFamilies[] = {
    {"llama", RopePairing::Adjacent, false, QkNorm::None},
    {"qwen2", RopePairing::HalfSplit, true, QkNorm::None},
    {"qwen3", RopePairing::HalfSplit, false, QkNorm::PerHead},
    {"qwen3moe", RopePairing::HalfSplit, false, QkNorm::PerHead, Activation::SwiGlu, true},
    {"minimax-m2", RopePairing::HalfSplit, false, QkNorm::PerToken, Activation::SwiGlu, true},
    {"minimax-m3", RopePairing::HalfSplit, false, QkNorm::PerHead, Activation::SwiGluOai, true},
};

Result<const FamilyTraits*> findFamily(const GgufFile& file) {
    const auto architecture = BV_TRY(file.requiredString("general.architecture"));
    std::string known;
    for (const FamilyTraits& family : kFamilies) {
        if (family.architecture == architecture) {
            return &family;
        }
        known += known.empty() ? "" : ", ";
        known += family.architecture;
    }
    return fail(ErrorCode::Unsupported, "{}: architecture \"{}\" is not supported (supported: {})",
                file.name(), architecture.substr(0, 64), known);
}

Result<RopeConfig> readRope(const GgufFile& file,
                            const KeyReader& keys,
                            const FamilyTraits& family,
                            size_t head_dim,
                            const ConfigOverrides& overrides) {
    RopeConfig rope;
    rope.pairing = family.rope;
    // Files of the first Llamas leave it out; elsewhere a default would be a guess.
    const double usual = family.architecture == "llama" ? 10000.0 : 0.0;
    rope.freq_base =
        overrides.freq_base ? *overrides.freq_base : BV_TRY(keys.floatOr("rope.freq_base", usual));
    if (!(rope.freq_base >= 1.0 && rope.freq_base <= 1e12)) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing or out of range ({})", file.name(),
                    keys.key("rope.freq_base"), rope.freq_base);
    }
    rope.n_dims = BV_TRY(keys.countOr("rope.dimension_count", head_dim, head_dim));
    if (rope.n_dims % 2 != 0) {
        return fail(ErrorCode::Corrupt, "{}: {} is odd ({})", file.name(),
                    keys.key("rope.dimension_count"), rope.n_dims);
    }
    const auto scaling = BV_TRY(keys.textOr("rope.scaling.type", "none"));
    if (scaling == "linear") {
        rope.linear_factor = BV_TRY(keys.floatOr("rope.scaling.factor", 1.0));
        if (!(rope.linear_factor >= 1.0 && rope.linear_factor <= 1e6)) {
            return fail(ErrorCode::Corrupt, "{}: {} is {}", file.name(),
                        keys.key("rope.scaling.factor"), rope.linear_factor);
        }
    } else if (scaling != "none") {
        return fail(ErrorCode::Unsupported,
                    "{}: RoPE scaling \"{}\" is not supported (supported: none, linear, llama3)",
                    file.name(), scaling.substr(0, 32));
    }
    return rope;
}

Result<void> readHeads(const GgufFile& file, const KeyReader& keys, ModelConfig& config) {
    config.n_heads = BV_TRY(keys.countOfLayers("attention.head_count", kMaxHeads, config.n_layers));
    config.n_kv_heads = config.n_heads;
    if (file.findValue(keys.key("attention.head_count_kv")) != nullptr) {
        config.n_kv_heads =
            BV_TRY(keys.countOfLayers("attention.head_count_kv", kMaxHeads, config.n_layers));
    }
    if (config.n_heads % config.n_kv_heads != 0) {
        return fail(ErrorCode::Corrupt, "{}: {} query heads cannot share {} KV heads", file.name(),
                    config.n_heads, config.n_kv_heads);
    }
    const size_t from_dim = config.dim / config.n_heads;
    if (from_dim == 0 && file.findValue(keys.key("attention.key_length")) == nullptr) {
        return fail(ErrorCode::Corrupt, "{}: {} heads in an embedding of {}", file.name(),
                    config.n_heads, config.dim);
    }
    config.head_dim = BV_TRY(keys.countOr("attention.key_length", kMaxHeadDim, from_dim));
    const size_t value_dim =
        BV_TRY(keys.countOr("attention.value_length", kMaxHeadDim, config.head_dim));
    if (config.head_dim > kMaxHeadDim || value_dim != config.head_dim) {
        return fail(ErrorCode::Unsupported, "{}: keys of {} and values of {} elements a head",
                    file.name(), config.head_dim, value_dim);
    }
    return {};
}

Result<size_t> readVocabSize(const GgufFile& file, size_t dim) {
    const GgufTensor* embedding = file.findTensor("token_embd.weight");
    if (embedding == nullptr) {
        return fail(ErrorCode::Corrupt,
                    "{}: tensor token_embd.weight is missing: a file without weights", file.name());
    }
    if (embedding->dims[0] != dim || embedding->dims[1] > kMaxVocab ||
        embedding->dims[2] * embedding->dims[3] != 1) {
        return fail(ErrorCode::Corrupt,
                    "{}: token_embd.weight is {} x {}, expected {} x vocabulary", file.name(),
                    embedding->dims[0], embedding->dims[1], dim);
    }
    return static_cast<size_t>(embedding->dims[1]);
}

/// Width of the dense MLPs. In files of models with experts the key holds now this, now the width
/// of an expert: there the first dense layer's tensor says it.
Result<size_t> readFfDim(const GgufFile& file, const KeyReader& keys, const ModelConfig& config) {
    if (!config.family->has_experts) {
        return keys.countOfLayers("feed_forward_length", kMaxDim, config.n_layers);
    }
    for (size_t layer = 0; layer < config.n_layers; ++layer) {
        if (config.layers[layer].mlp != MlpKind::Dense) {
            continue;
        }
        const std::string name = fmt::format("blk.{}.ffn_gate.weight", layer);
        const GgufTensor* gate = file.findTensor(name);
        if (gate == nullptr) {
            return fail(ErrorCode::Corrupt, "{}: tensor {} is missing", file.name(), name);
        }
        if (gate->dims[1] > kMaxDim) {
            return fail(ErrorCode::Corrupt, "{}: {} has {} rows", file.name(), name, gate->dims[1]);
        }
        return static_cast<size_t>(gate->dims[1]);
    }
    return size_t{0};
}

/// Which layers choose blocks, and by what rule.
Result<void> readMsaLayers(const GgufFile& file,
                           const ConfigOverrides& overrides,
                           ModelConfig& config) {
    const auto own = BV_TRY(readMsaConfig(file, config.family->architecture));
    for (size_t layer = 0; layer < config.n_layers; ++layer) {
        const bool is_own =
            file.findTensor(fmt::format("blk.{}.indexer.q_proj.weight", layer)) != nullptr;
        const bool is_added =
            std::binary_search(overrides.msa_layers.begin(), overrides.msa_layers.end(), layer);
        if (is_own || is_added) {
            config.layers[layer].attention = AttentionKind::Msa;
        }
    }
    if (!config.hasMsa()) {
        return {};
    }
    if (own && overrides.msa) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: model and adapter both bring an MSA index: use one of them", file.name());
    }
    if (!own && !overrides.msa) {
        return fail(ErrorCode::Corrupt, "{}: index tensors without {}.attention.indexer keys",
                    file.name(), config.family->architecture);
    }
    config.msa = own ? *own : *overrides.msa;
    if (config.msa.n_heads != config.n_kv_heads) {
        return fail(ErrorCode::Corrupt, "{}: {} index heads for {} KV heads", file.name(),
                    config.msa.n_heads, config.n_kv_heads);
    }
    if (config.msa.head_dim < config.rope.n_dims) {
        return fail(ErrorCode::Corrupt, "{}: {} rotary dimensions in an index head of {}",
                    file.name(), config.rope.n_dims, config.msa.head_dim);
    }
    return {};
}

/// A window over the newest positions is the same as none while the context is not longer.
Result<void> limitToSlidingWindow(const KeyReader& keys, ModelConfig& config) {
    const size_t window =
        BV_TRY(keys.countOr("attention.sliding_window", kMaxContext, config.context_tokens));
    config.context_tokens = std::min(config.context_tokens, window);
    return {};
}

}  // namespace

bool ModelConfig::hasMsa() const {
    return std::any_of(layers.begin(), layers.end(), [](const LayerConfig& layer) {
        return layer.attention == AttentionKind::Msa;
    });
}

std::span<const FamilyTraits> families() {
    return kFamilies;
}

Result<ModelConfig> modelConfigFromGguf(const GgufFile& file, const ConfigOverrides& overrides) {
    ModelConfig config;
    config.family = BV_TRY(findFamily(file));
    const KeyReader keys(file, config.family->architecture);
    config.name = BV_TRY(file.findString("general.name")).value_or(std::string_view());
    if (!config.family->has_experts) {
        BV_TRY(keys.refuse("expert_count", "a mixture of experts"));
    }
    config.n_layers = BV_TRY(keys.count("block_count", kMaxLayers));
    config.dim = BV_TRY(keys.count("embedding_length", kMaxDim));
    config.layers.assign(config.n_layers, LayerConfig());
    if (config.family->has_experts) {
        BV_TRY(readExperts(file, keys, config));
    }
    config.ff_dim = BV_TRY(readFfDim(file, keys, config));
    BV_TRY(readHeads(file, keys, config));
    config.vocab_size = BV_TRY(readVocabSize(file, config.dim));
    config.context_tokens = BV_TRY(keys.count("context_length", kMaxContext));
    BV_TRY(limitToSlidingWindow(keys, config));
    if (overrides.context_tokens) {
        config.context_tokens = static_cast<size_t>(*overrides.context_tokens);
    }
    const double eps = BV_TRY(file.requiredFloat(keys.key("attention.layer_norm_rms_epsilon")));
    if (!(eps >= 0.0 && eps < 1.0)) {
        return fail(ErrorCode::Corrupt, "{}: {} is {}", file.name(),
                    keys.key("attention.layer_norm_rms_epsilon"), eps);
    }
    config.norm_eps = static_cast<float>(eps);
    config.rope = BV_TRY(readRope(file, keys, *config.family, config.head_dim, overrides));
    BV_TRY(readMsaLayers(file, overrides, config));
    return config;
}

std::vector<float> ropeFrequencies(const RopeConfig& rope, std::span<const float> divisors) {
    std::vector<float> frequencies(rope.n_dims / 2);
    for (size_t i = 0; i < frequencies.size(); ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rope.n_dims);
        double frequency = std::pow(rope.freq_base, exponent) / rope.linear_factor;
        if (!divisors.empty()) {
            frequency /= static_cast<double>(divisors[i]);
        }
        frequencies[i] = static_cast<float>(frequency);
    }
    return frequencies;
}

}  // namespace belvedere::inference
