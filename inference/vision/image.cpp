// SPDX-License-Identifier: Apache-2.0
#include "inference/vision/image.h"

#include <algorithm>

#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "inference/format/byte_cursor.h"
#include "inference/format/text_file.h"

namespace belvedere::inference {
namespace {

/// libjpeg fills in what is missing with grey: without its end marker a file is cut off.
bool isCutJpeg(std::span<const std::byte> bytes) {
    constexpr size_t kTail = 64 << 10;  // some cameras append data of their own
    const std::string_view text = asText(bytes);
    return text.starts_with("\xff\xd8") &&
           text.substr(text.size() - std::min(text.size(), kTail)).find("\xff\xd9") ==
               std::string_view::npos;
}

/// libpng writes to the terminal about it.
bool isCutPng(std::span<const std::byte> bytes) {
    constexpr size_t kTail = 64 << 10;
    const std::string_view text = asText(bytes);
    return text.starts_with("\x89PNG") &&
           text.substr(text.size() - std::min(text.size(), kTail)).find("IEND") ==
               std::string_view::npos;
}

/// Empty where OpenCV cannot.
cv::Mat decode(std::span<const std::byte> bytes) {
    // What OpenCV has to say of a damaged file is said by our error.
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    try {
        const cv::Mat raw(1, static_cast<int>(bytes.size()), CV_8UC1,
                          const_cast<std::byte*>(bytes.data()));
        cv::Mat image = cv::imdecode(raw, cv::IMREAD_COLOR);
        if (!image.empty()) {
            cv::cvtColor(image, image, cv::COLOR_BGR2RGB);
        }
        return image;
    } catch (const cv::Exception&) {
        return {};
    }
}

}  // namespace

Result<RgbImage> decodeImage(std::span<const std::byte> bytes, const std::string& name) {
    if (bytes.size() > kMaxImageBytes) {
        return fail(ErrorCode::InvalidArgument, "{}: an image of {} bytes, the limit is {}", name,
                    bytes.size(), kMaxImageBytes);
    }
    const ImageSize stated = BV_TRY(readImageSize(bytes, name));
    if (stated.width == 0 || stated.height == 0 || stated.width > kMaxImagePixels / stated.height) {
        return fail(ErrorCode::InvalidArgument, "{}: an image of {} x {} pixels, the limit is {}",
                    name, stated.width, stated.height, kMaxImagePixels);
    }
    const cv::Mat image = isCutJpeg(bytes) || isCutPng(bytes) ? cv::Mat() : decode(bytes);
    if (image.empty()) {
        return fail(ErrorCode::Corrupt,
                    "{}: the image of {} x {} pixels cannot be decoded: the file is damaged or cut "
                    "off",
                    name, stated.width, stated.height);
    }
    RgbImage result;
    result.size = {static_cast<size_t>(image.cols), static_cast<size_t>(image.rows)};
    result.rgb.resize(result.size.width * result.size.height * 3);
    for (int row = 0; row < image.rows; ++row) {
        std::copy_n(image.ptr<uint8_t>(row), result.size.width * 3,
                    &result.rgb[static_cast<size_t>(row) * result.size.width * 3]);
    }
    return result;
}

Result<RgbImage> readImage(const std::string& path) {
    const std::string bytes = BV_TRY(readTextFile(path, kMaxImageBytes));
    return decodeImage(std::as_bytes(std::span(bytes)), path);
}

}  // namespace belvedere::inference
