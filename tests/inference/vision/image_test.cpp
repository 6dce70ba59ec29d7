// SPDX-License-Identifier: Apache-2.0
// Image files to pixels, sizes and patches: against the reference processor's sizes and values, and
// against hostile files.

#include "inference/vision/image.h"

#include <array>
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <opencv2/imgcodecs.hpp>

#include "inference/format/safetensors.h"
#include "inference/vision/patches.h"
#include "kernels/kernels.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

using namespace belvedere::inference;
using Json = nlohmann::json;

std::vector<uint8_t> encode(const std::string& ending, const cv::Mat& image) {
    std::vector<uint8_t> bytes;
    EXPECT_TRUE(cv::imencode(ending, image, bytes));
    return bytes;
}

Result<RgbImage> decode(const std::vector<uint8_t>& bytes) {
    return decodeImage(std::as_bytes(std::span(bytes)), "test");
}

/// Red above, blue below.
cv::Mat flag(int width, int height) {
    cv::Mat image(height, width, CV_8UC3, cv::Scalar(0, 0, 255));
    image.rowRange(height / 2, height).setTo(cv::Scalar(255, 0, 0));
    return image;
}

std::array<int, 3> pixel(const RgbImage& image, size_t x, size_t y) {
    const uint8_t* rgb = &image.rgb[(y * image.size.width + x) * 3];
    return {rgb[0], rgb[1], rgb[2]};
}

TEST(ImageSize, FollowsTheRuleOfTheReference) {
    struct ResizeCase {
        ImageSize in, still;
        size_t n_tokens;
        ImageSize frame;
    };

    const std::vector<ResizeCase> cases = {
        {{1, 1}, {56, 56}, 4, {56, 56}},
        {{10, 10}, {56, 56}, 4, {56, 56}},
        {{70, 70}, {56, 56}, 4, {56, 56}},
        {{224, 224}, {224, 224}, 64, {224, 224}},
        {{300, 200}, {308, 196}, 77, {308, 196}},
        {{640, 480}, {644, 476}, 391, {644, 476}},
        {{2016, 2016}, {672, 672}, 576, {756, 756}},
        {{800, 600}, {756, 560}, 540, {812, 588}},
        {{1024, 768}, {756, 560}, 540, {896, 672}},
        {{1920, 1080}, {896, 504}, 576, {1008, 560}},
        {{3840, 2160}, {896, 504}, 576, {1008, 560}},
        {{1080, 1920}, {504, 896}, 576, {560, 1008}},
        {{5000, 3000}, {840, 504}, 540, {980, 588}},
        {{20, 3000}, {28, 2996}, 107, {28, 2996}},
        {{2000, 10}, {1988, 28}, 71, {1988, 28}},
    };
    for (const ResizeCase& c : cases) {
        EXPECT_EQ(*resizedSize(c.in), c.still) << c.in.width << " x " << c.in.height;
        EXPECT_EQ(tokenCount(*resizedSize(c.in)), c.n_tokens);
        EXPECT_EQ(*resizedSize(c.in, kVideoLimits), c.frame) << c.in.width;
    }
}

TEST(ImageSize, KeepsToTheLongSideWhereItIsGiven) {
    const auto size = [](size_t width, size_t height, size_t cap) {
        return *resizedSize({width, height}, {.long_side = cap});
    };
    EXPECT_EQ(size(5000, 3000, 252), (ImageSize{252, 140}));
    EXPECT_EQ(size(5000, 3000, 504), (ImageSize{504, 308}));
    EXPECT_EQ(size(5000, 3000, 1008), (ImageSize{1008, 616}));
    EXPECT_EQ(size(5000, 3000, 2016), (ImageSize{2016, 1204}));
    EXPECT_EQ(size(1920, 1080, 2016), (ImageSize{1932, 1092}));
    EXPECT_EQ(size(3840, 2160, 2016), (ImageSize{2016, 1120}));
    EXPECT_FALSE(resizedSize({8000, 8000}, {.long_side = 8000}).has_value());
}

TEST(ImageSize, RefusesAbsurdSides) {
    EXPECT_TRUE(resizedSize({10, 2000}).has_value());
    for (const ImageSize size : {ImageSize{10, 2001}, ImageSize{5, 1'000'000}, ImageSize{0, 7}}) {
        const auto result = resizedSize(size);
        ASSERT_FALSE(result.has_value());
        EXPECT_NE(result.error().message.find(std::to_string(size.height)), std::string::npos);
    }
}

std::vector<float> readF16(const SafetensorsFile& file, const std::string& name) {
    const SafetensorsEntry* entry = file.find(name);
    std::vector<float> values(entry->elementCount());
    kernels::tableFor(kernels::Isa::Scalar)
        ->dequantize(kernels::WeightType::F16, entry->bytes.data(), values.data(), values.size());
    return values;
}

