// SPDX-License-Identifier: Apache-2.0
#include "inference/model/decoder.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.h"

namespace belvedere::inference {

Decoder::Decoder(const ModelConfig& config,
                 ModelWeights weights,
                 Backend& backend,
                 size_t max_tokens)
    : config_(config), weights_(std::move(weights)), backend_(backend), max_tokens_(max_tokens) {}

Result<std::unique_ptr<Decoder>> Decoder::create(const ModelConfig& config,
                                                 ModelWeights weights,
                                                 Backend& backend,
                                                 size_t max_tokens) {
    std::unique_ptr<Decoder> decoder(new Decoder(config, std::move(weights), backend, max_tokens));
    BV_TRY(decoder->makeBuffers());
    return decoder;
}

BackendShape Decoder::backendShape(const ModelConfig& config,
                                   std::span<const float> rope_divisors,
                                   const CacheTypes& cache,
                                   size_t context_tokens,
                                   size_t max_tokens) {
    BackendShape shape;
    shape.n_layers = config.n_layers;
    shape.n_heads = config.n_heads;
    shape.n_kv_heads = config.n_kv_heads;
    shape.head_dim = config.head_dim;
    shape.cache_type = cache.kv;
    shape.max_tokens = max_tokens;
    shape.rope_adjacent = config.rope.pairing == RopePairing::Adjacent;
    shape.rope_frequency = ropeFrequencies(config.rope, rope_divisors);
    shape.attention_scale =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
    size_t attention_width = (config.n_heads + 2 * config.n_kv_heads) * config.head_dim;
    if (config.hasMsa()) {
        const MsaConfig& msa = config.msa;
        attention_width += (msa.n_heads + 1) * msa.head_dim;
        shape.index = {msa.n_heads, msa.head_dim, msa.block_tokens,
                       msa.top_k,   msa.n_init,   msa.n_local,
                       cache.index, {},           0};
        for (const LayerConfig& layer : config.layers) {
            shape.index.layers.push_back(layer.attention == AttentionKind::Msa);
        }
        shape.index.max_blocks = (context_tokens + msa.block_tokens - 1) / msa.block_tokens;
    }
    const bool has_experts =
        std::any_of(config.layers.begin(), config.layers.end(),
                    [](const LayerConfig& layer) { return layer.mlp == MlpKind::Experts; });
    shape.n_experts_used = has_experts ? config.moe.n_used : 0;
    shape.step_width =
        std::max({attention_width, 2 * config.ff_dim, 2 * config.moe.shared_ff_dim, config.dim});
    return shape;
}

Result<std::unique_ptr<DeviceBuffer>> Decoder::buffer(size_t width) {
    return backend_.addBuffer(max_tokens_, width);
}

Result<void> Decoder::makeBuffers() {
    const size_t q_dim = config_.n_heads * config_.head_dim;
    const size_t kv_dim = config_.n_kv_heads * config_.head_dim;
    hidden_ = BV_TRY(buffer(config_.dim));
    q_ = BV_TRY(buffer(q_dim));
    k_ = BV_TRY(buffer(kv_dim));
    v_ = BV_TRY(buffer(kv_dim));
    attended_ = BV_TRY(buffer(q_dim));
    if (config_.hasMsa()) {
        index_q_ = BV_TRY(buffer(config_.msa.n_heads * config_.msa.head_dim));
        index_k_ = BV_TRY(buffer(config_.msa.head_dim));
    }
    if (config_.ff_dim > 0) {
        gate_ = BV_TRY(buffer(config_.ff_dim));
        up_ = BV_TRY(buffer(config_.ff_dim));
    }
    if (config_.moe.shared_ff_dim > 0) {
        shared_gate_ = BV_TRY(buffer(config_.moe.shared_ff_dim));
        shared_up_ = BV_TRY(buffer(config_.moe.shared_ff_dim));
    }
    logits_ = BV_TRY(backend_.addBuffer(std::min(kMaxLogitRows, max_tokens_), config_.vocab_size));
    return {};
}

Result<void> Decoder::forward(std::span<const int32_t> tokens,
                              std::span<const PassRun> runs,
                              const std::stop_token& stop,
                              PassObserver* observer,
                              std::span<const GivenRows> given,
                              PassKind kind) {
    BV_CHECK(!tokens.empty() && tokens.size() <= max_tokens_);
    BV_CHECK(observer == nullptr || kind == PassKind::Prompt);  // it waits inside the pass
    backend_.beginPass(runs, kind);
    backend_.embed(*weights_.embedding, tokens, *hidden_);
    for (const GivenRows& rows : given) {
        backend_.write(rows.values, rows.first_row, *hidden_);
    }
    for (size_t i = 0; i < weights_.layers.size(); ++i) {
        if (observer != nullptr) {
            BV_TRY(backend_.await());
            observer->onHidden(i, backend_.read(*hidden_, tokens.size()));
        }
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "stopped in layer {}", i);
        }
        attention(weights_.layers[i], i, tokens.size());
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "stopped in layer {}", i);
        }
        mlp(weights_.layers[i], tokens.size());
        if (observer != nullptr) {
            BV_TRY(observeLayer(i, *observer));
        }
    }
    return observer != nullptr ? observeEnd(tokens.size(), *observer) : Result<void>();
}

Result<void> Decoder::observeLayer(size_t layer, PassObserver& observer) {
    BV_TRY(backend_.await());
    if (weights_.layers[layer].index_q != nullptr) {
        observer.onBlocks(layer, backend_.chosenBlocks(layer));
    }
    if (weights_.layers[layer].experts != nullptr) {
        observer.onExperts(layer, backend_.chosenExperts());
    }
    return {};
}

