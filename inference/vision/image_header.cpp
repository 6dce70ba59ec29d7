// SPDX-License-Identifier: Apache-2.0
// The width and height that stand in an image file's header.
//
//     PNG   8 bytes of signature, then the chunk IHDR: width at 16, height at 20, big-endian
//     JPEG  segments FF xx, two bytes of length; height and width at 3 and 5 of the first SOFn
//     WebP  RIFF, WEBP, then VP8 (14 bits at 26 and 28), VP8L (14 bits each from 21) or VP8X (24
//           bits less one at 24 and 27)
//     BMP   at 18 and 22, 32 bits, the height negative when rows run downwards; 16 bits in the
//           oldest form, whose header has 12 bytes
//     TIFF  the tags 256 and 257 of the first directory
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "inference/format/byte_cursor.h"
#include "inference/vision/image.h"

namespace belvedere::inference {
namespace {

using Bytes = std::span<const std::byte>;
using Size = std::optional<ImageSize>;

/// n bytes as a number; nullopt behind the end.
std::optional<uint64_t> number(Bytes bytes, size_t at, size_t n, bool is_big_endian) {
    if (at > bytes.size() || n > bytes.size() - at) {
        return std::nullopt;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < n; ++i) {
        const auto byte = static_cast<uint64_t>(bytes[is_big_endian ? at + i : at + n - 1 - i]);
        value = value << 8 | byte;
    }
    return value;
}

bool hasText(Bytes bytes, size_t at, std::string_view text) {
    return at <= bytes.size() && asText(bytes.subspan(at)).starts_with(text);
}

Size sizeOf(std::optional<uint64_t> width, std::optional<uint64_t> height) {
    if (!width || !height) {
        return std::nullopt;
    }
    return ImageSize{static_cast<size_t>(*width), static_cast<size_t>(*height)};
}

Size pngSize(Bytes bytes) {
    return sizeOf(number(bytes, 16, 4, true), number(bytes, 20, 4, true));
}

Size jpegSize(Bytes bytes) {
    size_t at = 2;
    while (true) {
        const auto marker = number(bytes, at, 2, true);
        if (!marker || *marker < 0xff00) {
            return std::nullopt;
        }
        if (*marker == 0xffff) {  // fill byte
            ++at;
            continue;
        }
        // SOF0 to SOF15 without DHT, JPG and DAC.
        if (*marker >= 0xffc0 && *marker <= 0xffcf && *marker != 0xffc4 && *marker != 0xffc8 &&
            *marker != 0xffcc) {
            return sizeOf(number(bytes, at + 7, 2, true), number(bytes, at + 5, 2, true));
        }
        const auto length = number(bytes, at + 2, 2, true);
        if (!length || *length < 2) {
            return std::nullopt;
        }
        at += 2 + *length;
    }
}

Size webpSize(Bytes bytes) {
    const auto masked = [&](size_t at, size_t n, unsigned shift, uint64_t mask, uint64_t plus) {
        auto value = number(bytes, at, n, false);
        return value ? std::optional((*value >> shift & mask) + plus) : std::nullopt;
    };
    if (hasText(bytes, 12, "VP8 ")) {
        return sizeOf(masked(26, 2, 0, 0x3fff, 0), masked(28, 2, 0, 0x3fff, 0));
    }
    if (hasText(bytes, 12, "VP8L")) {
        return sizeOf(masked(21, 4, 0, 0x3fff, 1), masked(21, 4, 14, 0x3fff, 1));
    }
    return sizeOf(masked(24, 3, 0, 0xffffff, 1), masked(27, 3, 0, 0xffffff, 1));
}

Size bmpSize(Bytes bytes) {
    if (number(bytes, 14, 4, false) == 12) {
        return sizeOf(number(bytes, 18, 2, false), number(bytes, 20, 2, false));
    }
    auto height = number(bytes, 22, 4, false);
    if (height && *height > INT32_MAX) {
        height = (uint64_t{1} << 32) - *height;
    }
    return sizeOf(number(bytes, 18, 4, false), height);
}

Size tiffSize(Bytes bytes) {
    const bool is_big_endian = hasText(bytes, 0, "MM");
    const auto directory = number(bytes, 4, 4, is_big_endian);
    const auto n_entries = directory ? number(bytes, *directory, 2, is_big_endian) : std::nullopt;
    std::optional<uint64_t> width;
    std::optional<uint64_t> height;
    for (uint64_t i = 0; n_entries && i < *n_entries; ++i) {
        const size_t at = *directory + 2 + 12 * i;
        const auto tag = number(bytes, at, 2, is_big_endian);
        const auto type = number(bytes, at + 2, 2, is_big_endian);
        const auto value = number(bytes, at + 8, type == 3 ? 2 : 4, is_big_endian);
        if (tag == 256) {
            width = value;
        } else if (tag == 257) {
            height = value;
        }
    }
    return sizeOf(width, height);
}

struct Kind {
    std::string_view begin;
    size_t at = 0;  ///< where a second sign stands
    std::string_view second;
    Size (*size)(Bytes);
};

using namespace std::string_view_literals;

constexpr std::array<Kind, 6> kKinds = {{
    {"\x89PNG\r\n\x1a\n"sv, 12, "IHDR"sv, pngSize},
    {"\xff\xd8\xff"sv, 0, ""sv, jpegSize},
    {"RIFF"sv, 8, "WEBPVP8"sv, webpSize},
    {"BM"sv, 0, ""sv, bmpSize},
    {"II*\0"sv, 0, ""sv, tiffSize},
    {"MM\0*"sv, 0, ""sv, tiffSize},
}};

}  // namespace

Result<ImageSize> readImageSize(std::span<const std::byte> bytes, const std::string& name) {
    for (const Kind& kind : kKinds) {
        if (!hasText(bytes, 0, kind.begin) || !hasText(bytes, kind.at, kind.second)) {
            continue;
        }
        const Size size = kind.size(bytes);
        if (!size) {
            return fail(ErrorCode::Corrupt, "{}: the image ends inside its header ({} bytes)", name,
                        bytes.size());
        }
        return *size;
    }
    return fail(ErrorCode::Unsupported, "{}: no PNG, JPEG, WebP, BMP or TIFF image", name);
}

}  // namespace belvedere::inference