/// Rows of an image that the reference kept: every pixel the same; f16 rounds the values.
void compareRows(const Json& fact, const Patches& patches, std::span<const float> expected) {
    size_t n_other = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        const size_t row = i / kPatchValues;
        const size_t patch = fact.contains("rows") ? fact["rows"][row].get<size_t>() : row;
        constexpr float kLevel = 1.0F / 255 / 0.27F;
        const float difference =
            expected[i] - patches.values[patch * kPatchValues + i % kPatchValues];
        n_other += std::fabs(difference) > kLevel / 4 ? 1U : 0U;
    }
    EXPECT_EQ(n_other, 0U) << fact["file"];
}

void compareWithProcessor(const std::filesystem::path& folder) {
    std::ifstream in(folder / "facts.json");
    const auto expected = SafetensorsFile::open((folder / "pixel_values_f16.safetensors").string());
    ASSERT_TRUE(expected.has_value()) << expected.error().message;
    for (const Json& fact : Json::parse(in)) {
        const auto file = fact["file"].get<std::string>();
        const auto image = readImage((folder / file).string());
        ASSERT_TRUE(image.has_value()) << image.error().message;
        EXPECT_EQ(image->size, (ImageSize{fact["width"], fact["height"]}));
        const ImageSize size = *resizedSize(image->size);
        EXPECT_EQ(size, (ImageSize{fact["resized"][0], fact["resized"][1]})) << file;
        EXPECT_EQ(tokenCount(size), fact["tokens"]) << file;
        const RgbImage frame = resample(*image, size);
        const Patches patches = makePatches({&frame, 1});
        EXPECT_EQ(patches.grid.h, fact["grid_thw"][1]) << file;
        EXPECT_EQ(patches.grid.w, fact["grid_thw"][2]) << file;
        compareRows(fact, patches, readF16(*expected, file.substr(0, 1)));
    }
}

TEST(Patches, MatchTheReferenceProcessor) {
    compareWithProcessor(dataPath("inference/image-processor"));
}

TEST(Patches, MatchTheReferenceProcessorOnEveryImage) {
    const auto folder = referenceDir();
    if (!folder) {
        GTEST_SKIP() << kNoReference;
    }
    compareWithProcessor(*folder / "image-processor");
}

TEST(Resample, KeepsFlatColoursAndWeighsWideWhenShrinking) {
    const RgbImage flat{{100, 70}, std::vector<uint8_t>(100 * 70 * 3, 77)};
    EXPECT_EQ(resample(flat, {28, 56}).rgb, std::vector<uint8_t>(28 * 56 * 3, 77));
    // Single white columns in black: without antialiasing most of them would be lost.
    RgbImage lines{{400, 4}, std::vector<uint8_t>(400 * 4 * 3)};
    for (size_t i = 0; i < lines.rgb.size(); i += 30) {
        lines.rgb[i] = lines.rgb[i + 1] = lines.rgb[i + 2] = 250;
    }
    for (const uint8_t value : resample(lines, {20, 4}).rgb) {
        EXPECT_NEAR(value, 25, 12);
    }
}

TEST(Patches, OrderIsTokensThenTheirPatchesThenChannelsFramesRows) {
    // Each pixel says where it stands: red its patch's row, green its patch's column, blue its row
    // inside the patch.
    RgbImage image{{56, 56}, std::vector<uint8_t>(56 * 56 * 3)};
    for (size_t y = 0; y < 56; ++y) {
        for (size_t x = 0; x < 56; ++x) {
            uint8_t* rgb = &image.rgb[(y * 56 + x) * 3];
            rgb[0] = static_cast<uint8_t>(y / 14);
            rgb[1] = static_cast<uint8_t>(x / 14);
            rgb[2] = static_cast<uint8_t>(y % 14);
        }
    }
    const Patches patches = makePatches({&image, 1});
    ASSERT_EQ(patches.grid.patchCount(), 16U);
    const auto level = [&](size_t patch, size_t channel, size_t frame, size_t row) {
        constexpr std::array<double, 3> kMean = {0.48145466, 0.4578275, 0.40821073};
        constexpr std::array<double, 3> kDeviation = {0.26862954, 0.26130258, 0.27577711};
        const double value = static_cast<double>(
            patches.values[((patch * 3 + channel) * 2 + frame) * 196 + row * 14 + 5]);
        return std::lround((value * kDeviation[channel] + kMean[channel]) * 255);
    };
    const int rows[] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
    const int columns[] = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
    for (size_t patch = 0; patch < 16; ++patch) {
        EXPECT_EQ(level(patch, 0, 0, 3), rows[patch]);
        EXPECT_EQ(level(patch, 1, 1, 3), columns[patch]);  // a still is both frames
        EXPECT_EQ(level(patch, 2, 0, 9), 9);
    }
}

