// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images and clips as a prompt holds them: frames already at the size that the tower takes, and
// what they cost in tokens, so that the price is known before anything is computed. Immutable once
// made: any thread.
//
//     const Media image = BV_TRY(readStill("screen.png"));
//     image.tokenCount();  // 576

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "inference/vision/image.h"
#include "inference/vision/patches.h"

namespace belvedere::inference {

enum class MediaKind { Image, Video };

/// SHA-256 of what the tower sees: kind, size and pixels. Two files with the same pixels have the
/// same.
using MediaHash = std::array<uint8_t, 32>;

inline constexpr size_t kMaxClipFrames = 768;
/// Width x height x frames of a clip, after resizing.
inline constexpr size_t kMaxClipPixels = 301'056'000;

struct Media {
    MediaKind kind = MediaKind::Image;
    std::string name;              ///< for messages
    ImageSize original;            ///< before resizing
    std::vector<RgbImage> frames;  ///< of one size; one for a still
    /// When the first frame of each pair was taken; empty: not known.
    std::vector<double> pair_seconds;
    MediaHash hash{};

    [[nodiscard]] PatchGrid grid() const;

    /// Tokens that stand for it, without the markers around them.
    [[nodiscard]] size_t tokenCount() const { return grid().tokenCount(); }
};

/// Tokens [token_begin, token_begin + n_tokens) of a prompt stand for rows [first_row, ...) of the
/// embeddings of an image or a clip.
struct MediaSpan {
    size_t token_begin = 0;
    size_t n_tokens = 0;
    size_t first_row = 0;
    std::shared_ptr<const Media> media;  ///< shared by requests and caches, immutable
};

/// Errors: those of resizedSize.
[[nodiscard]] Result<Media> makeStill(const RgbImage& image,
                                      const std::string& name,
                                      const ResizeLimits& limits = {});

/// Errors: those of readImage and makeStill.
[[nodiscard]] Result<Media> readStill(const std::string& path, const ResizeLimits& limits = {});

/// Collects the frames of a clip, each resized when it comes.
class ClipBuilder {
  public:
    explicit ClipBuilder(std::string name, const ResizeLimits& limits = kVideoLimits)
        : limits_(limits) {
        clip_.kind = MediaKind::Video;
        clip_.name = std::move(name);
    }

    /// Errors: those of resizedSize; InvalidArgument, with the numbers, where a frame has another
    /// size than the first or the clip grows beyond kMaxClipFrames or kMaxClipPixels.
    [[nodiscard]] Result<void> add(const RgbImage& frame);

    /// The next frame of the clip was taken then. All or none.
    void addTime(double time_seconds) { times_.push_back(time_seconds); }

    /// Errors: InvalidArgument where there is no frame.
    [[nodiscard]] Result<Media> take();

  private:
    ResizeLimits limits_;
    Media clip_;
    std::vector<double> times_;  ///< of the frames
};

/// All images of a folder, in the order of their names, as the frames of a clip; other files are
/// left out. Errors: NotFound, Io; those of readImage and ClipBuilder.
[[nodiscard]] Result<Media> readFrameFolder(const std::string& path,
                                            const ResizeLimits& limits = kVideoLimits);

/// A clip from a video file, or from a folder of frames. Of a file the first frame is taken, then
/// each that stands 1 / frames_per_second behind the one taken before, or later; when they were
/// taken is known then. Through OpenCV's videoio. Source: MiniMax-M3's video loader. Errors:
/// NotFound; InvalidArgument for a rate that is none; Unsupported where the file is no video that
/// can be decoded; those of ClipBuilder.
[[nodiscard]] Result<Media> readClip(const std::string& path,
                                     double frames_per_second = 1.0,
                                     const ResizeLimits& limits = kVideoLimits);

/// readStill or readClip, with the limits of the model.
[[nodiscard]] Result<Media> readMedia(MediaKind kind,
                                      const std::string& path,
                                      double frames_per_second = 1.0);

}  // namespace belvedere::inference