Result<void> Decoder::observeEnd(size_t n_tokens, PassObserver& observer) {
    BV_TRY(backend_.await());
    const std::span<const float> hidden = backend_.read(*hidden_, n_tokens);
    std::vector<float> normed(hidden.size());
    const size_t dim = config_.dim;
    for (size_t t = 0; t < n_tokens; ++t) {
        double sum = 0;
        for (size_t i = 0; i < dim; ++i) {
            sum +=
                static_cast<double>(hidden[t * dim + i]) * static_cast<double>(hidden[t * dim + i]);
        }
        const double factor =
            1.0 / std::sqrt(sum / static_cast<double>(dim) + static_cast<double>(config_.norm_eps));
        for (size_t i = 0; i < dim; ++i) {
            normed[t * dim + i] =
                static_cast<float>(static_cast<double>(hidden[t * dim + i]) * factor *
                                   static_cast<double>(weights_.output_norm_values[i]));
        }
    }
    observer.onHidden(config_.n_layers, normed);
    return {};
}

void Decoder::project(const LayerWeights& layer, size_t n_tokens) {
    const ProjectOutput outputs[] = {{layer.q.get(), q_.get()},
                                     {layer.k.get(), k_.get()},
                                     {layer.v.get(), v_.get()},
                                     {layer.index_q.get(), index_q_.get()},
                                     {layer.index_k.get(), index_k_.get()}};
    backend_.project({.input = hidden_.get(),
                      .n_rows = n_tokens,
                      .prologue = Prologue::RmsNorm,
                      .norm = layer.attention_norm.get(),
                      .eps = config_.norm_eps,
                      .outputs = std::span(outputs).first(layer.index_q != nullptr ? 5 : 3)});
}

void Decoder::attention(const LayerWeights& layer, size_t index, size_t n_tokens) {
    project(layer, n_tokens);
    const IndexStep branch = {index_q_.get(), index_k_.get(), layer.index_q_norm.get(),
                              layer.index_k_norm.get()};
    backend_.attend({.layer = index,
                     .q = q_.get(),
                     .k = k_.get(),
                     .v = v_.get(),
                     .q_norm = layer.q_norm.get(),
                     .k_norm = layer.k_norm.get(),
                     .eps = config_.norm_eps,
                     .index = layer.index_q != nullptr ? &branch : nullptr,
                     .out = attended_.get()});
    const ProjectOutput o[] = {{layer.o.get(), hidden_.get(), true}};
    backend_.project({.input = attended_.get(), .n_rows = n_tokens, .outputs = o});
}

void Decoder::mlp(const LayerWeights& layer, size_t n_tokens) {
    // The shared expert reads the residual stream before the routed ones add to it.
    if (layer.gate != nullptr) {
        gateAndUp(layer, n_tokens);
    }
    if (layer.experts != nullptr) {
        backend_.experts({.experts = layer.experts.get(),
                          .n_tokens = n_tokens,
                          .hidden = hidden_.get(),
                          .norm = layer.mlp_norm.get(),
                          .eps = config_.norm_eps,
                          .router_is_sigmoid = config_.moe.router == RouterKind::Sigmoid,
                          .scale = config_.moe.scale,
                          .activation = activation(),
                          .limits = {config_.swiglu_oai.alpha, config_.swiglu_oai.limit}});
    }
    if (layer.gate != nullptr) {
        down(layer, n_tokens);
    }
}

void Decoder::gateAndUp(const LayerWeights& layer, size_t n_tokens) {
    const bool shared = layer.experts != nullptr;
    const ProjectOutput gate_up[] = {{layer.gate.get(), shared ? shared_gate_.get() : gate_.get()},
                                     {layer.up.get(), shared ? shared_up_.get() : up_.get()}};
    backend_.project({.input = hidden_.get(),
                      .n_rows = n_tokens,
                      .prologue = Prologue::RmsNorm,
                      .norm = layer.mlp_norm.get(),
                      .eps = config_.norm_eps,
                      .outputs = gate_up});
}

void Decoder::down(const LayerWeights& layer, size_t n_tokens) {
    const bool shared = layer.experts != nullptr;
    const ProjectOutput outputs[] = {{layer.down.get(), hidden_.get(), true}};
    backend_.project({.input = shared ? shared_gate_.get() : gate_.get(),
                      .n_rows = n_tokens,
                      .prologue = activation(),
                      .up = shared ? shared_up_.get() : up_.get(),
                      .limits = {config_.swiglu_oai.alpha, config_.swiglu_oai.limit},
                      .outputs = outputs});
}

Prologue Decoder::activation() const {
    return config_.family->activation == Activation::SwiGlu ? Prologue::SwiGlu
                                                            : Prologue::SwiGluOai;
}

Result<std::span<float>> Decoder::logits(size_t first_row, size_t n_rows) {
    BV_CHECK(n_rows > 0 && n_rows <= kMaxLogitRows);
    const ProjectOutput head[] = {{&weights_.head(), logits_.get()}};
    backend_.project({.input = hidden_.get(),
                      .first_row = first_row,
                      .n_rows = n_rows,
                      .prologue = Prologue::RmsNorm,
                      .norm = weights_.output_norm.get(),
                      .eps = config_.norm_eps,
                      .outputs = head});
    BV_TRY(backend_.await());
    return backend_.read(*logits_, n_rows);
}

}  // namespace belvedere::inference
