// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/x_image.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include <X11/Xlib.h>

namespace belvedere::tools {
namespace {

/// One colour of a pixel, widened to 8 bits.
struct Channel {
    uint32_t mask;
    int shift;
    uint32_t max;

    explicit Channel(unsigned long wide_mask)
        : mask(static_cast<uint32_t>(wide_mask)),
          shift(std::countr_zero(mask)),
          max(mask >> shift) {}

    [[nodiscard]] uint8_t of(uint32_t pixel) const {
        return static_cast<uint8_t>((((pixel & mask) >> shift) * 255U + max / 2) / max);
    }
};

uint32_t pixelAt(const unsigned char* bytes, int n_bytes, int byte_order) {
    uint32_t pixel = 0;
    for (int i = 0; i < n_bytes; ++i) {
        const int shift = 8 * (byte_order == LSBFirst ? i : n_bytes - 1 - i);
        pixel |= uint32_t{bytes[i]} << shift;
    }
    return pixel;
}

bool isBgraInMemory(const XImage& image) {
    return image.bits_per_pixel == 32 && image.byte_order == LSBFirst &&
           image.red_mask == 0xFF0000 && image.green_mask == 0xFF00 && image.blue_mask == 0xFF;
}

}  // namespace

Result<cv::Mat> toBgra(const XImage& image) {
    if (image.red_mask == 0 || image.green_mask == 0 || image.blue_mask == 0 ||
        (image.bits_per_pixel != 16 && image.bits_per_pixel != 24 && image.bits_per_pixel != 32)) {
        return fail(
            ErrorCode::Unsupported,
            "screen with {} bits a pixel and depth {}: only true colour screens can be captured",
            image.bits_per_pixel, image.depth);
    }
    const Channel red(image.red_mask);
    const Channel green(image.green_mask);
    const Channel blue(image.blue_mask);
    const int n_bytes = image.bits_per_pixel / 8;
    const bool is_bgra = isBgraInMemory(image);
    cv::Mat bgra(image.height, image.width, CV_8UC4);
    for (int y = 0; y < image.height; ++y) {
        // X keeps bytes as char.
        const auto* row = reinterpret_cast<const unsigned char*>(image.data) +
                          static_cast<ptrdiff_t>(y) * image.bytes_per_line;
        auto* out = bgra.ptr<cv::Vec4b>(y);
        if (is_bgra) {
            std::memcpy(bgra.ptr(y), row, static_cast<size_t>(image.width) * sizeof(cv::Vec4b));
        }
        for (int x = 0; x < image.width; ++x) {
            if (!is_bgra) {
                const uint32_t pixel =
                    pixelAt(row + static_cast<ptrdiff_t>(x) * n_bytes, n_bytes, image.byte_order);
                out[x] = cv::Vec4b(blue.of(pixel), green.of(pixel), red.of(pixel), 255);
            }
            out[x][3] = 255;  // the fourth byte of a depth-24 pixel is undefined
        }
    }
    return bgra;
}

}  // namespace belvedere::tools