TEST(Patches, AnOddLastFrameCountsTwice) {
    std::vector<RgbImage> frames;
    for (uint8_t value : {uint8_t{0}, uint8_t{100}, uint8_t{200}}) {
        frames.push_back({{28, 28}, std::vector<uint8_t>(28 * 28 * 3, value)});
    }
    const Patches patches = makePatches(frames);
    EXPECT_EQ(patches.grid.t, 2U);
    EXPECT_EQ(patches.grid.tokenCount(), 2U);
    const float* second = &patches.values[4 * kPatchValues];
    EXPECT_EQ(second[0], second[196]);
    EXPECT_NE(patches.values[0], patches.values[196]);
}

TEST(Image, ReadsEveryKindOfFile) {
    for (const char* ending : {".png", ".jpg", ".webp", ".bmp", ".tiff"}) {
        const auto bytes = encode(ending, flag(60, 40));
        EXPECT_EQ(*readImageSize(std::as_bytes(std::span(bytes)), "test"), (ImageSize{60, 40}))
            << ending;
        const auto image = decode(bytes);
        ASSERT_TRUE(image.has_value()) << ending << ": " << image.error().message;
        EXPECT_EQ(image->size, (ImageSize{60, 40}));
        EXPECT_GT(pixel(*image, 30, 5)[0], 240) << ending;
        EXPECT_GT(pixel(*image, 30, 35)[2], 240) << ending;
    }
}

TEST(Image, DropsAlphaAndReducesDepthAndColoursGrey) {
    const auto alpha = decode(encode(".png", cv::Mat(4, 5, CV_8UC4, cv::Scalar(10, 20, 30, 0))));
    EXPECT_EQ(pixel(*alpha, 2, 2), (std::array<int, 3>{30, 20, 10}));
    const auto deep =
        decode(encode(".png", cv::Mat(4, 5, CV_16UC3, cv::Scalar(0x1234, 0x8000, 0xffff))));
    EXPECT_EQ(pixel(*deep, 2, 2), (std::array<int, 3>{0xff, 0x80, 0x12}));
    const auto grey = decode(encode(".png", cv::Mat(4, 5, CV_8UC1, cv::Scalar(99))));
    EXPECT_EQ(pixel(*grey, 2, 2), (std::array<int, 3>{99, 99, 99}));
}

TEST(Image, TurnsAsExifSays) {
    auto bytes = encode(".jpg", flag(60, 40));
    // APP1 with one entry: orientation (0x112) 6, the right side is the top.
    const std::string exif(
        "\xff\xe1\x00\x22"
        "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
        36);
    bytes.insert(bytes.begin() + 2, exif.begin(), exif.end());
    const auto image = decode(bytes);
    ASSERT_TRUE(image.has_value()) << image.error().message;
    EXPECT_EQ(image->size, (ImageSize{40, 60}));
    EXPECT_GT(pixel(*image, 35, 30)[0], 240);  // what was above is at the right
    EXPECT_GT(pixel(*image, 5, 30)[2], 240);
}

TEST(Image, RefusesBombsBeforeDecodingThem) {
    auto bytes = encode(".png", flag(60, 40));
    bytes[16] = 0x7f;  // the header states 2,130,706,492 pixels of width
    const auto image = decode(bytes);
    ASSERT_FALSE(image.has_value());
    EXPECT_EQ(image.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(image.error().message.find("2130706492 x 40"), std::string::npos)
        << image.error().message;
    bytes[16] = bytes[19] = 0;
    EXPECT_FALSE(decode(bytes).has_value());
}

TEST(Image, RefusesWhatIsCutOffOrNoImage) {
    for (const char* ending : {".png", ".jpg", ".webp", ".bmp", ".tiff"}) {
        const auto bytes = encode(ending, flag(300, 200));
        for (const size_t share : std::initializer_list<size_t>{0, 1, 2, 10, 50, 90}) {
            const auto image =
                decode({bytes.begin(),
                        bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() * share / 100)});
            EXPECT_FALSE(image.has_value()) << ending << " cut to " << share << " %";
        }
    }
    EXPECT_FALSE(decode({}).has_value());
    const auto text = decode({'h', 'e', 'l', 'l', 'o'});
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().code, ErrorCode::Unsupported);
    EXPECT_EQ(readImage("/nowhere/image.png").error().code, ErrorCode::NotFound);
}

/// Whatever byte is damaged: an image or an error.
TEST(Image, SurvivesDamage) {
    for (const char* ending : {".png", ".jpg", ".webp", ".bmp", ".tiff"}) {
        const auto whole = encode(ending, flag(40, 30));
        uint32_t random = 1;
        for (int i = 0; i < 120; ++i) {
            auto bytes = whole;
            for (int flips = 0; flips < 1 + i % 3; ++flips) {
                random = random * 1664525 + 1013904223;
                const size_t at =
                    random % std::min<size_t>(bytes.size(), i % 2 == 0 ? 64 : 100'000);
                bytes[at] = static_cast<uint8_t>(random >> 24);
            }
            static_cast<void>(decode(bytes));
        }
    }
}

}  // namespace
}  // namespace belvedere::testing
