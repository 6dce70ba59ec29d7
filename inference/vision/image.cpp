// SPDX-License-Identifier: Apache-2.0
#include "inference/vision/image.h"

#include <algorithm>
#include <memory>

#include "inference/format/byte_cursor.h"
#include "inference/format/text_file.h"
#include "inference/vision/codecs.h"

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
    const CodecModule* codecs = BV_TRY(loadCodecs());
    const std::unique_ptr<ImageDecoder> decoder(
        isCutJpeg(bytes) || isCutPng(bytes) ? nullptr
                                            : codecs->open_image(bytes.data(), bytes.size()));
    const Pixels pixels = decoder != nullptr ? decoder->pixels() : Pixels{};
    if (pixels.bgr == nullptr) {
        return fail(ErrorCode::Corrupt,
                    "{}: the image of {} x {} pixels cannot be decoded: the file is damaged or cut "
                    "off",
                    name, stated.width, stated.height);
    }
    return toRgb(pixels);
}

Result<RgbImage> readImage(const std::string& path) {
    const std::string bytes = BV_TRY(readTextFile(path, kMaxImageBytes));
    return decodeImage(std::as_bytes(std::span(bytes)), path);
}

}  // namespace belvedere::inference
