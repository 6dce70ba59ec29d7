// SPDX-License-Identifier: Apache-2.0
#include "inference/vision/media.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include <openssl/evp.h>

namespace belvedere::inference {
namespace {

namespace fs = std::filesystem;

/// Errors: Internal where OpenSSL cannot.
Result<MediaHash> hashOf(const Media& media) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(),
                                                                         &EVP_MD_CTX_free);
    const ImageSize size = media.frames.front().size;
    const uint64_t head[] = {media.kind == MediaKind::Video ? 1U : 0U, size.width, size.height,
                             media.frames.size()};
    bool is_good = digest != nullptr &&
                   EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) == 1 &&
                   EVP_DigestUpdate(digest.get(), head, sizeof head) == 1;
    for (const RgbImage& frame : media.frames) {
        is_good =
            is_good && EVP_DigestUpdate(digest.get(), frame.rgb.data(), frame.rgb.size()) == 1;
    }
    MediaHash hash{};
    unsigned int n_bytes = 0;
    if (!is_good || EVP_DigestFinal_ex(digest.get(), hash.data(), &n_bytes) != 1 ||
        n_bytes != hash.size()) {
        return fail(ErrorCode::Internal, "SHA-256 is not available");
    }
    return hash;
}

Result<ImageSize> resizedFor(const std::string& name, ImageSize size, const ResizeLimits& limits) {
    Result<ImageSize> resized = resizedSize(size, limits);
    if (!resized.has_value()) {
        return failWithContext(std::move(resized).error(), name);
    }
    return resized;
}

bool isImageName(const fs::path& path) {
    std::string ending = path.extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr const char* kEndings[] = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"};
    return std::find(std::begin(kEndings), std::end(kEndings), ending) != std::end(kEndings);
}

Result<std::vector<fs::path>> framesIn(const std::string& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
        return fail(ErrorCode::NotFound, "{}: no folder with the frames of a clip", path);
    }
    std::vector<fs::path> files;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
        if (isImageName(at->path())) {
            files.push_back(at->path());
        }
    }
    if (error) {
        return fail(ErrorCode::Io, "{}: {}", path, error.message());
    }
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace

PatchGrid Media::grid() const {
    const ImageSize size = frames.front().size;
    return {(frames.size() + kPatchFrames - 1) / kPatchFrames, size.height / kPatchPixels,
            size.width / kPatchPixels};
}

Result<Media> makeStill(const RgbImage& image,
                        const std::string& name,
                        const ResizeLimits& limits) {
    const ImageSize size = BV_TRY(resizedFor(name, image.size, limits));
    Media media;
    media.name = name;
    media.original = image.size;
    media.frames.push_back(resample(image, size));
    media.hash = BV_TRY(hashOf(media));
    return media;
}

Result<Media> readStill(const std::string& path, const ResizeLimits& limits) {
    return makeStill(BV_TRY(readImage(path)), path, limits);
}

Result<void> ClipBuilder::add(const RgbImage& frame) {
    if (clip_.frames.empty()) {
        clip_.original = frame.size;
    }
    if (frame.size != clip_.original) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: frame {} has {} x {} pixels, those before have {} x {}", clip_.name,
                    clip_.frames.size(), frame.size.width, frame.size.height, clip_.original.width,
                    clip_.original.height);
    }
    const ImageSize size = BV_TRY(resizedFor(clip_.name, frame.size, limits_));
    const size_t n_frames = clip_.frames.size() + 1;
    if (n_frames > kMaxClipFrames || n_frames > kMaxClipPixels / (size.width * size.height)) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: more than {} frames of {} x {} pixels: the limits are {} frames and {} "
                    "pixels in all: take fewer a second",
                    clip_.name, clip_.frames.size(), size.width, size.height, kMaxClipFrames,
                    kMaxClipPixels);
    }
    clip_.frames.push_back(resample(frame, size));
    return {};
}

Result<Media> ClipBuilder::take() {
    if (clip_.frames.empty()) {
        return fail(ErrorCode::InvalidArgument, "{}: a clip without frames", clip_.name);
    }
    for (size_t i = 0; i < times_.size(); i += kPatchFrames) {
        clip_.pair_seconds.push_back(times_[i]);
    }
    clip_.hash = BV_TRY(hashOf(clip_));
    return std::move(clip_);
}

Result<Media> readMedia(MediaKind kind, const std::string& path, double frames_per_second) {
    return kind == MediaKind::Image ? readStill(path) : readClip(path, frames_per_second);
}

Result<Media> readFrameFolder(const std::string& path, const ResizeLimits& limits) {
    const std::vector<fs::path> files = BV_TRY(framesIn(path));
    ClipBuilder clip(path, limits);
    for (const fs::path& file : files) {
        BV_TRY(clip.add(BV_TRY(readImage(file.string()))));
    }
    return clip.take();
}

}  // namespace belvedere::inference
