// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images and frames as the rows that a MiniMax-M3 vision tower takes. Pure; any thread.

#include <cstddef>
#include <span>
#include <vector>

#include "inference/vision/resample.h"

namespace belvedere::inference {

/// Frames that one patch spans, and values of a patch: channel, frame of the pair, row, column.
inline constexpr size_t kPatchFrames = 2;
inline constexpr size_t kPatchValues = 3 * kPatchFrames * kPatchPixels * kPatchPixels;

/// Patches of an image or a clip: time in pairs of frames, rows, columns.
struct PatchGrid {
    size_t t = 0;
    size_t h = 0;
    size_t w = 0;

    [[nodiscard]] size_t patchCount() const { return t * h * w; }

    /// Of a pair of frames; a still is one.
    [[nodiscard]] size_t pairTokenCount() const { return h * w / kPatchesPerToken; }

    [[nodiscard]] size_t tokenCount() const { return t * pairTokenCount(); }
};

/// Where a patch stands: pair of frames, row and column in patches.
struct PatchPlace {
    size_t t = 0;
    size_t row = 0;
    size_t column = 0;
};

/// Of patch `index`. Order, slowest first: time, row and column of a merged token, row and column
/// inside it; so four patches that follow each other make a token.
[[nodiscard]] PatchPlace placeOf(const PatchGrid& grid, size_t index);

struct Patches {
    PatchGrid grid;
    std::vector<float> values;  ///< [grid.patchCount(), kPatchValues], normalised
};

/// Frames of one size whose sides are multiples of kTokenPixels; a still is one frame, and of an
/// odd number the last counts twice. Source: MiniMax-M3's image and video processors; mean and
/// deviation are CLIP's.
[[nodiscard]] Patches makePatches(std::span<const RgbImage> frames);

}  // namespace belvedere::inference
