// SPDX-License-Identifier: Apache-2.0
#pragma once

// To what size an image is brought before a MiniMax-M3 tower sees it, and what it costs in tokens.
// Pure functions; any thread.

#include <cstddef>

#include "kernels/base/result.h"

namespace belvedere::inference {

/// Pixels of a patch's side, and patches of a merged token's side.
inline constexpr size_t kPatchPixels = 14;
inline constexpr size_t kMergePatches = 2;
inline constexpr size_t kPatchesPerToken = kMergePatches * kMergePatches;
inline constexpr size_t kTokenPixels = kPatchPixels * kMergePatches;

struct ImageSize {
    size_t width = 0;  ///< pixels
    size_t height = 0;

    bool operator==(const ImageSize&) const = default;
};

/// Defaults: MiniMax-M3's for stills.
struct ResizeLimits {
    size_t min_pixels = 3136;
    size_t max_pixels = 451'584;
    /// Not 0: the longer side, in place of the two limits above. Screenshots stay legible at 2,016.
    size_t long_side = 0;
};

inline constexpr ResizeLimits kVideoLimits = {.min_pixels = 3136, .max_pixels = 602'112};

/// Both sides rounded to 28 pixels, half to even, then brought within the limits.
/// Source: MiniMax-M3's image processor.
/// Errors: InvalidArgument, with the numbers, for an empty image, sides more than 200 : 1, or more
/// than 3,584^2 pixels after resizing.
[[nodiscard]] Result<ImageSize> resizedSize(ImageSize original, const ResizeLimits& limits = {});

/// Tokens of one still, or of one pair of video frames, at its resized size.
[[nodiscard]] size_t tokenCount(ImageSize resized);

}  // namespace belvedere::inference
