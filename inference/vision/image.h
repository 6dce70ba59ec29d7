// SPDX-License-Identifier: Apache-2.0
#pragma once

// Image files to pixels: PNG, JPEG, WebP, BMP and TIFF through OpenCV, turned as their EXIF
// orientation says; 16 bits become 8, grey and palettes become colours, alpha is dropped. The bytes
// are foreign: the size is read from the header, and checked, before anything is decoded. Any
// thread.

#include <cstddef>
#include <span>
#include <string>

#include "inference/vision/resample.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

inline constexpr size_t kMaxImageBytes = size_t{256} << 20;
inline constexpr size_t kMaxImagePixels = 100'000'000;

/// The size that the header states. Errors: Unsupported where the bytes begin no image of a known
/// kind, Corrupt where they end inside the header.
[[nodiscard]] Result<ImageSize> readImageSize(std::span<const std::byte> bytes,
                                              const std::string& name);

/// Errors: those of readImageSize; InvalidArgument, with the numbers, where the file or the image
/// is larger than the limits; Corrupt where it cannot be decoded to its end.
[[nodiscard]] Result<RgbImage> decodeImage(std::span<const std::byte> bytes,
                                           const std::string& name);

/// Errors: NotFound, Io; those of decodeImage.
[[nodiscard]] Result<RgbImage> readImage(const std::string& path);

}  // namespace belvedere::inference
