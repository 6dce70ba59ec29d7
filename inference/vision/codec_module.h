// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the library that decodes images and videos offers. It is loaded at the first of them:
// OpenCV's codecs bring more than a hundred libraries along, which would cost every start of the
// program 0.14 s. The border is passed by plain values only; nothing throws across it. Private to
// inference/vision.

#include <cstddef>
#include <cstdint>

namespace belvedere::inference {

/// A decoded picture that its decoder owns.
struct Pixels {
    const uint8_t* bgr = nullptr;  ///< nullptr: it cannot be decoded
    size_t n_rows = 0;
    size_t n_columns = 0;
    size_t row_bytes = 0;  ///< distance of two rows
};

class VideoDecoder {
  public:
    virtual ~VideoDecoder() = default;

    /// As the file states them, unchecked: frames a second, pixels.
    [[nodiscard]] virtual double rate() const noexcept = 0;
    [[nodiscard]] virtual double width() const noexcept = 0;
    [[nodiscard]] virtual double height() const noexcept = 0;

    /// Goes on to the next frame; false at the end.
    [[nodiscard]] virtual bool next() noexcept = 0;

    /// Decodes the frame that next() went to; valid until the next call.
    [[nodiscard]] virtual Pixels frame() noexcept = 0;
};

class ImageDecoder {
  public:
    virtual ~ImageDecoder() = default;

    /// With the rotation that EXIF asks for; valid as long as the decoder lives.
    [[nodiscard]] virtual Pixels pixels() noexcept = 0;
};

struct CodecModule {
    /// nullptr where the file is no video that can be decoded; the caller deletes it.
    VideoDecoder* (*open_video)(const char* path) noexcept;
    /// nullptr where the bytes are no image that can be decoded; the caller deletes it.
    ImageDecoder* (*open_image)(const std::byte* bytes, size_t n_bytes) noexcept;
};

inline constexpr const char* kCodecModuleSymbol = "bv_codec_module";

}  // namespace belvedere::inference
