// SPDX-License-Identifier: Apache-2.0
#include "tools/files/replacement.h"

#include <gtest/gtest.h>

namespace belvedere::tools {
namespace {

std::string replaced(std::string_view bytes,
                     std::string_view old_text,
                     std::string_view new_text,
                     ReplaceCount count = ReplaceCount::One) {
    const Result<Replacement> result = replaceText(bytes, old_text, new_text, count);
    return result.has_value() ? result->bytes : "error: " + result.error().message;
}

TEST(Replacement, ReplacesTheOnlyOccurrence) {
    EXPECT_EQ(replaced("one two three", "two", "2"), "one 2 three");
    EXPECT_EQ(replaced("a\nb\nc\n", "b\n", ""), "a\nc\n");
    EXPECT_EQ(replaceText("a\nb\nc\n", "c", "d", ReplaceCount::One)->lines, std::vector<size_t>{3});
}

TEST(Replacement, RefusesSeveralOccurrencesWithTheirLines) {
    EXPECT_EQ(replaced("x\ny\nx\n", "x", "z"),
              "error: old_text: found 2 times (lines 1, 3), nothing was changed; add lines around "
              "the one you mean, "
              "or set replace_all");
    EXPECT_EQ(replaced("x\ny\nx\n", "x", "z", ReplaceCount::All), "z\ny\nz\n");
    EXPECT_EQ(replaced("aaaa", "aa", "b", ReplaceCount::All), "bb");
}

TEST(Replacement, RefusesEmptyAndEqualTexts) {
    EXPECT_TRUE(replaced("a", "", "b").starts_with("error: old_text: is empty"));
    EXPECT_TRUE(replaced("a", "a", "a").starts_with("error: new_text: is the same"));
}

TEST(Replacement, LineFeedsMatchCrLfAndBecomeIt) {
    EXPECT_EQ(replaced("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n"), "x\r\ny\r\nz\r\nc\r\n");
    EXPECT_EQ(replaced("a\r\nb\r\n", "b", "1\n2"), "a\r\n1\r\n2\r\n");
    EXPECT_EQ(replaced("a\r\nb\r\nc", "\nb", ""),
              "a\r\nc");  // the whole line end goes, not half of it
    EXPECT_EQ(replaced("a\nb\n", "a\r\nb", "x\r\ny"), "x\ny\n");
}

TEST(Replacement, MixedLineEndsFollowThePieceReplaced) {
    EXPECT_EQ(replaced("a\nb\nc\r\nd\r\n", "c\nd\n", "x\ny\n"), "a\nb\nx\r\ny\r\n");
    EXPECT_EQ(replaced("a\nb\nc\r\nd\r\n", "a\nb\n", "x\ny\n"), "x\ny\nc\r\nd\r\n");
}

TEST(Replacement, CarriageReturnsThatAreMeantAreKept) {
    EXPECT_EQ(replaced("a\r\nb\n", "a\r\n", "a\n"), "a\nb\n");
}

TEST(Replacement, EveryOtherByteStays) {
    const std::string latin1 = "\xEF\xBB\xBF// caf\xE9\r\nint a;\n\xFF\xFE end";
    EXPECT_EQ(replaced(latin1, "int a;", "int b;"),
              "\xEF\xBB\xBF// caf\xE9\r\nint b;\n\xFF\xFE end");
}

TEST(Replacement, DoesNotMixEncodings) {
    EXPECT_TRUE(replaced("caf\xE9 x", "x", "ü")
                    .starts_with("error: new_text: has characters outside ASCII"));
    EXPECT_EQ(replaced("café x", "x", "ü"), "café ü");
}

TEST(Replacement, NotFoundShowsTheClosestLines) {
    const std::string file = "int main() {\n    int value = 1;\n    return value;\n}\n";
    EXPECT_EQ(replaced(file, "  int value = 1;\n  return value;\n", "x"),
              "error: old_text: not found, nothing was changed; closest lines, 2 to 3:\n"
              "2\t    int value = 1;\n3\t    return value;\n"
              "line 3 differs in white space from line 2 of old_text:   return value;\n");
    EXPECT_EQ(replaced(file, "    int valeu = 1;", "x"),
              "error: old_text: not found, nothing was changed; closest lines, 2 to 2:\n"
              "2\t    int value = 1;\n"
              "line 2 differs from line 1 of old_text:     int valeu = 1;\n");
    EXPECT_EQ(replaced(file, "zzzz", "x"),
              "error: old_text: not found, nothing was changed; no line of the file is like it: "
              "read the file again");
    EXPECT_EQ(replaced("", "zzzz", "x"),
              "error: old_text: not found, nothing was changed; no line of the file is like it: "
              "read the file again");
}

TEST(Replacement, NotFoundFindsTheBlockThatSharesMostLines) {
    const std::string file = "begin\nalpha();\nend\nbegin\nalpha();\nbeta();\ngamma();\n";
    const std::string error = replaced(file, "alpha();\nbeta();\ndelta();\n", "x");
    EXPECT_NE(error.find("closest lines, 5 to 7"), std::string::npos) << error;
    EXPECT_NE(error.find("line 7 differs from line 3 of old_text: delta();"), std::string::npos)
        << error;
}

}  // namespace
}  // namespace belvedere::tools
