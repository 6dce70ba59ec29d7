// SPDX-License-Identifier: Apache-2.0
#include "inference/vision/patches.h"

#include <algorithm>
#include <array>

#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

constexpr std::array<float, 3> kMean = {0.48145466F, 0.4578275F, 0.40821073F};
constexpr std::array<float, 3> kDeviation = {0.26862954F, 0.26130258F, 0.27577711F};

/// What each of the 256 values of a channel becomes.
using ValueTable = std::array<std::array<float, 256>, 3>;

ValueTable makeTable() {
    ValueTable table{};
    for (size_t channel = 0; channel < 3; ++channel) {
        for (size_t value = 0; value < 256; ++value) {
            table[channel][value] =
                (static_cast<float>(value) / 255.0F - kMean[channel]) / kDeviation[channel];
        }
    }
    return table;
}

/// The part of a patch that comes from one frame.
void putFrame(const RgbImage& frame,
              size_t first_row,
              size_t first_column,
              size_t index,
              const ValueTable& table,
              float* patch) {
    constexpr size_t kFrameValues = kPatchPixels * kPatchPixels;
    for (size_t channel = 0; channel < 3; ++channel) {
        float* out = patch + (channel * kPatchFrames + index) * kFrameValues;
        for (size_t row = 0; row < kPatchPixels; ++row) {
            const uint8_t* in =
                &frame.rgb[((first_row + row) * frame.size.width + first_column) * 3 + channel];
            for (size_t column = 0; column < kPatchPixels; ++column) {
                *out++ = table[channel][in[column * 3]];
            }
        }
    }
}

}  // namespace

PatchPlace placeOf(const PatchGrid& grid, size_t index) {
    const size_t row_tokens = grid.w / kMergePatches;
    const size_t n_tokens = grid.h / kMergePatches * row_tokens;
    const size_t token = index / kPatchesPerToken % n_tokens;
    const size_t in_token = index % kPatchesPerToken;
    return {index / (n_tokens * kPatchesPerToken),
            token / row_tokens * kMergePatches + in_token / kMergePatches,
            token % row_tokens * kMergePatches + in_token % kMergePatches};
}

Patches makePatches(std::span<const RgbImage> frames) {
    BV_CHECK(!frames.empty());
    const ImageSize size = frames.front().size;
    Patches patches;
    patches.grid = {(frames.size() + 1) / kPatchFrames, size.height / kPatchPixels,
                    size.width / kPatchPixels};
    patches.values.resize(patches.grid.patchCount() * kPatchValues);
    const ValueTable table = makeTable();
    float* patch = patches.values.data();
    for (size_t i = 0; i < patches.grid.patchCount(); ++i, patch += kPatchValues) {
        const PatchPlace place = placeOf(patches.grid, i);
        for (size_t index = 0; index < kPatchFrames; ++index) {
            const size_t t = place.t * kPatchFrames + index;
            putFrame(frames[std::min(t, frames.size() - 1)], place.row * kPatchPixels,
                     place.column * kPatchPixels, index, table, patch);
        }
    }
    return patches;
}

}  // namespace belvedere::inference
