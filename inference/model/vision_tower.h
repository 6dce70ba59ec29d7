// SPDX-License-Identifier: Apache-2.0
#pragma once

// MiniMax-M3's vision tower and projector: frames in, rows of the text model's embedding out. A
// segment (a still, or up to segment_pairs pairs of frames of a clip) is computed by itself: there
// is no attention across segments, and the memory a clip takes is that of one. One thread at a time
// (the engine thread), never between beginPass() and the end of a decoder's pass.
//
//     const TowerOutput out = BV_TRY(tower.encode(frames, TowerRows::Drop, stop));

#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "inference/backend/backend.h"
#include "inference/model/vision_config.h"
#include "inference/model/vision_weights.h"
#include "inference/vision/patches.h"

namespace belvedere::inference {

/// Whether the rows after the last layer are wanted beside the embeddings.
enum class TowerRows { Drop, Keep };

struct TowerOutput {
    std::vector<float> embeddings;  ///< [n_tokens, out_dim]
    std::vector<float> rows;        ///< [n_patches, dim] after the last layer, or empty
};

class VisionTower {
  public:
    /// max_tokens: the backend's.
    VisionTower(const VisionConfig& config,
                VisionWeights weights,
                Backend& backend,
                size_t max_tokens)
        : config_(config), weights_(std::move(weights)), backend_(backend), chunk_(max_tokens) {}

    [[nodiscard]] const VisionConfig& config() const { return config_; }

    /// Frames as makePatches takes them. Errors: Cancelled, OutOfMemory, Internal.
    [[nodiscard]] Result<TowerOutput> encode(std::span<const RgbImage> frames,
                                             TowerRows rows,
                                             const std::stop_token& stop);

    /// What encode() takes at most for a segment of n_rows patches, in bytes: working memory of the
    /// backend, which is reserved, and what the segment holds beside it. Errors: OutOfMemory.
    [[nodiscard]] Result<uint64_t> reserve(size_t n_rows);

    /// Patches of the longest segment of a clip within kVideoLimits; a still has fewer, but for one
    /// whose size was asked for by its longer side.
    [[nodiscard]] static size_t usualRows(const VisionConfig& config);

    /// Multiplications and additions that encode() needs for a grid.
    [[nodiscard]] static double operationCount(const VisionConfig& config, const PatchGrid& grid);

  private:
    /// Angles of the rows of one segment.
    struct Angles {
        std::vector<float> cos;
        std::vector<float> sin;
        std::vector<SegmentRotation> rotations;
    };

    struct Buffers {
        std::unique_ptr<DeviceBuffer> hidden;  ///< [n_rows, dim], as the next four
        std::unique_ptr<DeviceBuffer> q, k, v, attended;
        std::unique_ptr<DeviceBuffer> patches;      ///< [chunk, kPatchValues]
        std::unique_ptr<DeviceBuffer> feed;         ///< [chunk, ff_dim]
        std::unique_ptr<DeviceBuffer> projected_1;  ///< [chunk, out_dim]
        std::unique_ptr<DeviceBuffer> projected_2;  ///< [4 * chunk, out_dim]
        std::unique_ptr<DeviceBuffer> merged;       ///< [chunk, out_dim]
    };

    [[nodiscard]] Result<Buffers> makeBuffers(size_t n_rows) const;
    [[nodiscard]] Angles anglesOf(const PatchGrid& grid) const;
    [[nodiscard]] Result<void> encodeSegment(const Patches& patches,
                                             TowerRows rows,
                                             const std::stop_token& stop,
                                             TowerOutput& output);
    void embedPatches(const Patches& patches, Buffers& buffers);
    void attend(const VisionLayerWeights& layer, const Angles& angles, size_t n, Buffers& buffers);
    void feedForward(const VisionLayerWeights& layer, size_t n, Buffers& buffers);
    [[nodiscard]] Result<void> project(size_t n_tokens, Buffers& buffers, TowerOutput& output);
    /// Calls step(first, n) for the rows in pieces that the backend takes.
    template <class Step>
    void inChunks(size_t n_rows, Step&& step) const;

    const VisionConfig config_;
    VisionWeights weights_;
    Backend& backend_;
    const size_t chunk_;
};

}  // namespace belvedere::inference
