// SPDX-License-Identifier: Apache-2.0
#include "inference/vision/image_size.h"

#include <algorithm>
#include <cmath>

namespace belvedere::inference {
namespace {

constexpr size_t kMaxRatio = 200;
constexpr size_t kMaxPixels = 3584 * 3584;
constexpr double kSide = static_cast<double>(kTokenPixels);
/// Text in an image with a shorter side than this is scaled up.
constexpr double kShortSide = 112;

size_t atLeastOne(double n_tokens) {
    return static_cast<size_t>(std::max(1.0, n_tokens)) * kTokenPixels;
}

/// std::nearbyint rounds half to even, as Python does: 70 pixels become 56.
ImageSize rounded(double width, double height) {
    return {atLeastOne(std::nearbyint(width / kSide)), atLeastOne(std::nearbyint(height / kSide))};
}

ImageSize byLongSide(double width, double height, double cap) {
    const double longer = std::max(width, height);
    const double shorter = std::min(width, height);
    const double scale = longer > cap           ? cap / longer
                         : shorter < kShortSide ? kShortSide / shorter
                                                : 1.0;
    return rounded(width * scale, height * scale);
}

ImageSize byPixels(double width, double height, const ResizeLimits& limits) {
    const ImageSize size = rounded(width, height);
    const size_t n_pixels = size.width * size.height;
    if (n_pixels > limits.max_pixels) {
        const double beta = std::sqrt(width * height / static_cast<double>(limits.max_pixels));
        return {atLeastOne(std::floor(width / beta / kSide)),
                atLeastOne(std::floor(height / beta / kSide))};
    }
    if (n_pixels < limits.min_pixels) {
        const double beta = std::sqrt(static_cast<double>(limits.min_pixels) / (width * height));
        return {atLeastOne(std::ceil(width * beta / kSide)),
                atLeastOne(std::ceil(height * beta / kSide))};
    }
    return size;
}

}  // namespace

Result<ImageSize> resizedSize(ImageSize original, const ResizeLimits& limits) {
    const size_t shorter = std::min(original.width, original.height);
    const size_t longer = std::max(original.width, original.height);
    if (shorter == 0) {
        return fail(ErrorCode::InvalidArgument, "an image of {} x {} pixels", original.width,
                    original.height);
    }
    if (longer / shorter > kMaxRatio || (longer / shorter == kMaxRatio && longer % shorter > 0)) {
        return fail(ErrorCode::InvalidArgument,
                    "an image of {} x {} pixels: the sides may be {} : 1 at most", original.width,
                    original.height, kMaxRatio);
    }
    const auto width = static_cast<double>(original.width);
    const auto height = static_cast<double>(original.height);
    const ImageSize size = limits.long_side > 0
                               ? byLongSide(width, height, static_cast<double>(limits.long_side))
                               : byPixels(width, height, limits);
    if (size.width > kMaxPixels / size.height) {
        return fail(ErrorCode::InvalidArgument,
                    "an image of {} x {} pixels becomes {} x {}: the limit is {} pixels",
                    original.width, original.height, size.width, size.height, kMaxPixels);
    }
    return size;
}

size_t tokenCount(ImageSize resized) {
    return resized.width / kTokenPixels * (resized.height / kTokenPixels);
}

}  // namespace belvedere::inference
