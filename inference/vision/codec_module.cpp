// SPDX-License-Identifier: Apache-2.0
#include "inference/vision/codec_module.h"

#include <memory>

#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/videoio.hpp>

namespace belvedere::inference {
namespace {

Pixels pixelsOf(const cv::Mat& image) noexcept {
    if (image.empty() || image.type() != CV_8UC3) {
        return {};
    }
    return {image.ptr<uint8_t>(0), static_cast<size_t>(image.rows), static_cast<size_t>(image.cols),
            image.step[0]};
}

class OpenCvVideo : public VideoDecoder {
  public:
    bool open(const char* path) {
        // Its own FFmpeg only: other backends take addresses and pipelines for file names.
        return capture_.open(path, cv::CAP_FFMPEG) && capture_.isOpened();
    }

    double rate() const noexcept override { return get(cv::CAP_PROP_FPS); }

    double width() const noexcept override { return get(cv::CAP_PROP_FRAME_WIDTH); }

    double height() const noexcept override { return get(cv::CAP_PROP_FRAME_HEIGHT); }

    bool next() noexcept override {
        try {
            return capture_.grab();
        } catch (const std::exception&) {
            return false;
        }
    }

    Pixels frame() noexcept override {
        try {
            return capture_.retrieve(image_) ? pixelsOf(image_) : Pixels{};
        } catch (const std::exception&) {
            return {};
        }
    }

  private:
    double get(int property) const noexcept {
        try {
            return capture_.get(property);
        } catch (const std::exception&) {
            return 0;
        }
    }

    cv::VideoCapture capture_;
    cv::Mat image_;
};

class OpenCvImage : public ImageDecoder {
  public:
    explicit OpenCvImage(const cv::Mat& bytes) : image_(cv::imdecode(bytes, cv::IMREAD_COLOR)) {}

    Pixels pixels() noexcept override { return pixelsOf(image_); }

  private:
    cv::Mat image_;
};

/// What OpenCV has to say of a damaged file is said by our error.
void silence() {
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
}

VideoDecoder* openVideo(const char* path) noexcept {
    try {
        silence();
        auto decoder = std::make_unique<OpenCvVideo>();
        return decoder->open(path) ? decoder.release() : nullptr;
    } catch (const std::exception&) {
        return nullptr;
    }
}

ImageDecoder* openImage(const std::byte* bytes, size_t n_bytes) noexcept {
    try {
        silence();
        const cv::Mat raw(1, static_cast<int>(n_bytes), CV_8UC1, const_cast<std::byte*>(bytes));
        return new OpenCvImage(raw);
    } catch (const std::exception&) {
        return nullptr;
    }
}

}  // namespace

extern "C" {
extern const CodecModule bv_codec_module;
const CodecModule bv_codec_module{openVideo, openImage};
}

}  // namespace belvedere::inference
