// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images as the rest of inference/vision handles them, and bicubic resizing. Pure; any thread.

#include <cstdint>
#include <vector>

#include "inference/vision/image_size.h"

namespace belvedere::inference {

/// 8-bit R, G, B, row by row.
struct RgbImage {
    ImageSize size;
    std::vector<uint8_t> rgb;  ///< [height, width, 3]
};

/// Bicubic with a = -0.5, its support widened when the image shrinks (antialiasing), first along
/// rows, then along columns, rounded to 8 bits after each. Weights have 16 bits, as in torchvision,
/// whose resizing of 8-bit images the reference uses: pixels are the same. Requires: neither size
/// is empty.
/// Source: Keys 1981 for the kernel; Pillow for the support and the two passes.
[[nodiscard]] RgbImage resample(const RgbImage& image, ImageSize size);

}  // namespace belvedere::inference
