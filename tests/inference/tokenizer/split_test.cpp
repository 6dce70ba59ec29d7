// SPDX-License-Identifier: Apache-2.0
#include "inference/tokenizer/split.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unicode/uchar.h>

namespace belvedere::inference {
namespace {

using Pieces = std::vector<std::string>;

Pieces cut(SplitRule rule, std::string_view text) {
    Pieces pieces;
    forEachPiece(rule, text, [&](std::string_view piece) { pieces.emplace_back(piece); });
    return pieces;
}

CharClass classByIcu(UChar32 c) {
    if (c == '\n' || c == '\r') {
        return CharClass::Newline;
    }
    if (u_hasBinaryProperty(c, UCHAR_WHITE_SPACE) != 0) {
        return CharClass::Space;
    }
    const uint32_t category = U_GET_GC_MASK(c);
    if ((category & (U_GC_LU_MASK | U_GC_LT_MASK)) != 0) {
        return CharClass::Upper;
    }
    if ((category & U_GC_LL_MASK) != 0) {
        return CharClass::Lower;
    }
    if ((category & (U_GC_LM_MASK | U_GC_LO_MASK)) != 0) {
        return CharClass::Caseless;
    }
    if ((category & U_GC_M_MASK) != 0) {
        return CharClass::Mark;
    }
    return (category & U_GC_N_MASK) != 0 ? CharClass::Number : CharClass::Other;
}

TEST(UnicodeClass, EqualsIcuForEveryCodePointOfUnicode15) {
    const bool same_version = std::string_view(U_UNICODE_VERSION).starts_with("15.0");
    size_t n_different = 0;
    for (UChar32 c = 0; c <= 0x10FFFF; ++c) {
        if (charClass(static_cast<uint32_t>(c)) == classByIcu(c)) {
            continue;
        }
        // Under a newer ICU code points may have been assigned since; those we call Other.
        if (same_version || charClass(static_cast<uint32_t>(c)) != CharClass::Other) {
            ++n_different;
        }
    }
    EXPECT_EQ(n_different, 0U);
    EXPECT_EQ(charClass(0x110000), CharClass::Other);
    EXPECT_EQ(charClass(kInvalidCodePoint), CharClass::Other);
}

TEST(Split, AsciiMasksEqualTheTable) {
    for (uint32_t c = 0; c < 128; ++c) {
        EXPECT_EQ(split::kAsciiMasks[c], split::maskOf(charClass(c))) << c;
    }
}

TEST(Split, Gpt2) {
    EXPECT_EQ(cut(SplitRule::Gpt2, "Hello, it's 1234  x\n\n y  "),
              (Pieces{"Hello", ",", " it", "'s", " 1234", " ", " x", "\n\n", " y", "  "}));
    EXPECT_EQ(cut(SplitRule::Gpt2, "'S 'll'x\tz"),
              (Pieces{"'", "S", " '", "ll", "'", "x", "\t", "z"}));
    EXPECT_EQ(cut(SplitRule::Gpt2, "e\xCC\x81t\xC3\xA9"), (Pieces{"e", "\xCC\x81", "t\xC3\xA9"}));
}

TEST(Split, SmolLmCutsTheTextAtEveryDigit) {
    EXPECT_EQ(cut(SplitRule::SmolLm, "a12 3  4 b"),
              (Pieces{"a", "1", "2", " ", "3", "  ", "4", " b"}));
    EXPECT_EQ(cut(SplitRule::SmolLm, "x\xC2\xBD\xE0\xA5\xA8"),
              (Pieces{"x", "\xC2\xBD", "\xE0\xA5\xA8"}));
}

TEST(Split, Qwen2AndLlama3) {
    const std::string text = "DON'T 12345\r\n\r\n  x(y);\n\n\t\tz";
    EXPECT_EQ(cut(SplitRule::Qwen2, text),
              (Pieces{"DON", "'T", " ", "1", "2", "3", "4", "5", "\r\n\r\n", " ", " x", "(y",
                      ");\n\n", "\t", "\tz"}));
    EXPECT_EQ(cut(SplitRule::Llama3, text), (Pieces{"DON", "'T", " ", "123", "45", "\r\n\r\n", " ",
                                                    " x", "(y", ");\n\n", "\t", "\tz"}));
    EXPECT_EQ(cut(SplitRule::Qwen2,
                  "'\xC5\xBF"
                  "a 'tis"),
              (Pieces{"'\xC5\xBF", "a", " '", "tis"}));
    EXPECT_EQ(cut(SplitRule::Qwen2, "a \n \n b"), (Pieces{"a", " \n \n", " b"}));
}

TEST(Split, Gpt4oTellsItsTwoFormsApartAtSlashes) {
    EXPECT_EQ(cut(SplitRule::Gpt4o, "a//b https://x/y"),
              (Pieces{"a", "//", "b", " https", "://", "x", "/y"}));
    EXPECT_EQ(cut(SplitRule::Gpt4o, "a)\n//b"), (Pieces{"a", ")\n//", "b"}));
    EXPECT_EQ(cut(SplitRule::Gpt4oNoSlash, "a)\n//b"), (Pieces{"a", ")\n", "//", "b"}));
}

TEST(Split, Gpt4oSplitsAtCaseByUnicodeCategory) {
    const auto pieces = [](std::string_view text) { return cut(SplitRule::Gpt4o, text); };
    EXPECT_EQ(pieces("camelCaseHTTPServer don't DON'T"),
              (Pieces{"camel", "Case", "HTTPServer", " don't", " DON'T"}));
    EXPECT_EQ(pieces("\xCE\x91\xCE\x92\xCE\xB3\xCE\xB4\xCE\x91"),  // capital, capital, small,
                                                                   // small, capital Greek
              (Pieces{"\xCE\x91\xCE\x92\xCE\xB3\xCE\xB4", "\xCE\x91"}));
    EXPECT_EQ(pieces("\xC7\x85x\xC7\x85"),
              (Pieces{"\xC7\x85x", "\xC7\x85"}));  // U+01C5 is titlecase
    EXPECT_EQ(pieces("caf\xC3\xA9 cafe\xCC\x81s"), (Pieces{"caf\xC3\xA9", " cafe\xCC\x81s"}));
    EXPECT_EQ(pieces("\xE0\xA4\xB9\xE0\xA4\xBF\xE0\xA4\xA8\xE0\xA5\x8D"),  // Hindi: letters and
                                                                           // marks stay together
              (Pieces{"\xE0\xA4\xB9\xE0\xA4\xBF\xE0\xA4\xA8\xE0\xA5\x8D"}));
    EXPECT_EQ(pieces("\xE0\xB9\x84\xE0\xB8\x97\xE0\xB8\xA2!"),
              (Pieces{"\xE0\xB9\x84\xE0\xB8\x97\xE0\xB8\xA2", "!"}));
    EXPECT_EQ(pieces("12345\r\n\r\n  \t"), (Pieces{"123", "45", "\r\n\r\n", "  \t"}));
}

TEST(Split, Gpt4oBacktracksAsTheRegexDoes) {
    const auto pieces = [](std::string_view text) { return cut(SplitRule::Gpt4o, text); };
    // U+00AA is caseless: the capitals give back up to it, as no small letter follows.
    EXPECT_EQ(pieces("A\xC2\xAA"
                     "BC"),
              (Pieces{"A\xC2\xAA", "BC"}));
    // A mark may be the character before a word, or the whole word.
    EXPECT_EQ(pieces("\xCC\x81's"), (Pieces{"\xCC\x81's"}));
    EXPECT_EQ(pieces("\xCC\x81"
                     "Ab"),
              (Pieces{"\xCC\x81"
                      "Ab"}));
    EXPECT_EQ(pieces("!\xCC\x81!"), (Pieces{"!\xCC\x81", "!"}));
    EXPECT_EQ(pieces("\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 x"),
              (Pieces{"\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9", " x"}));
}

TEST(Split, BytesThatAreNoUtf8ArePunctuation) {
    for (const SplitRule rule : {SplitRule::Gpt2, SplitRule::Qwen2, SplitRule::Gpt4o}) {
        std::string joined;
        for (const std::string& piece : cut(rule,
                                            "a \xFF\xC3\n\xE2\x82"
                                            "b1")) {
            EXPECT_FALSE(piece.empty());
            joined += piece;
        }
        EXPECT_EQ(joined,
                  "a \xFF\xC3\n\xE2\x82"
                  "b1");
    }
    EXPECT_EQ(cut(SplitRule::Gpt2, "a \xFF\xC3 b"), (Pieces{"a", " \xFF\xC3", " b"}));
}

TEST(Split, UnknownNamesAndPatternsHaveNoRule) {
    EXPECT_EQ(splitRuleOfPre("smollm"), SplitRule::SmolLm);
    EXPECT_EQ(splitRuleOfPre("minimax-m2"), SplitRule::Gpt4o);
    EXPECT_EQ(splitRuleOfPre(""), std::nullopt);
    EXPECT_EQ(splitRuleOfPre("default"), std::nullopt);
    EXPECT_EQ(splitRuleOfPattern("\\s+"), std::nullopt);
}

}  // namespace
}  // namespace belvedere::inference
