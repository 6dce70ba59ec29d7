// SPDX-License-Identifier: Apache-2.0
#include "inference/model/gguf_config.h"

#include <algorithm>

#include "inference/model/config_checks.h"
#include "inference/model/key_reader.h"
#include "inference/model/sparse_config.h"

namespace belvedere::inference {
namespace {

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
    BV_TRY(checkFreqBase(file.name(), keys.key("rope.freq_base"), rope.freq_base));
    rope.n_dims = BV_TRY(keys.countOr("rope.dimension_count", head_dim, head_dim));
    BV_TRY(checkRotatedDims(file.name(), keys.key("rope.dimension_count"), rope.n_dims));
    const auto scaling = BV_TRY(keys.textOr("rope.scaling.type", "none"));
    if (scaling == "linear") {
        rope.linear_factor = BV_TRY(keys.floatOr("rope.scaling.factor", 1.0));
        BV_TRY(checkLinearFactor(file.name(), keys.key("rope.scaling.factor"), rope.linear_factor));
    } else if (scaling != "none") {
        return fail(ErrorCode::Unsupported,
                    "{}: RoPE scaling \"{}\" is not supported (supported: none, linear, llama3)",
                    file.name(), scaling.substr(0, 32));
    }
    return rope;
}

Result<void> readHeads(const GgufFile& file, const KeyReader& keys, ModelConfig& config) {
    config.n_heads =
        BV_TRY(keys.countOfLayers("attention.head_count", kMaxModelHeads, config.n_layers));
    config.n_kv_heads = config.n_heads;
    if (file.findValue(keys.key("attention.head_count_kv")) != nullptr) {
        config.n_kv_heads =
            BV_TRY(keys.countOfLayers("attention.head_count_kv", kMaxModelHeads, config.n_layers));
    }
    BV_TRY(checkHeads(file.name(), config));
    const size_t from_dim = config.dim / config.n_heads;
    if (from_dim == 0 && file.findValue(keys.key("attention.key_length")) == nullptr) {
        return fail(ErrorCode::Corrupt, "{}: {} heads in an embedding of {}", file.name(),
                    config.n_heads, config.dim);
    }
    config.head_dim = BV_TRY(keys.countOr("attention.key_length", kMaxModelHeadDim, from_dim));
    const size_t value_dim =
        BV_TRY(keys.countOr("attention.value_length", kMaxModelHeadDim, config.head_dim));
    if (config.head_dim > kMaxModelHeadDim || value_dim != config.head_dim) {
        return fail(ErrorCode::Unsupported, "{}: keys of {} and values of {} elements a head",
                    file.name(), config.head_dim, value_dim);
    }
    return {};
}

Result<size_t> readVocabSize(const GgufFile& file, size_t dim) {
    const ModelTensor* embedding = file.findTensor("token_embd.weight");
    if (embedding == nullptr) {
        return fail(ErrorCode::Corrupt,
                    "{}: tensor token_embd.weight is missing: a file without weights", file.name());
    }
    if (embedding->dims[0] != dim || embedding->dims[1] > kMaxVocabulary ||
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
        return keys.countOfLayers("feed_forward_length", kMaxModelDim, config.n_layers);
    }
    for (size_t layer = 0; layer < config.n_layers; ++layer) {
        if (config.layers[layer].mlp != MlpKind::Dense) {
            continue;
        }
        const std::string name = fmt::format("blk.{}.ffn_gate.weight", layer);
        const ModelTensor* gate = file.findTensor(name);
        if (gate == nullptr) {
            return fail(ErrorCode::Corrupt, "{}: tensor {} is missing", file.name(), name);
        }
        if (gate->dims[1] > kMaxModelDim) {
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
        if (file.findTensor(fmt::format("blk.{}.indexer.q_proj.weight", layer)) != nullptr) {
            config.layers[layer].attention = AttentionKind::Msa;
        }
    }
    return joinMsa(file.name(), own, overrides, config);
}

/// A window over the newest positions is the same as none while the context is not longer.
Result<void> limitToSlidingWindow(const KeyReader& keys, ModelConfig& config) {
    const size_t window =
        BV_TRY(keys.countOr("attention.sliding_window", kMaxContextTokens, config.context_tokens));
    config.context_tokens = std::min(config.context_tokens, window);
    return {};
}

}  // namespace

Result<ModelConfig> modelConfigFromGguf(const GgufFile& file, const ConfigOverrides& overrides) {
    ModelConfig config;
    config.family =
        BV_TRY(findFamily(file.name(), BV_TRY(file.requiredString("general.architecture"))));
    config.biases.qkv = config.family->needs_qkv_bias;
    const KeyReader keys(file, config.family->architecture);
    config.name = BV_TRY(file.findString("general.name")).value_or(std::string_view());
    if (!config.family->has_experts) {
        BV_TRY(keys.refuse("expert_count", "a mixture of experts"));
    }
    config.n_layers = BV_TRY(keys.count("block_count", kMaxLayers));
    config.dim = BV_TRY(keys.count("embedding_length", kMaxModelDim));
    config.layers.assign(config.n_layers, LayerConfig());
    if (config.family->has_experts) {
        BV_TRY(readExperts(file, keys, config));
    }
    config.ff_dim = BV_TRY(readFfDim(file, keys, config));
    BV_TRY(readHeads(file, keys, config));
    config.vocab_size = BV_TRY(readVocabSize(file, config.dim));
    config.context_tokens = BV_TRY(keys.count("context_length", kMaxContextTokens));
    BV_TRY(limitToSlidingWindow(keys, config));
    if (overrides.context_tokens) {
        config.context_tokens = static_cast<size_t>(*overrides.context_tokens);
    }
    const double eps = BV_TRY(file.requiredFloat(keys.key("attention.layer_norm_rms_epsilon")));
    BV_TRY(checkNormEps(file.name(), keys.key("attention.layer_norm_rms_epsilon"), eps));
    config.norm_eps = static_cast<float>(eps);
    config.rope = BV_TRY(readRope(file, keys, *config.family, config.head_dim, overrides));
    BV_TRY(readMsaLayers(file, overrides, config));
    return config;
}

}  // namespace belvedere::inference
