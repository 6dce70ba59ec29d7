// SPDX-License-Identifier: Apache-2.0
#include "tools/files/text.h"

#include <gtest/gtest.h>

namespace belvedere::tools {
namespace {

TEST(Text, AcceptsOnlyWellFormedUtf8) {
    for (const char* good :
         {"", "a", "ä", "€", "日", "\xF0\x9F\x98\x80", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
        EXPECT_TRUE(isUtf8(good)) << good;
    }
    for (const char* bad :
         {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xE2\x28\xA1", "a\xFF"}) {
        EXPECT_FALSE(isUtf8(bad)) << showText(bad).text;
    }
}

TEST(Text, ShowsInvalidBytesAndControlsAsHex) {
    const ShownText shown = showText("a\xE4\x1B[0m\t\r\n\x7F€\xE2\x82");
    EXPECT_EQ(shown.text, "a\\xE4\\x1B[0m\t\r\n\\x7F€\\xE2\\x82");
    EXPECT_EQ(shown.n_invalid_bytes, 3U);
    EXPECT_EQ(shown.n_controls, 2U);
    EXPECT_TRUE(isUtf8(shown.text));
}

TEST(Text, HoldsBackTheStartOfACharacter) {
    const std::string text = "ab€\xF0\x9F\x98\x80";
    for (size_t n = 0; n <= text.size(); ++n) {
        const std::string_view start = std::string_view(text).substr(0, n);
        EXPECT_TRUE(isUtf8(start.substr(0, completeUtf8Bytes(start)))) << n;
        EXPECT_LE(n - completeUtf8Bytes(start), 3U);
    }
    EXPECT_EQ(completeUtf8Bytes("a\xFF"), 2U);  // can not become a character
    EXPECT_EQ(completeUtf8Bytes("\x80\x80\x80"), 3U);
}

TEST(Text, CutsBetweenCharacters) {
    EXPECT_EQ(cutText("a€b", 4), "a€");
    EXPECT_EQ(cutText("a€b", 3), "a");
    EXPECT_EQ(cutText("a€b", 5), "a€b");
    EXPECT_EQ(cutText("€", 0), "");
}

TEST(Text, KeepsLineEndsApart) {
    const auto lines = linesWithEnds("a\r\nb\n\nc");
    EXPECT_EQ(lines, (std::vector<std::string_view>{"a\r\n", "b\n", "\n", "c"}));
    EXPECT_EQ(withoutLineEnd("a\r\n"), "a");
    EXPECT_EQ(withoutLineEnd("a\r"), "a\r");
    EXPECT_EQ(countLineEnds("a\r\nb\n\nc").n_crlf, 1U);
    EXPECT_EQ(countLineEnds("a\r\nb\n\nc").n_lf, 2U);
    EXPECT_TRUE(linesWithEnds("").empty());
}

}  // namespace
}  // namespace belvedere::tools
