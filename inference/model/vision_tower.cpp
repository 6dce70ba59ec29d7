// SPDX-License-Identifier: Apache-2.0
#include "inference/model/vision_tower.h"

#include <algorithm>
#include <cmath>

namespace belvedere::inference {
namespace {

constexpr size_t kAxes = 3;

}  // namespace

template <class Step>
void VisionTower::inChunks(size_t n_rows, Step&& step) const {
    for (size_t first = 0; first < n_rows; first += chunk_) {
        step(first, std::min(chunk_, n_rows - first));
    }
}

Result<VisionTower::Buffers> VisionTower::makeBuffers(size_t n_rows) const {
    Buffers buffers;
    for (std::unique_ptr<DeviceBuffer>* rows :
         {&buffers.hidden, &buffers.q, &buffers.k, &buffers.v, &buffers.attended}) {
        *rows = BV_TRY(backend_.addBuffer(n_rows, config_.dim));
    }
    buffers.patches = BV_TRY(backend_.addBuffer(chunk_, kPatchValues));
    buffers.feed = BV_TRY(backend_.addBuffer(chunk_, config_.ff_dim));
    buffers.projected_1 = BV_TRY(backend_.addBuffer(chunk_, config_.out_dim));
    buffers.projected_2 = BV_TRY(backend_.addBuffer(kPatchesPerToken * chunk_, config_.out_dim));
    buffers.merged = BV_TRY(backend_.addBuffer(chunk_, config_.out_dim));
    return buffers;
}

/// Time, row and column of each patch times the frequencies of its axis, in f32 as the reference
/// computes them.
VisionTower::Angles VisionTower::anglesOf(const PatchGrid& grid) const {
    const size_t n_pairs = config_.axisPairs();
    const size_t n_rows = grid.patchCount();
    std::vector<float> frequencies(n_pairs);
    for (size_t i = 0; i < n_pairs; ++i) {
        frequencies[i] = static_cast<float>(
            std::pow(config_.freq_base, -static_cast<double>(i) / static_cast<double>(n_pairs)));
    }
    const bool by_axis = config_.axis_order == AxisOrder::ByAxis;
    const size_t n_angles = n_rows * kAxes * n_pairs;
    Angles angles;
    angles.cos.resize(n_angles);
    angles.sin.resize(n_angles);
    for (size_t row = 0; row < n_rows; ++row) {
        const PatchPlace place = placeOf(grid, row);
        const size_t positions[kAxes] = {place.t, place.row, place.column};
        for (size_t axis = 0; axis < kAxes; ++axis) {
            const size_t begin =
                by_axis ? (axis * n_rows + row) * n_pairs : (row * kAxes + axis) * n_pairs;
            for (size_t i = 0; i < n_pairs; ++i) {
                const float angle = static_cast<float>(positions[axis]) * frequencies[i];
                angles.cos[begin + i] = std::cos(angle);
                angles.sin[begin + i] = std::sin(angle);
            }
        }
    }
    const size_t n_rotations = by_axis ? kAxes : 1;
    const size_t per_rotation = n_angles / n_rotations;
    for (size_t i = 0; i < n_rotations; ++i) {
        angles.rotations.push_back(
            {2 * n_pairs * i, by_axis ? n_pairs : kAxes * n_pairs,
             std::span<const float>(angles.cos).subspan(i * per_rotation, per_rotation),
             std::span<const float>(angles.sin).subspan(i * per_rotation, per_rotation)});
    }
    return angles;
}

void VisionTower::embedPatches(const Patches& patches, Buffers& buffers) {
    const size_t n_rows = patches.grid.patchCount();
    const ProjectOutput outputs[] = {{weights_.patch_embedding.get(), buffers.hidden.get()}};
    inChunks(n_rows, [&](size_t first, size_t n) {
        backend_.write(std::span(patches.values).subspan(first * kPatchValues, n * kPatchValues), 0,
                       *buffers.patches);
        backend_.project(
            {.input = buffers.patches.get(), .n_rows = n, .out_row = first, .outputs = outputs});
    });
    backend_.normalize({.rows = buffers.hidden.get(),
                        .n_rows = n_rows,
                        .weight = weights_.first_norm.weight.get(),
                        .bias = weights_.first_norm.bias.get(),
                        .eps = config_.norm_eps});
}

void VisionTower::attend(const VisionLayerWeights& layer,
                         const Angles& angles,
                         size_t n_rows,
                         Buffers& buffers) {
    const ProjectOutput qkv[] = {{layer.q.get(), buffers.q.get()},
                                 {layer.k.get(), buffers.k.get()},
                                 {layer.v.get(), buffers.v.get()}};
    inChunks(n_rows, [&](size_t first, size_t n) {
        backend_.project({.input = buffers.hidden.get(),
                          .first_row = first,
                          .n_rows = n,
                          .prologue = Prologue::LayerNorm,
                          .norm = layer.attention_norm.weight.get(),
                          .norm_bias = layer.attention_norm.bias.get(),
                          .eps = config_.norm_eps,
                          .out_row = first,
                          .outputs = qkv});
    });
    const auto head_dim = static_cast<double>(config_.headDim());
    backend_.attendSegment({.n_rows = n_rows,
                            .n_heads = config_.n_heads,
                            .head_dim = config_.headDim(),
                            .scale = static_cast<float>(1.0 / std::sqrt(head_dim)),
                            .rotations = angles.rotations,
                            .q = buffers.q.get(),
                            .k = buffers.k.get(),
                            .v = buffers.v.get(),
                            .out = buffers.attended.get()});
    const ProjectOutput o[] = {{layer.o.get(), buffers.hidden.get(), true}};
    inChunks(n_rows, [&](size_t first, size_t n) {
        backend_.project({.input = buffers.attended.get(),
                          .first_row = first,
                          .n_rows = n,
                          .out_row = first,
                          .outputs = o});
    });
}

void VisionTower::feedForward(const VisionLayerWeights& layer, size_t n_rows, Buffers& buffers) {
    const ProjectOutput up[] = {{layer.up.get(), buffers.feed.get()}};
    const ProjectOutput down[] = {{layer.down.get(), buffers.hidden.get(), true}};
    inChunks(n_rows, [&](size_t first, size_t n) {
        backend_.project({.input = buffers.hidden.get(),
                          .first_row = first,
                          .n_rows = n,
                          .prologue = Prologue::LayerNorm,
                          .norm = layer.mlp_norm.weight.get(),
                          .norm_bias = layer.mlp_norm.bias.get(),
                          .eps = config_.norm_eps,
                          .outputs = up});
        backend_.project({.input = buffers.feed.get(),
                          .n_rows = n,
                          .prologue = Prologue::Gelu,
                          .out_row = first,
                          .outputs = down});
    });
}

/// Each patch is projected, then the patches of a token become one row.
Result<void> VisionTower::project(size_t n_tokens, Buffers& buffers, TowerOutput& output) {
    const ProjectOutput first[] = {{weights_.project_1.get(), buffers.projected_1.get()}};
    const ProjectOutput second[] = {{weights_.project_2.get(), buffers.projected_2.get()}};
    const ProjectOutput third[] = {{weights_.merge_1.get(), buffers.projected_1.get()}};
    const ProjectOutput fourth[] = {{weights_.merge_2.get(), buffers.merged.get()}};
    for (size_t token = 0; token < n_tokens; token += chunk_) {
        const size_t n = std::min(chunk_, n_tokens - token);
        inChunks(n * kPatchesPerToken, [&](size_t row, size_t n_rows) {
            backend_.project({.input = buffers.hidden.get(),
                              .first_row = token * kPatchesPerToken + row,
                              .n_rows = n_rows,
                              .outputs = first});
            backend_.project({.input = buffers.projected_1.get(),
                              .n_rows = n_rows,
                              .prologue = Prologue::Gelu,
                              .out_row = row,
                              .outputs = second});
        });
        backend_.project({.input = buffers.projected_2.get(),
                          .n_rows = n,
                          .joined_rows = kPatchesPerToken,
                          .outputs = third});
        backend_.project({.input = buffers.projected_1.get(),
                          .n_rows = n,
                          .prologue = Prologue::Gelu,
                          .outputs = fourth});
        BV_TRY(backend_.await());
        const std::span<const float> rows = backend_.read(*buffers.merged, n);
        output.embeddings.insert(output.embeddings.end(), rows.begin(), rows.end());
    }
    return {};
}

Result<void> VisionTower::encodeSegment(const Patches& patches,
                                        TowerRows rows,
                                        const std::stop_token& stop,
                                        TowerOutput& output) {
    const size_t n_rows = patches.grid.patchCount();
    Buffers buffers = BV_TRY(makeBuffers(n_rows));
    const Angles angles = anglesOf(patches.grid);
    embedPatches(patches, buffers);
    for (size_t i = 0; i < weights_.layers.size(); ++i) {
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "stopped in layer {} of the vision tower", i);
        }
        attend(weights_.layers[i], angles, n_rows, buffers);
        feedForward(weights_.layers[i], n_rows, buffers);
    }
    if (rows == TowerRows::Keep) {
        BV_TRY(backend_.await());
        const std::span<const float> hidden = backend_.read(*buffers.hidden, n_rows);
        output.rows.insert(output.rows.end(), hidden.begin(), hidden.end());
    }
    return project(patches.grid.tokenCount(), buffers, output);
}

