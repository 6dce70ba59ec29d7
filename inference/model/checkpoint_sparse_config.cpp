// SPDX-License-Identifier: Apache-2.0
// What is sparse in a checkpoint. Which layers attend densely and which have a dense MLP are two
// lists; nothing says that they are the same.
#include <algorithm>

#include "inference/model/checkpoint_config.h"
#include "inference/model/config_checks.h"
#include "kernels/kernels.h"

namespace belvedere::inference {
namespace {

using Switches = std::optional<std::vector<bool>>;

/// A list that has one name in published files and another in those of transformers.
Result<std::vector<bool>> eitherList(const ConfigJson& text,
                                     const std::string& published_key,
                                     const Switches& published,
                                     const char* other_key,
                                     const Switches& other) {
    if (!published && !other) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing", text.file(), published_key);
    }
    if (published && other && *published != *other) {
        return fail(ErrorCode::Corrupt, "{}: {} and {} contradict each other", text.file(),
                    published_key, text.path(other_key));
    }
    return published ? *published : *other;
}

void useExperts(const std::vector<bool>& layers, ModelConfig& model) {
    for (size_t layer = 0; layer < model.n_layers; ++layer) {
        model.layers[layer].mlp = layers[layer] ? MlpKind::Experts : MlpKind::Dense;
    }
}

bool hasDenseMlp(const ModelConfig& model) {
    return std::any_of(model.layers.begin(), model.layers.end(),
                       [](const LayerConfig& layer) { return layer.mlp == MlpKind::Dense; });
}

Result<void> readExpertCounts(const ConfigJson& text, MoeConfig& moe) {
    const char* key = text.has("num_experts") ? "num_experts" : "num_local_experts";
    moe.n_experts = BV_TRY(text.count(key, kMaxExperts));
    moe.n_used = BV_TRY(text.count("num_experts_per_tok", moe.n_experts));
    return {};
}

Result<void> readScale(const ConfigJson& text, double scale, MoeConfig& moe) {
    BV_TRY(checkExpertScale(text.file(), text.path("routed_scaling_factor"), scale));
    moe.scale = static_cast<float>(scale);
    return {};
}

Result<void> readQwen3Moe(const ConfigJson& text, ModelConfig& model) {
    BV_TRY(readExpertCounts(text, model.moe));
    model.moe.ff_dim = BV_TRY(text.count("moe_intermediate_size", kMaxModelDim));
    model.moe.router = RouterKind::Softmax;  // the family knows no other
    BV_TRY(text.textIsOr("scoring_func", "softmax"));
    BV_TRY(text.flag("norm_topk_prob"));
    BV_TRY(text.flagIsOr("norm_topk_prob", true));
    const size_t step = BV_TRY(text.findCount("decoder_sparse_step", kMaxLayers)).value_or(1);
    const auto dense = BV_TRY(text.findUints("mlp_only_layers", model.n_layers));
    std::vector<bool> layers(model.n_layers);
    for (size_t layer = 0; layer < model.n_layers; ++layer) {
        layers[layer] =
            (layer + 1) % step == 0 && std::find(dense.begin(), dense.end(), layer) == dense.end();
    }
    useExperts(layers, model);
    if (hasDenseMlp(model)) {
        model.ff_dim = BV_TRY(text.count("intermediate_size", kMaxModelDim));
    }
    return {};
}

/// Files of transformers leave out what the family has no choice in.
Result<void> readMiniMaxM2(const ConfigJson& text, ModelConfig& model) {
    BV_TRY(readExpertCounts(text, model.moe));
    model.moe.ff_dim = BV_TRY(text.count("intermediate_size", kMaxModelDim));
    model.moe.router = RouterKind::Sigmoid;
    model.moe.has_choice_bias = true;
    BV_TRY(text.textIsOr("scoring_func", "sigmoid"));
    BV_TRY(text.flagIsOr("use_routing_bias", true));
    BV_TRY(text.flagIsOr("use_qk_norm", true));
    BV_TRY(text.textIsOr("qk_norm_type", "per_layer"));
    BV_TRY(
        readScale(text, BV_TRY(text.findNumber("routed_scaling_factor")).value_or(1.0), model.moe));
    if (BV_TRY(text.findUint("shared_intermediate_size", kMaxModelDim)).value_or(0) != 0) {
        return text.mismatch("shared_intermediate_size", "0");
    }
    const auto full = BV_TRY(text.findSwitches("attn_type_list", model.n_layers));
    if (full && std::find(full->begin(), full->end(), false) != full->end()) {
        return text.mismatch("attn_type_list", "1 for every layer");
    }
    useExperts(std::vector<bool>(model.n_layers, true), model);
    return {};
}

/// A router, norms or a q/k norm other than M3's would be another model: nothing here is assumed.
/// Files of transformers leave these keys out, as their class has no other.
Result<void> readM3Kinds(const ConfigJson& text, CheckpointConfig& config) {
    const bool of_transformers = text.has("mlp_layer_types");
    if (!of_transformers) {
        BV_TRY(text.text("scoring_func"));
        BV_TRY(text.flag("use_routing_bias"));
        BV_TRY(text.flag("use_qk_norm"));
        BV_TRY(text.text("qk_norm_type"));
        BV_TRY(text.flag("use_gemma_norm"));
    }
    BV_TRY(text.textIsOr("scoring_func", "sigmoid"));
    BV_TRY(text.flagIsOr("use_routing_bias", true));
    BV_TRY(text.flagIsOr("use_qk_norm", true));
    BV_TRY(text.textIsOr("qk_norm_type", "per_head"));
    BV_TRY(text.flagIsOr("attention_output_gate", false));
    config.norms_add_one = BV_TRY(text.findFlag("use_gemma_norm")).value_or(true);
    return {};
}

Result<void> readM3Experts(const ConfigJson& text, ModelConfig& model) {
    MoeConfig& moe = model.moe;
    BV_TRY(readExpertCounts(text, moe));
    moe.ff_dim = BV_TRY(text.count("intermediate_size", kMaxModelDim));
    moe.router = RouterKind::Sigmoid;
    moe.has_choice_bias = true;
    BV_TRY(readScale(text, BV_TRY(text.number("routed_scaling_factor")), moe));
    const auto published = BV_TRY(text.findSwitches("moe_layer_freq", model.n_layers));
    const auto other =
        BV_TRY(text.findChoices("mlp_layer_types", model.n_layers, "dense", "sparse"));
    useExperts(
        BV_TRY(eitherList(text, text.path("moe_layer_freq"), published, "mlp_layer_types", other)),
        model);
    if (hasDenseMlp(model)) {
        model.ff_dim = BV_TRY(text.count("dense_intermediate_size", kMaxModelDim));
    }
    const auto n_shared = BV_TRY(text.findUint("n_shared_experts", kMaxExperts));
    if (!n_shared) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing", text.file(),
                    text.path("n_shared_experts"));
    }
    if (*n_shared > 0) {
        // Experts that all tokens share are stored as one of their joined width.
        moe.shared_ff_dim =
            *n_shared * BV_TRY(text.count("shared_intermediate_size", kMaxModelDim));
    }
    return {};
}

