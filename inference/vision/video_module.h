// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the library that decodes videos offers. It is loaded at the first video: OpenCV's videoio
// brings a hundred libraries along, which would cost every start of the program 0.1 s and 18 MB.
// The border is passed by plain values only; nothing throws across it. Private to inference/vision.

#include <cstddef>
#include <cstdint>

namespace belvedere::inference {

class VideoDecoder {
  public:
    virtual ~VideoDecoder() = default;

    /// As the file states them, unchecked: frames a second, pixels.
    [[nodiscard]] virtual double rate() const noexcept = 0;
    [[nodiscard]] virtual double width() const noexcept = 0;
    [[nodiscard]] virtual double height() const noexcept = 0;

    /// Goes on to the next frame; false at the end.
    [[nodiscard]] virtual bool next() noexcept = 0;

    struct Frame {
        const uint8_t* bgr = nullptr;  ///< nullptr: it cannot be decoded
        size_t n_rows = 0;
        size_t n_columns = 0;
        size_t row_bytes = 0;  ///< distance of two rows
    };

    /// Decodes the frame that next() went to; valid until the next call.
    [[nodiscard]] virtual Frame frame() noexcept = 0;
};

/// nullptr where the file is no video that can be decoded; the caller deletes it.
using OpenVideo = VideoDecoder*(const char* path) noexcept;

inline constexpr const char* kOpenVideoSymbol = "bv_open_video";

}  // namespace belvedere::inference
