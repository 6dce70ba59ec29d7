// SPDX-License-Identifier: Apache-2.0
#include "inference/model/weights.h"

#include <cmath>

#include "inference/model/tensor_lookup.h"

namespace belvedere::inference {
namespace {

/// The tensors of one layer, checked, not yet moved.
struct LayerViews {
    std::vector<float> attention_norm;
    LinearView q, k, v, o;
    std::vector<float> q_norm, k_norm;  ///< empty: none
    std::vector<float> mlp_norm;
    LinearView gate, up, down;
};

Result<LayerViews> layerViews(TensorLookup& lookup, const ModelConfig& config, size_t layer) {
    const std::string prefix = fmt::format("blk.{}.", layer);
    const size_t q_dim = config.n_heads * config.head_dim;
    const size_t kv_dim = config.n_kv_heads * config.head_dim;
    LayerViews views;
    views.attention_norm = BV_TRY(lookup.vector(prefix + "attn_norm.weight", config.dim));
    views.q = BV_TRY(lookup.linear(prefix + "attn_q", q_dim, config.dim));
    views.k = BV_TRY(lookup.linear(prefix + "attn_k", kv_dim, config.dim));
    views.v = BV_TRY(lookup.linear(prefix + "attn_v", kv_dim, config.dim));
    views.o = BV_TRY(lookup.linear(prefix + "attn_output", config.dim, q_dim));
    if (config.family->needs_qkv_bias &&
        (views.q.bias.empty() || views.k.bias.empty() || views.v.bias.empty())) {
        return fail(ErrorCode::Corrupt, "{}: {}attn_q, attn_k and attn_v need biases in {}",
                    lookup.fileName(), prefix, config.family->architecture);
    }
    if (config.family->needs_qk_norm) {
        views.q_norm = BV_TRY(lookup.vector(prefix + "attn_q_norm.weight", config.head_dim));
        views.k_norm = BV_TRY(lookup.vector(prefix + "attn_k_norm.weight", config.head_dim));
    }
    views.mlp_norm = BV_TRY(lookup.vector(prefix + "ffn_norm.weight", config.dim));
    views.gate = BV_TRY(lookup.linear(prefix + "ffn_gate", config.ff_dim, config.dim));
    views.up = BV_TRY(lookup.linear(prefix + "ffn_up", config.ff_dim, config.dim));
    views.down = BV_TRY(lookup.linear(prefix + "ffn_down", config.dim, config.ff_dim));
    return views;
}

Result<LayerWeights> moveLayer(const LayerViews& views, Backend& backend) {
    LayerWeights layer;
    layer.attention_norm = BV_TRY(backend.addVector(views.attention_norm));
    layer.q = BV_TRY(backend.addLinear(views.q));
    layer.k = BV_TRY(backend.addLinear(views.k));
    layer.v = BV_TRY(backend.addLinear(views.v));
    layer.o = BV_TRY(backend.addLinear(views.o));
    if (!views.q_norm.empty()) {
        layer.q_norm = BV_TRY(backend.addVector(views.q_norm));
        layer.k_norm = BV_TRY(backend.addVector(views.k_norm));
    }
    layer.mlp_norm = BV_TRY(backend.addVector(views.mlp_norm));
    layer.gate = BV_TRY(backend.addLinear(views.gate));
    layer.up = BV_TRY(backend.addLinear(views.up));
    layer.down = BV_TRY(backend.addLinear(views.down));
    return layer;
}

/// What stands outside the layers.
struct OuterViews {
    LinearView embedding;
    std::vector<float> output_norm;
    std::optional<LinearView> head;
};

Result<OuterViews> outerViews(TensorLookup& lookup, const ModelConfig& config) {
    OuterViews views;
    views.embedding = BV_TRY(lookup.linear("token_embd", config.vocab_size, config.dim));
    views.output_norm = BV_TRY(lookup.vector("output_norm.weight", config.dim));
    if (lookup.has("output.weight")) {
        views.head = BV_TRY(lookup.linear("output", config.vocab_size, config.dim));
    }
    return views;
}

/// Asks for what needs no place in the weights.
Result<void> checkRopeDivisors(TensorLookup& lookup, const ModelConfig& config) {
    if (lookup.has("rope_freqs.weight")) {
        const std::vector<float> divisors =
            BV_TRY(lookup.vector("rope_freqs.weight", config.rope.n_dims / 2));
        for (const float divisor : divisors) {
            if (!std::isfinite(divisor) || divisor <= 0.0F) {
                return fail(ErrorCode::Corrupt, "{}: rope_freqs.weight holds {}", lookup.fileName(),
                            divisor);
            }
        }
    }
    return {};
}

Result<void> checkIndexedLayers(const AdapterSet& adapters, const ModelConfig& config) {
    if (!adapters.indexedLayers().empty() && adapters.indexedLayers().back() >= config.n_layers) {
        return fail(ErrorCode::InvalidArgument,
                    "the adapter has an index branch in layer {}, the model has {} layers",
                    adapters.indexedLayers().back(), config.n_layers);
    }
    return {};
}

}  // namespace

Result<std::vector<float>> ropeDivisors(const GgufFile& file,
                                        const AdapterSet& adapters,
                                        const ModelConfig& config) {
    TensorLookup lookup(file, adapters);
    BV_TRY(checkRopeDivisors(lookup, config));
    if (!lookup.has("rope_freqs.weight")) {
        return std::vector<float>();
    }
    return lookup.vector("rope_freqs.weight", config.rope.n_dims / 2);
}

Result<void> checkTensors(const GgufFile& file,
                          const AdapterSet& adapters,
                          const ModelConfig& config) {
    TensorLookup lookup(file, adapters);
    BV_TRY(outerViews(lookup, config));
    BV_TRY(checkRopeDivisors(lookup, config));
    BV_TRY(checkIndexedLayers(adapters, config));
    for (size_t layer = 0; layer < config.n_layers; ++layer) {
        BV_TRY(layerViews(lookup, config, layer));
    }
    return lookup.refuseUnknown();
}

Result<ModelWeights> loadWeights(const GgufFile& file,
                                 const AdapterSet& adapters,
                                 const ModelConfig& config,
                                 Backend& backend,
                                 const LayerProgress& progress,
                                 const std::stop_token& stop) {
    BV_TRY(checkTensors(file, adapters, config));
    TensorLookup lookup(file, adapters);
    ModelWeights weights;
    const OuterViews outer = BV_TRY(outerViews(lookup, config));
    weights.embedding = BV_TRY(backend.addLinear(outer.embedding));
    weights.output_norm = BV_TRY(backend.addVector(outer.output_norm));
    if (outer.head) {
        weights.untied_head = BV_TRY(backend.addLinear(*outer.head));
    }
    for (size_t layer = 0; layer < config.n_layers; ++layer) {
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "loading {} was stopped", file.name());
        }
        if (progress) {
            progress(static_cast<double>(layer) / static_cast<double>(config.n_layers));
        }
        weights.layers.push_back(
            BV_TRY(moveLayer(BV_TRY(layerViews(lookup, config, layer)), backend)));
    }
    return weights;
}

}  // namespace belvedere::inference
