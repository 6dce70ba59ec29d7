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
                                   kernels::CacheType cache_type,
                                   size_t max_tokens) {
    BackendShape shape;
    shape.n_layers = config.n_layers;
    shape.n_heads = config.n_heads;
    shape.n_kv_heads = config.n_kv_heads;
    shape.head_dim = config.head_dim;
    shape.cache_type = cache_type;
    shape.max_tokens = max_tokens;
    shape.step_width = std::max({(config.n_heads + 2 * config.n_kv_heads) * config.head_dim,
                                 2 * config.ff_dim, config.dim});
    shape.rope_adjacent = config.rope.pairing == RopePairing::Adjacent;
    shape.rope_frequency = ropeFrequencies(config.rope, rope_divisors);
    shape.attention_scale =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
    return shape;
}

Result<void> Decoder::makeBuffers() {
    const size_t q_dim = config_.n_heads * config_.head_dim;
    const size_t kv_dim = config_.n_kv_heads * config_.head_dim;
    hidden_ = BV_TRY(backend_.addBuffer(max_tokens_, config_.dim));
    q_ = BV_TRY(backend_.addBuffer(max_tokens_, q_dim));
    k_ = BV_TRY(backend_.addBuffer(max_tokens_, kv_dim));
    v_ = BV_TRY(backend_.addBuffer(max_tokens_, kv_dim));
    attended_ = BV_TRY(backend_.addBuffer(max_tokens_, q_dim));
    gate_ = BV_TRY(backend_.addBuffer(max_tokens_, config_.ff_dim));
    up_ = BV_TRY(backend_.addBuffer(max_tokens_, config_.ff_dim));
    logits_ = BV_TRY(backend_.addBuffer(std::min(kMaxLogitRows, max_tokens_), config_.vocab_size));
    return {};
}

Result<void> Decoder::forward(std::span<const int32_t> tokens,
                              size_t first_pos,
                              std::span<const PageId> pages,
                              const std::stop_token& stop) {
    BV_CHECK(!tokens.empty() && tokens.size() <= max_tokens_);
    backend_.beginPass({tokens.size(), first_pos, pages});
    backend_.embed(*weights_.embedding, tokens, *hidden_);
    for (size_t i = 0; i < weights_.layers.size(); ++i) {
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "stopped in layer {}", i);
        }
        attention(weights_.layers[i], i, tokens.size());
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "stopped in layer {}", i);
        }
        mlp(weights_.layers[i], tokens.size());
    }
    return {};
}

void Decoder::attention(const LayerWeights& layer, size_t index, size_t n_tokens) {
    const ProjectOutput qkv[] = {
        {layer.q.get(), q_.get()}, {layer.k.get(), k_.get()}, {layer.v.get(), v_.get()}};
    backend_.project({.input = hidden_.get(),
                      .n_rows = n_tokens,
                      .prologue = Prologue::RmsNorm,
                      .norm = layer.attention_norm.get(),
                      .eps = config_.norm_eps,
                      .outputs = qkv});
    backend_.attend({.layer = index,
                     .q = q_.get(),
                     .k = k_.get(),
                     .v = v_.get(),
                     .q_norm = layer.q_norm.get(),
                     .k_norm = layer.k_norm.get(),
                     .eps = config_.norm_eps,
                     .out = attended_.get()});
    const ProjectOutput o[] = {{layer.o.get(), hidden_.get(), true}};
    backend_.project({.input = attended_.get(), .n_rows = n_tokens, .outputs = o});
}

void Decoder::mlp(const LayerWeights& layer, size_t n_tokens) {
    const ProjectOutput gate_up[] = {{layer.gate.get(), gate_.get()}, {layer.up.get(), up_.get()}};
    backend_.project({.input = hidden_.get(),
                      .n_rows = n_tokens,
                      .prologue = Prologue::RmsNorm,
                      .norm = layer.mlp_norm.get(),
                      .eps = config_.norm_eps,
                      .outputs = gate_up});
    const ProjectOutput down[] = {{layer.down.get(), hidden_.get(), true}};
    backend_.project({.input = gate_.get(),
                      .n_rows = n_tokens,
                      .prologue = Prologue::SwiGlu,
                      .up = up_.get(),
                      .outputs = down});
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
