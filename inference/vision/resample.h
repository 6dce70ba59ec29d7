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
/// rows, then along columns, rounded to 8 bits after each: as Pillow does, whose pixels the model
/// was trained on. Requires: neither size is empty.
/// Source: Keys 1981 for the kernel.
[[nodiscard]] RgbImage resample(const RgbImage& image, ImageSize size);

}  // namespace belvedere::inference
