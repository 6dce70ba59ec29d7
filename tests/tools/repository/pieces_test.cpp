// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/reference_dir.h"
#include "tools/repository/repository.h"
#include "tools/repository/source_text.h"

namespace belvedere::tools {
namespace {

std::string numbered(size_t n_lines) {
    std::string text;
    for (size_t i = 1; i <= n_lines; ++i) {
        text += "line " + std::to_string(i) + "\n";
    }
    return text;
}

std::string ranges(std::string_view text) {
    std::string all;
    for (const PieceLines& piece : cutIntoPieces(text)) {
        all += std::to_string(piece.first_line) + "-" + std::to_string(piece.last_line) + " ";
    }
    return all;
}

TEST(CutIntoPieces, GivesThePiecesAndTheTextOfTheTrainedExample) {
    std::ifstream file(testing::dataPath("repository/prompt_example.json"));
    const auto example = nlohmann::json::parse(file);
    std::string text;
    nlohmann::json pieces = nlohmann::json::array();
    for (const auto& source : example["files"]) {
        const std::string path = source["path"];
        size_t bad_line = 0;
        const auto read = readSourceText(source["text"].get<std::string>(), bad_line);
        ASSERT_TRUE(read.has_value());
        const auto lines = splitLines(read->text);
        for (const PieceLines& piece : cutIntoPieces(read->text)) {
            pieces.push_back({path, piece.first_line, piece.last_line});
            text += pieceText(path, lines, piece);
        }
    }
    EXPECT_EQ(pieces, example["pieces"]);
    const std::string prompt = example["prompt"];
    const std::string begin = "<|im_start|>user\n";
    const size_t at = prompt.find(begin) + begin.size();
    EXPECT_EQ(prompt.substr(at, prompt.find("\n\nQuestion: ") - at), text);
}

TEST(CutIntoPieces, CutsAtThirtyTwoLinesWithoutADefinition) {
    EXPECT_EQ(ranges(numbered(70)), "1-32 33-64 65-70 ");
    EXPECT_EQ(ranges(numbered(32)), "1-32 ");
    EXPECT_EQ(ranges(numbered(33)), "1-32 33-33 ");
}

TEST(CutIntoPieces, CutsBeforeTheLastDefinitionOfTheSecondHalf) {
    std::string text;
    for (size_t i = 0; i < 40; ++i) {
        text += i == 17 || i == 20 ? "def f():\n" : "x\n";
    }
    EXPECT_EQ(ranges(text), "1-20 21-40 ");
}

TEST(CutIntoPieces, LooksNoEarlierThanSeventeenLines) {
    for (const size_t definition : {size_t{16}, size_t{17}, size_t{32}, size_t{33}}) {
        std::string text;
        for (size_t i = 0; i < 50; ++i) {
            text += i == definition ? "struct S {\n" : "x\n";
        }
        const std::string first = definition == 17 ? "1-17 18-49 50-50 " : "1-32 33-50 ";
        EXPECT_EQ(ranges(text), first) << definition;
    }
}

TEST(CutIntoPieces, ReadsTheSameWithCarriageReturnsAndAnyEnd) {
    EXPECT_EQ(ranges("a\r\nb\r\n\r\n \t\n"), "1-2 ");
    EXPECT_EQ(ranges("a\nb"), "1-2 ");
    EXPECT_EQ(ranges(""), "");
    EXPECT_EQ(ranges(" \n\n"), "");
    EXPECT_EQ(ranges("\n\na"), "1-3 ");
}

TEST(ReadSourceText, DropsMarkCarriageReturnsAndBlanksAtTheEnd) {
    size_t bad_line = 0;
    EXPECT_EQ(readSourceText("\xEF\xBB\xBF"
                             "a\r\nb\rc\r\n\n  \n",
                             bad_line)
                  ->text,
              "a\nb\rc");
    EXPECT_EQ(readSourceText("", bad_line)->text, "");
    EXPECT_EQ(readSourceText("gr\xC3\xBC\xC3\x9F\xF0\x9F\x98\x80", bad_line)->n_repaired, 0U);
}

TEST(ReadSourceText, RepairsAFewBytesAndRefusesMore) {
    size_t bad_line = 0;
    const std::string head(1000, 'a');
    const auto repaired = readSourceText(head + "\nM\xFCller", bad_line);
    ASSERT_TRUE(repaired.has_value());
    EXPECT_EQ(repaired->text, head + "\nM\xEF\xBF\xBDller");
    EXPECT_EQ(repaired->n_repaired, 1U);
    EXPECT_FALSE(readSourceText("one\nM\xFCller", bad_line).has_value());
    EXPECT_EQ(bad_line, 2U);
    EXPECT_FALSE(
        readSourceText(std::string(100000, 'a') + std::string(65, '\xFF'), bad_line).has_value());
}

TEST(ReadSourceText, KnowsEveryFormOfBadUtf8) {
    const std::string head(1000, 'a');
    for (const char* bad :
         {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xC3"}) {
        size_t bad_line = 0;
        const auto read = readSourceText(head + bad + std::string(200, 'b'), bad_line);
        EXPECT_TRUE(read.has_value() && read->n_repaired > 0)
            << static_cast<int>(static_cast<unsigned char>(bad[0]));
    }
}

}  // namespace
}  // namespace belvedere::tools
