// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/x_image.h"

#include <string>

// clang-format off: X11 defines None, which is a name in GoogleTest
#include <gtest/gtest.h>
#include <X11/Xlib.h>
// clang-format on

namespace belvedere::tools {
namespace {

XImage imageOf(std::string& bytes,
               int bits,
               int byte_order,
               unsigned long red,
               unsigned long green,
               unsigned long blue) {
    XImage image{};
    image.width = 2;
    image.height = 1;
    image.data = bytes.data();
    image.bits_per_pixel = bits;
    image.bytes_per_line = static_cast<int>(bytes.size());
    image.byte_order = byte_order;
    image.red_mask = red;
    image.green_mask = green;
    image.blue_mask = blue;
    return image;
}

cv::Vec4b pixel(const Result<cv::Mat>& picture, int x) {
    return picture->at<cv::Vec4b>(0, x);
}

TEST(XImage, ReadsEveryLayoutOfTrueColour) {
    const cv::Vec4b first(3, 2, 1, 255);  // blue green red alpha
    const cv::Vec4b second(6, 5, 4, 255);
    std::string bgrx("\x03\x02\x01\x00\x06\x05\x04\x77", 8);
    std::string xrgb("\x00\x01\x02\x03\x77\x04\x05\x06", 8);
    std::string bgr("\x03\x02\x01\x06\x05\x04", 6);
    std::string rgbx("\x01\x02\x03\x00\x04\x05\x06\x00", 8);
    for (const XImage& image : {imageOf(bgrx, 32, LSBFirst, 0xFF0000, 0xFF00, 0xFF),
                                imageOf(xrgb, 32, MSBFirst, 0xFF0000, 0xFF00, 0xFF),
                                imageOf(bgr, 24, LSBFirst, 0xFF0000, 0xFF00, 0xFF),
                                imageOf(rgbx, 32, LSBFirst, 0xFF, 0xFF00, 0xFF0000)}) {
        const Result<cv::Mat> picture = toBgra(image);
        EXPECT_EQ(pixel(picture, 0), first);
        EXPECT_EQ(pixel(picture, 1), second);
    }
}

TEST(XImage, WidensNarrowColours) {
    std::string rgb565("\x00\xF8\xFF\xFF", 4);
    const Result<cv::Mat> picture = toBgra(imageOf(rgb565, 16, LSBFirst, 0xF800, 0x07E0, 0x001F));
    EXPECT_EQ(pixel(picture, 0), cv::Vec4b(0, 0, 255, 255));
    EXPECT_EQ(pixel(picture, 1), cv::Vec4b(255, 255, 255, 255));
    // Ten bits a colour: the mask is wider than a byte.
    std::string deep("\xFF\xFF\xFF\x3F\x00\x00\xF0\x3F", 8);
    const Result<cv::Mat> ten = toBgra(imageOf(deep, 32, LSBFirst, 0x3FF00000, 0xFFC00, 0x3FF));
    EXPECT_EQ(pixel(ten, 0), cv::Vec4b(255, 255, 255, 255));
    EXPECT_EQ(pixel(ten, 1), cv::Vec4b(0, 0, 255, 255));
}

TEST(XImage, RefusesColourMaps) {
    std::string bytes("\x00\x01", 2);
    EXPECT_EQ(toBgra(imageOf(bytes, 8, LSBFirst, 0, 0, 0)).error().code, ErrorCode::Unsupported);
}

}  // namespace
}  // namespace belvedere::tools