/// The value of a key that stands in the published group of keys or, renamed, beside it.
Result<size_t> indexCount(const ConfigJson& text,
                          const std::optional<ConfigJson>& group,
                          const char* published,
                          const char* other,
                          uint64_t max) {
    return group && (group->has(published) || !text.has(other)) ? group->count(published, max)
                                                                : text.count(other, max);
}

Result<void> readM3Index(const ConfigJson& text,
                         const std::optional<ConfigJson>& group,
                         MsaConfig& msa) {
    msa.n_heads = BV_TRY(
        indexCount(text, group, "sparse_num_index_heads", "index_n_heads", kernels::kMaxHeadDim));
    msa.head_dim =
        BV_TRY(indexCount(text, group, "sparse_index_dim", "index_head_dim", kernels::kMaxHeadDim));
    msa.block_tokens =
        BV_TRY(indexCount(text, group, "sparse_block_size", "index_block_size", kMaxBlockTokens));
    msa.top_k = BV_TRY(
        indexCount(text, group, "sparse_topk_blocks", "index_topk_blocks", kernels::kMaxTopBlocks));
    msa.n_local = BV_TRY(indexCount(text, group, "sparse_local_block", "index_local_blocks",
                                    kernels::kMaxTopBlocks));
    if (group) {
        msa.n_init =
            BV_TRY(group->findUint("sparse_init_block", kernels::kMaxTopBlocks)).value_or(0);
        BV_TRY(group->textIsOr("sparse_score_type", "max"));
    }
    return checkMsa(text.file(), msa);
}

Result<void> readM3Attention(const ConfigJson& text, ModelConfig& model) {
    const auto group = BV_TRY(text.findObject("sparse_attention_config"));
    const auto published =
        group ? BV_TRY(group->findSwitches("sparse_attention_freq", model.n_layers)) : Switches();
    const auto other = BV_TRY(
        text.findChoices("layer_types", model.n_layers, "full_attention", "minimax_m3_sparse"));
    const auto layers =
        BV_TRY(eitherList(text, text.path("sparse_attention_config.sparse_attention_freq"),
                          published, "layer_types", other));
    if (group && !BV_TRY(group->findFlag("use_sparse_attention")).value_or(true)) {
        return {};
    }
    for (size_t layer = 0; layer < model.n_layers; ++layer) {
        model.layers[layer].attention = layers[layer] ? AttentionKind::Msa : AttentionKind::Dense;
    }
    if (!model.hasMsa()) {
        return {};
    }
    const auto without_value =
        group ? BV_TRY(group->findSwitches("sparse_disable_index_value", model.n_layers))
              : Switches();
    for (size_t layer = 0; without_value && layer < model.n_layers; ++layer) {
        if (layers[layer] && !(*without_value)[layer]) {
            return group->mismatch("sparse_disable_index_value", "1 for every sparse layer");
        }
    }
    return readM3Index(text, group, model.msa);
}

}  // namespace

Result<void> readCheckpointSparsity(const ConfigJson& text, CheckpointConfig& config) {
    ModelConfig& model = config.model;
    if (model.family->architecture == "qwen3moe") {
        return readQwen3Moe(text, model);
    }
    if (model.family->architecture == "minimax-m2") {
        return readMiniMaxM2(text, model);
    }
    if (model.family->architecture == "minimax-m3") {
        BV_TRY(readM3Kinds(text, config));
        BV_TRY(readM3Experts(text, model));
        BV_TRY(readM3Attention(text, model));
        return joinMsa(text.file(), model.hasMsa() ? std::optional(model.msa) : std::nullopt, {},
                       model);
    }
    model.ff_dim = BV_TRY(text.count("intermediate_size", kMaxModelDim));
    return {};
}

}  // namespace belvedere::inference
