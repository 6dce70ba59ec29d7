// SPDX-License-Identifier: Apache-2.0
// Frames of video files.
#include <cmath>
#include <filesystem>
#include <memory>

#include "inference/vision/codecs.h"
#include "inference/vision/media.h"

namespace belvedere::inference {
namespace {

namespace fs = std::filesystem;

/// Frames of a file that are looked at: a stated rate of millions must not keep us here.
constexpr size_t kMaxSourceFrames = 1'000'000;
/// A frame may come this much early: source rates are rounded.
constexpr double kSlack = 1e-4;

Result<std::unique_ptr<VideoDecoder>> openVideo(const std::string& path) {
    // Only files: to a decoder a text may also be an address or a pattern.
    std::error_code error;
    const fs::path file = fs::canonical(path, error);
    if (error || !fs::is_regular_file(file, error)) {
        return fail(ErrorCode::NotFound, "{}: no video file and no folder of frames", path);
    }
    const CodecModule* codecs = BV_TRY(loadCodecs());
    std::unique_ptr<VideoDecoder> video(codecs->open_video(file.c_str()));
    if (video == nullptr) {
        return fail(ErrorCode::Unsupported, "{}: no video that can be decoded", path);
    }
    if (!(video->width() * video->height() <= static_cast<double>(kMaxImagePixels))) {
        return fail(ErrorCode::InvalidArgument, "{}: frames of {} x {} pixels, the limit is {}",
                    path, video->width(), video->height(), kMaxImagePixels);
    }
    return video;
}

Result<RgbImage> decodeFrame(const std::string& path, VideoDecoder& video) {
    const Pixels frame = video.frame();
    if (frame.bgr == nullptr) {
        return fail(ErrorCode::Corrupt, "{}: a frame cannot be decoded", path);
    }
    return toRgb(frame);
}

Result<Media> readVideoFile(const std::string& path,
                            double frames_per_second,
                            const ResizeLimits& limits) {
    const std::unique_ptr<VideoDecoder> video = BV_TRY(openVideo(path));
    const double stated = video->rate();
    const double rate = std::isfinite(stated) && stated > 0 ? stated : 0;
    ClipBuilder clip(path, limits);
    double due = 0;  // seconds
    for (size_t i = 0; video->next(); ++i) {
        if (i == kMaxSourceFrames) {
            return fail(ErrorCode::InvalidArgument, "{}: more than {} frames", path, i);
        }
        // Without a rate no time is known: then each frame counts.
        const double time = rate > 0 ? static_cast<double>(i) / rate : due;
        if (time < due - kSlack) {
            continue;
        }
        const RgbImage image = BV_TRY(decodeFrame(path, *video));
        BV_TRY(clip.add(image));
        if (rate > 0) {
            clip.addTime(time);
            due = time + 1 / frames_per_second;
        }
    }
    return clip.take();
}

}  // namespace

Result<Media> readClip(const std::string& path,
                       double frames_per_second,
                       const ResizeLimits& limits) {
    if (!(frames_per_second > 0) || !std::isfinite(frames_per_second)) {
        return fail(ErrorCode::InvalidArgument, "{}: {} frames a second", path, frames_per_second);
    }
    std::error_code error;
    return fs::is_directory(path, error) ? readFrameFolder(path, limits)
                                         : readVideoFile(path, frames_per_second, limits);
}

}  // namespace belvedere::inference
