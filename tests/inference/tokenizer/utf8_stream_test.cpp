// SPDX-License-Identifier: Apache-2.0
#include "inference/tokenizer/utf8_stream.h"

#include <utility>

#include <gtest/gtest.h>

namespace belvedere::inference {
namespace {

// Bytes and what a whole-text decoder with replacement makes of them.
const std::pair<std::string, std::string> kTexts[] = {
    {"plain", "plain"},
    {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80!", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80!"},
    {"a\xFF"
     "b",
     "a\xEF\xBF\xBD"
     "b"},
    {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},  // overlong: two bytes that start nothing
    {"\xE0\x80\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                  // overlong of three
    {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                  // a surrogate
    {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // above U+10FFFF
    {"\xF1\x80\x80\xE1\x80\xC2"
     "b",
     "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
     "b"},  // the standard's own example
    {"\xE2\x82", "\xEF\xBF\xBD"},
    {"x\xF0\x9F\x98", "x\xEF\xBF\xBD"},
    {"\x80", "\xEF\xBF\xBD"},
    {"", ""},
};

TEST(Utf8Stream, GivesTheSameTextHoweverTheBytesAreCut) {
    for (const auto& [bytes, expected] : kTexts) {
        for (size_t first = 0; first <= bytes.size(); ++first) {
            for (size_t second = first; second <= bytes.size(); ++second) {
                Utf8Stream stream;
                std::string text = stream.push(std::string_view(bytes).substr(0, first));
                text += stream.push(std::string_view(bytes).substr(first, second - first));
                text += stream.push(std::string_view(bytes).substr(second));
                text += stream.flush();
                EXPECT_EQ(text, expected) << first << " " << second;
            }
        }
    }
}

TEST(Utf8Stream, HoldsBackOnlyWhatMayStillBecomeACharacter) {
    Utf8Stream stream;
    EXPECT_EQ(stream.push("a\xF0\x9F"), "a");
    EXPECT_EQ(stream.push("\x98"), "");
    EXPECT_EQ(stream.push("\x80z"), "\xF0\x9F\x98\x80z");
    EXPECT_EQ(stream.push("\xE2\x82"), "");
    EXPECT_EQ(stream.push("y"), "\xEF\xBF\xBDy");  // known to be broken: not held until the end
    EXPECT_EQ(stream.flush(), "");
    EXPECT_EQ(stream.push("\xC3"), "");
    EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD");
    EXPECT_EQ(stream.push("\xA9"), "\xEF\xBF\xBD");  // the stream began anew
}

}  // namespace
}  // namespace belvedere::inference
