// SPDX-License-Identifier: Apache-2.0
#pragma once

// From the screen to the picture a model sees and back. One record per screenshot: a click is
// mapped with the record of the picture it was chosen in, never with current values. Values; any
// thread.

#include <cstdint>
#include <optional>

#include "kernels/base/result.h"

namespace belvedere::tools {

struct PixelSize {
    int width = 0;
    int height = 0;

    bool operator==(const PixelSize&) const = default;
};

struct PixelPoint {
    int x = 0;
    int y = 0;

    bool operator==(const PixelPoint&) const = default;
};

/// What the vision encoder does to a still: sides become multiples of 28 within an area.
struct EncoderLimits {
    int64_t min_pixels = 3136;
    int64_t max_pixels = 451584;  ///< 672 * 672
};

/// The size a picture of `size` has after the encoder's own resize. An encoder-sized picture stays
/// as it is, so what we send in this size is not resized again and its pixels are the ones that the
/// model names. Source: MiniMax-M3, preprocessor "dynamic_res": patch 14, merge 2; rounding half to
/// even. Errors: InvalidArgument: an empty size, or a side more than 200 times the other.
[[nodiscard]] Result<PixelSize> encoderSize(PixelSize size, const EncoderLimits& limits = {});

struct CoordinateRecord {
    PixelPoint origin;   ///< of the captured area on the screen
    PixelSize physical;  ///< its size in screen pixels
    PixelSize sent;      ///< the size of the picture

    [[nodiscard]] double scaleX() const { return static_cast<double>(physical.width) / sent.width; }

    [[nodiscard]] double scaleY() const {
        return static_cast<double>(physical.height) / sent.height;
    }

    /// The screen pixel in the middle of a picture's pixel; nullopt outside the picture.
    [[nodiscard]] std::optional<PixelPoint> toScreen(int64_t x, int64_t y) const;

    /// The picture's pixel that shows a screen pixel of the captured area.
    [[nodiscard]] PixelPoint toPicture(PixelPoint screen) const;
};

}  // namespace belvedere::tools
