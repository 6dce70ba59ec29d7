// SPDX-License-Identifier: Apache-2.0
#include "inference/model/weights.h"

#include <cmath>
#include <optional>

#include "inference/model/tensor_lookup.h"

namespace belvedere::inference {
namespace {

/// The tensors of one layer, checked, not yet moved.
struct LayerViews {
    std::vector<float> attention_norm;
    LinearView q, k, v, o;
    std::vector<float> q_norm, k_norm;  ///< empty: none
    std::optional<LinearView> index_q, index_k;
    std::vector<float> index_q_norm, index_k_norm;
    std::vector<float> mlp_norm;
    std::optional<ExpertsView> experts;
    std::optional<LinearView> gate, up, down;
};

Result<LinearView> linear(
    TensorLookup& lookup, const std::string& name, size_t n_rows, size_t n_cols, bool needs_bias) {
    LinearView view = BV_TRY(lookup.linear(name, n_rows, n_cols));
    if (needs_bias && view.bias.empty()) {
        return fail(ErrorCode::Corrupt, "{}: tensor {} is missing", lookup.fileName(),
                    lookup.spelling(name + ".bias"));
    }
    return view;
}

Result<void> addNorms(TensorLookup& lookup,
                      const ModelConfig& config,
                      const std::string& prefix,
                      LayerViews& views) {
    const QkNorm norm = config.family->qk_norm;
    if (norm == QkNorm::None) {
        return {};
    }
    const bool per_head = norm == QkNorm::PerHead;
    const size_t q_dim = (per_head ? 1 : config.n_heads) * config.head_dim;
    const size_t k_dim = (per_head ? 1 : config.n_kv_heads) * config.head_dim;
    views.q_norm = BV_TRY(lookup.vector(prefix + "attn_q_norm.weight", q_dim));
    views.k_norm = BV_TRY(lookup.vector(prefix + "attn_k_norm.weight", k_dim));
    return {};
}

Result<void> addIndex(TensorLookup& lookup,
                      const ModelConfig& config,
                      const std::string& prefix,
                      LayerViews& views) {
    const MsaConfig& msa = config.msa;
    views.index_q =
        BV_TRY(lookup.linear(prefix + "indexer.q_proj", msa.n_heads * msa.head_dim, config.dim));
    views.index_k = BV_TRY(lookup.linear(prefix + "indexer.k_proj", msa.head_dim, config.dim));
    views.index_q_norm = BV_TRY(lookup.vector(prefix + "indexer.q_norm.weight", msa.head_dim));
    views.index_k_norm = BV_TRY(lookup.vector(prefix + "indexer.k_norm.weight", msa.head_dim));
    return {};
}

/// An index branch that is there but not wanted: attention runs dense.
void skipIndex(TensorLookup& lookup, const std::string& prefix) {
    for (const char* name : {"q_proj", "k_proj", "q_norm", "k_norm"}) {
        lookup.skip(fmt::format("{}indexer.{}.weight", prefix, name));
    }
}

/// Gate, up and down, each name with `suffix`: "" or "_shexp".
Result<void> addMlp(TensorLookup& lookup,
                    const ModelConfig& config,
                    const std::string& prefix,
                    const char* suffix,
                    size_t ff_dim,
                    LayerViews& views) {
    const bool biased = config.biases.mlp;
    views.gate = BV_TRY(linear(lookup, prefix + "ffn_gate" + suffix, ff_dim, config.dim, biased));
    views.up = BV_TRY(linear(lookup, prefix + "ffn_up" + suffix, ff_dim, config.dim, biased));
    views.down = BV_TRY(linear(lookup, prefix + "ffn_down" + suffix, config.dim, ff_dim, biased));
    return {};
}

Result<void> addExperts(TensorLookup& lookup,
                        const ModelConfig& config,
                        const std::string& prefix,
                        LayerViews& views) {
    const MoeConfig& moe = config.moe;
    ExpertsView experts;
    experts.router = BV_TRY(lookup.plainMatrix(prefix + "ffn_gate_inp", moe.n_experts, config.dim));
    if (moe.has_choice_bias) {
        experts.choice_bias = BV_TRY(lookup.vector(prefix + "exp_probs_b.bias", moe.n_experts));
    }
    experts.gate =
        BV_TRY(lookup.experts(prefix + "ffn_gate_exps", moe.n_experts, moe.ff_dim, config.dim));
    experts.up =
        BV_TRY(lookup.experts(prefix + "ffn_up_exps", moe.n_experts, moe.ff_dim, config.dim));
    experts.down =
        BV_TRY(lookup.experts(prefix + "ffn_down_exps", moe.n_experts, config.dim, moe.ff_dim));
    views.experts = std::move(experts);
    return moe.shared_ff_dim == 0
               ? Result<void>()
               : addMlp(lookup, config, prefix, "_shexp", moe.shared_ff_dim, views);
}

Result<LayerViews> layerViews(TensorLookup& lookup, const ModelConfig& config, size_t layer) {
    const std::string prefix = fmt::format("blk.{}.", layer);
    const size_t q_dim = config.n_heads * config.head_dim;
    const size_t kv_dim = config.n_kv_heads * config.head_dim;
    LayerViews views;
    views.attention_norm = BV_TRY(lookup.vector(prefix + "attn_norm.weight", config.dim));
    const BiasConfig& biases = config.biases;
    views.q = BV_TRY(linear(lookup, prefix + "attn_q", q_dim, config.dim, biases.qkv));
    views.k = BV_TRY(linear(lookup, prefix + "attn_k", kv_dim, config.dim, biases.qkv));
    views.v = BV_TRY(linear(lookup, prefix + "attn_v", kv_dim, config.dim, biases.qkv));
    views.o = BV_TRY(linear(lookup, prefix + "attn_output", config.dim, q_dim, biases.output));
    BV_TRY(addNorms(lookup, config, prefix, views));
    if (config.layers[layer].attention == AttentionKind::Msa) {
        BV_TRY(addIndex(lookup, config, prefix, views));
    } else {
        skipIndex(lookup, prefix);
    }
    views.mlp_norm = BV_TRY(lookup.vector(prefix + "ffn_norm.weight", config.dim));
    if (config.layers[layer].mlp == MlpKind::Experts) {
        BV_TRY(addExperts(lookup, config, prefix, views));
    } else {
        BV_TRY(addMlp(lookup, config, prefix, "", config.ff_dim, views));
    }
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
    if (views.index_q) {
        layer.index_q = BV_TRY(backend.addLinear(*views.index_q));
        layer.index_k = BV_TRY(backend.addLinear(*views.index_k));
        layer.index_q_norm = BV_TRY(backend.addVector(views.index_q_norm));
        layer.index_k_norm = BV_TRY(backend.addVector(views.index_k_norm));
    }
    layer.mlp_norm = BV_TRY(backend.addVector(views.mlp_norm));
    if (views.experts) {
        layer.experts = BV_TRY(backend.addExperts(*views.experts));
    }
    if (views.gate) {
        layer.gate = BV_TRY(backend.addLinear(*views.gate));
        layer.up = BV_TRY(backend.addLinear(*views.up));
        layer.down = BV_TRY(backend.addLinear(*views.down));
    }
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

Result<ModelWeights> moveOuter(const OuterViews& views, Backend& backend) {
    ModelWeights weights;
    weights.embedding = BV_TRY(backend.addLinear(views.embedding));
    weights.output_norm = BV_TRY(backend.addVector(views.output_norm));
    weights.output_norm_values = views.output_norm;
    if (views.head) {
        weights.untied_head = BV_TRY(backend.addLinear(*views.head));
    }
    return weights;
}

/// What a backend says of a tensor does not name the file.
template <class T>
Result<T> inFile(const ModelSource& source, Result<T> result) {
    if (!result.has_value()) {
        return failWithContext(std::move(result).error(), source.name());
    }
    return result;
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
    const std::vector<size_t>& layers = adapters.overrides().msa_layers;
    if (!layers.empty() && layers.back() >= config.n_layers) {
        return fail(ErrorCode::InvalidArgument,
                    "the adapter has an index branch in layer {}, the model has {} layers",
                    layers.back(), config.n_layers);
    }
    return {};
}

}  // namespace

Result<std::vector<float>> ropeDivisors(const ModelSource& source,
                                        const AdapterSet& adapters,
                                        const ModelConfig& config) {
    TensorLookup lookup(source, adapters);
    BV_TRY(checkRopeDivisors(lookup, config));
    if (!lookup.has("rope_freqs.weight")) {
        return config.rope.divisors;
    }
    return lookup.vector("rope_freqs.weight", config.rope.n_dims / 2);
}

Result<void> checkTensors(const ModelSource& source,
                          const AdapterSet& adapters,
                          const ModelConfig& config) {
    TensorLookup lookup(source, adapters);
    BV_TRY(outerViews(lookup, config));
    BV_TRY(checkRopeDivisors(lookup, config));
    BV_TRY(checkIndexedLayers(adapters, config));
    for (size_t layer = 0; layer < config.n_layers; ++layer) {
        BV_TRY(layerViews(lookup, config, layer));
    }
    return lookup.refuseUnknown(ModelPart::Text);
}

Result<ModelWeights> loadWeights(const ModelSource& source,
                                 const AdapterSet& adapters,
                                 const ModelConfig& config,
                                 Backend& backend,
                                 const LayerProgress& progress,
                                 const std::stop_token& stop) {
    BV_TRY(checkTensors(source, adapters, config));
    TensorLookup lookup(source, adapters);
    ModelWeights weights =
        BV_TRY(inFile(source, moveOuter(BV_TRY(outerViews(lookup, config)), backend)));
    for (size_t layer = 0; layer < config.n_layers; ++layer) {
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "loading {} was stopped", source.name());
        }
        if (progress) {
            progress(static_cast<double>(layer) / static_cast<double>(config.n_layers));
        }
        weights.layers.push_back(
            BV_TRY(inFile(source, moveLayer(BV_TRY(layerViews(lookup, config, layer)), backend))));
    }
    return weights;
}

}  // namespace belvedere::inference