Result<TowerOutput> VisionTower::encode(std::span<const RgbImage> frames,
                                        TowerRows rows,
                                        const std::stop_token& stop) {
    const size_t segment_frames = config_.segment_pairs * kPatchFrames;
    TowerOutput output;
    for (size_t begin = 0; begin < frames.size(); begin += segment_frames) {
        const size_t n = std::min(segment_frames, frames.size() - begin);
        BV_TRY(encodeSegment(makePatches(frames.subspan(begin, n)), rows, stop, output));
    }
    return output;
}

Result<uint64_t> VisionTower::reserve(size_t n_rows) {
    const uint64_t before = backend_.scratchBytes();
    BV_TRY(backend_.reserveSegment(n_rows, config_.n_heads, config_.headDim()));
    BV_TRY(makeBuffers(n_rows));
    const size_t n_floats = n_rows * kPatchValues + n_rows / kPatchesPerToken * config_.out_dim +
                            n_rows * 2 * kAxes * config_.axisPairs();
    return backend_.mostScratchBytes() - before + n_floats * sizeof(float);
}

size_t VisionTower::usualRows(const VisionConfig& config) {
    return config.segment_pairs * kVideoLimits.max_pixels / (kPatchPixels * kPatchPixels);
}

double VisionTower::operationCount(const VisionConfig& config, const PatchGrid& grid) {
    const auto dim = static_cast<double>(config.dim);
    const auto out_dim = static_cast<double>(config.out_dim);
    const auto n_rows = static_cast<double>(grid.patchCount());
    const auto n_tokens = static_cast<double>(grid.tokenCount());
    const auto n_layers = static_cast<double>(config.n_layers);
    const double per_row = static_cast<double>(kPatchValues) * dim +
                           n_layers * dim * (4 * dim + 2 * static_cast<double>(config.ff_dim)) +
                           out_dim * (dim + out_dim);
    const double per_token = out_dim * out_dim * (static_cast<double>(kPatchesPerToken) + 1);
    double pairs = 0;  // of a query and a key
    for (size_t t = 0; t < grid.t; t += config.segment_pairs) {
        const auto in_segment =
            static_cast<double>(std::min(config.segment_pairs, grid.t - t) * grid.h * grid.w);
        pairs += in_segment * in_segment;
    }
    return 2 * (n_rows * per_row + n_tokens * per_token + n_layers * 2 * pairs * dim);
}

}  // namespace belvedere::inference
