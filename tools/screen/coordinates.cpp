// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/coordinates.h"

#include <algorithm>
#include <cmath>

namespace belvedere::tools {
namespace {

constexpr int kTile = 28;
constexpr int kMaxSideRatio = 200;

/// To the nearest multiple of the tile, half to even, at least one tile.
int roundToTiles(int side) {
    const int tiles = side / kTile;
    const int twice_rest = 2 * (side % kTile);
    const bool goes_up = twice_rest > kTile || (twice_rest == kTile && tiles % 2 == 1);
    return std::max(1, tiles + (goes_up ? 1 : 0)) * kTile;
}

int64_t area(PixelSize size) {
    return int64_t{size.width} * size.height;
}

int floorToTiles(double side) {
    return std::max(1, static_cast<int>(std::floor(side / kTile))) * kTile;
}

int ceilToTiles(double side) {
    return static_cast<int>(std::ceil(side / kTile)) * kTile;
}

}  // namespace

Result<PixelSize> encoderSize(PixelSize size, const EncoderLimits& limits) {
    const auto [shorter, longer] = std::minmax(size.width, size.height);
    if (shorter < 1 || longer / shorter > kMaxSideRatio ||
        (longer / shorter == kMaxSideRatio && longer % shorter != 0)) {
        return fail(ErrorCode::InvalidArgument,
                    "picture of {}x{} pixels: one side may be at most {} times the other",
                    size.width, size.height, kMaxSideRatio);
    }
    const PixelSize rounded = {roundToTiles(size.width), roundToTiles(size.height)};
    const auto pixels = static_cast<double>(area(size));
    if (area(rounded) > limits.max_pixels) {
        const double shrink = std::sqrt(pixels / static_cast<double>(limits.max_pixels));
        return PixelSize{floorToTiles(size.width / shrink), floorToTiles(size.height / shrink)};
    }
    if (area(rounded) < limits.min_pixels) {
        const double grow = std::sqrt(static_cast<double>(limits.min_pixels) / pixels);
        return PixelSize{ceilToTiles(size.width * grow), ceilToTiles(size.height * grow)};
    }
    return rounded;
}

std::optional<PixelPoint> CoordinateRecord::toScreen(int64_t x, int64_t y) const {
    if (x < 0 || y < 0 || x >= sent.width || y >= sent.height) {
        return std::nullopt;
    }
    // Whole numbers: (x + 1/2) * physical / sent, rounded down.
    const int64_t screen_x = (2 * x + 1) * physical.width / (2 * int64_t{sent.width});
    const int64_t screen_y = (2 * y + 1) * physical.height / (2 * int64_t{sent.height});
    return PixelPoint{origin.x + static_cast<int>(screen_x), origin.y + static_cast<int>(screen_y)};
}

PixelPoint CoordinateRecord::toPicture(PixelPoint screen) const {
    // The middle of the screen pixel decides.
    const int64_t x =
        (2 * int64_t{screen.x - origin.x} + 1) * sent.width / (2 * int64_t{physical.width});
    const int64_t y =
        (2 * int64_t{screen.y - origin.y} + 1) * sent.height / (2 * int64_t{physical.height});
    return {static_cast<int>(std::clamp<int64_t>(x, 0, sent.width - 1)),
            static_cast<int>(std::clamp<int64_t>(y, 0, sent.height - 1))};
}

}  // namespace belvedere::tools
