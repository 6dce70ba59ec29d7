// SPDX-License-Identifier: Apache-2.0
#include "inference/vision/video_module.h"

#include <memory>

#include <opencv2/core/utils/logger.hpp>
#include <opencv2/videoio.hpp>

namespace belvedere::inference {
namespace {

class OpenCvDecoder : public VideoDecoder {
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

    Frame frame() noexcept override {
        try {
            if (capture_.retrieve(image_) && image_.type() == CV_8UC3 && !image_.empty()) {
                return {image_.ptr<uint8_t>(0), static_cast<size_t>(image_.rows),
                        static_cast<size_t>(image_.cols), image_.step[0]};
            }
        } catch (const std::exception&) {
            return {};
        }
        return {};
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

}  // namespace

extern "C" VideoDecoder* bv_open_video(const char* path) noexcept {
    try {
        cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
        auto decoder = std::make_unique<OpenCvDecoder>();
        return decoder->open(path) ? decoder.release() : nullptr;
    } catch (const std::exception&) {
        return nullptr;
    }
}

}  // namespace belvedere::inference
