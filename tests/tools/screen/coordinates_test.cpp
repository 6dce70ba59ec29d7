// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/coordinates.h"

#include <tuple>

#include <gtest/gtest.h>

namespace belvedere::tools {
namespace {

PixelSize sized(int width, int height) {
    return *encoderSize({width, height});
}

TEST(EncoderSize, EqualsThePublishedCheckValues) {
    const std::vector<std::pair<PixelSize, PixelSize>> values = {
        {{1, 1}, {56, 56}},         {{10, 10}, {56, 56}},       {{28, 28}, {56, 56}},
        {{70, 70}, {56, 56}},       {{224, 224}, {224, 224}},   {{300, 200}, {308, 196}},
        {{640, 480}, {644, 476}},   {{672, 672}, {672, 672}},   {{686, 672}, {672, 672}},
        {{2016, 2016}, {672, 672}}, {{800, 600}, {756, 560}},   {{1024, 768}, {756, 560}},
        {{1280, 720}, {896, 504}},  {{1920, 1080}, {896, 504}}, {{3840, 2160}, {896, 504}},
        {{1080, 1920}, {504, 896}}, {{5000, 3000}, {840, 504}}, {{20, 3000}, {28, 2996}},
        {{2000, 10}, {1988, 28}}};
    for (const auto& [from, to] : values) {
        EXPECT_EQ(sized(from.width, from.height), to) << from.width << "x" << from.height;
    }
}

TEST(EncoderSize, ASentPictureIsNotResizedAgain) {
    for (int width = 100; width < 8000; width += 97) {
        for (int height = 100; height < 5000; height += 89) {
            const PixelSize sent = sized(width, height);
            ASSERT_EQ(sized(sent.width, sent.height), sent) << width << "x" << height;
            ASSERT_LE(int64_t{sent.width} * sent.height, 451584);
        }
    }
}

TEST(EncoderSize, RefusesExtremeShapes) {
    EXPECT_TRUE(encoderSize({2000, 10}).has_value());
    EXPECT_EQ(encoderSize({2001, 10}).error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(encoderSize({0, 10}).error().code, ErrorCode::InvalidArgument);
}

TEST(CoordinateRecord, MapsPicturePixelsToTheirMiddleOnTheScreen) {
    const CoordinateRecord record{{0, 0}, {1920, 1080}, {896, 504}};
    EXPECT_EQ(record.toScreen(0, 0), (PixelPoint{1, 1}));
    EXPECT_EQ(record.toScreen(895, 503), (PixelPoint{1918, 1078}));
    EXPECT_EQ(record.toScreen(448, 252), (PixelPoint{961, 541}));
    for (const auto& [x, y] : {std::pair{-1, 0}, {0, -1}, {896, 0}, {0, 504}}) {
        EXPECT_FALSE(record.toScreen(x, y).has_value()) << x << "," << y;
    }
}

TEST(CoordinateRecord, GoesThereAndBack) {
    for (const CoordinateRecord& record : {CoordinateRecord{{0, 0}, {1920, 1080}, {896, 504}},
                                           CoordinateRecord{{-100, 50}, {1366, 768}, {868, 476}},
                                           CoordinateRecord{{0, 0}, {640, 480}, {640, 476}}}) {
        for (int x = 0; x < record.sent.width; x += 3) {
            for (int y = 0; y < record.sent.height; y += 5) {
                const PixelPoint screen = *record.toScreen(x, y);
                ASSERT_EQ(record.toPicture(screen), (PixelPoint{x, y}));
            }
        }
    }
}

}  // namespace
}  // namespace belvedere::tools
