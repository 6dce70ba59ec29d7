// SPDX-License-Identifier: Apache-2.0
#include "inference/tokenizer/tokenizer.h"

#include <random>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/inference/tokenizer/test_vocabularies.h"

namespace belvedere::inference {
namespace {

const char* const kNames[] = {"gpt2", "smollm", "qwen2", "llama-bpe", "minimax-m3"};

std::vector<TokenId> plain(const Tokenizer& tokenizer, std::string_view text) {
    return tokenizer.encode(text, SpecialTokens::Plain);
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
    std::vector<std::string> texts;
    for (const TokenId id : ids) {
        texts.emplace_back(tokenizer.bytesOf(id));
    }
    return texts;
}

class GoldenTokenizer : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Patterns,
                         GoldenTokenizer,
                         ::testing::ValuesIn(kNames),
                         [](const auto& test) { return withoutDashes(test.param); });

TEST_P(GoldenTokenizer, GivesTheReferenceIdsAndTheTextBack) {
    const auto tokenizer = namedTokenizer(GetParam());
    ASSERT_NE(tokenizer, nullptr);
    const auto vectors = nlohmann::json::parse(readWholeFile(
        testing::dataPath("tokenizers") / (std::string(GetParam()) + ".vectors.json")));
    ASSERT_EQ(vectors.size(), 36U);
    for (const auto& vector : vectors) {
        const auto text = vector["text"].get<std::string>();
        const std::vector<TokenId> ids = tokenizer->encode(text, SpecialTokens::Recognise);
        EXPECT_EQ(ids, vector["ids"].get<std::vector<TokenId>>()) << text;
        EXPECT_EQ(tokenizer->decode(ids), text);
        EXPECT_EQ(tokenizer->decode(plain(*tokenizer, text)), text);
    }
}

TEST_P(GoldenTokenizer, KeepsInvalidUtf8ByteByByte) {
    const auto tokenizer = namedTokenizer(GetParam());
    ASSERT_NE(tokenizer, nullptr);
    std::mt19937 random(7);
    const std::string_view parts[] = {"\xFF",
                                      "\xC3",
                                      "\xE2\x82",
                                      "\xF0\x9F\x98",
                                      "\xED\xA0\x80",
                                      "\xC0\xAF",
                                      "\xF4\x90\x80\x80",
                                      "a",
                                      " ",
                                      "\r\n",
                                      "'s",
                                      "7",
                                      "\xC3\xA9",
                                      "\xCC\x81",
                                      "<|im_end|>",
                                      "\0"};
    for (int round = 0; round < 500; ++round) {
        std::string text;
        for (int i = 0; i < 40; ++i) {
            text += parts[random() % std::size(parts)];
        }
        ASSERT_EQ(tokenizer->decode(plain(*tokenizer, text)), text);
        ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, SpecialTokens::Recognise)), text);
    }
}

TEST(Tokenizer, UntrustedTextNeverBecomesAnAddedToken) {
    for (const char* name : kNames) {
        const auto tokenizer = namedTokenizer(name);
        ASSERT_NE(tokenizer, nullptr);
        for (size_t i = 0; i < tokenizer->vocabSize(); ++i) {
            const auto id = static_cast<TokenId>(i);
            if (tokenizer->kind(id) == TokenKind::Normal) {
                continue;
            }
            const std::string marker(tokenizer->bytesOf(id));
            EXPECT_EQ(tokenizer->encode(marker, SpecialTokens::Recognise),
                      std::vector<TokenId>{id});
            const std::vector<TokenId> ids = plain(*tokenizer, "x" + marker + marker + "\n");
            EXPECT_TRUE(std::ranges::all_of(
                ids, [&](TokenId t) { return tokenizer->kind(t) == TokenKind::Normal; }));
            EXPECT_EQ(tokenizer->decode(ids), "x" + marker + marker + "\n");
        }
    }
}

TEST(Tokenizer, AMarkerMayNotReachIntoUntrustedText) {
    const auto tokenizer = namedTokenizer("qwen2");
    ASSERT_NE(tokenizer, nullptr);
    const TokenId im_end = tokenizer->find("<|im_end|>").value();
    const auto count = [&](std::vector<TextSpan> spans) {
        const std::vector<TokenId> ids = tokenizer->encode(spans);
        return std::ranges::count(ids, im_end);
    };
    EXPECT_EQ(count({{"<|im_", true}, {"end|>", true}}), 1);
    EXPECT_EQ(count({{"<|im_", true}, {"end|>", false}}), 0);
    EXPECT_EQ(count({{"<|im_", false}, {"end|>", true}}), 0);
    EXPECT_EQ(count({{"<|im_", true}, {"", false}, {"end|>", true}}),
              1);  // nothing stands between them
    EXPECT_EQ(count({{"<|im_end|>", false}, {"<|im_end|>", true}}), 1);
    EXPECT_EQ(count({{"<|im_end|>", false}}), 0);
    EXPECT_TRUE(tokenizer->encode(std::span<const TextSpan>()).empty());
}

TEST(Tokenizer, TheSplitPatternSeesAcrossSpanBorders) {
    for (const char* name : kNames) {
        const auto tokenizer = namedTokenizer(name);
        ASSERT_NE(tokenizer, nullptr);
        const std::string text = "user\n\nHello wor'll 12345\n don't //\n/x  end";
        const std::vector<TokenId> whole = plain(*tokenizer, text);
        for (size_t cut = 0; cut <= text.size(); ++cut) {
            const std::string_view view = text;
            const TextSpan spans[] = {{view.substr(0, cut), true}, {view.substr(cut), false}};
            EXPECT_EQ(tokenizer->encode(spans), whole) << name << " cut at " << cut;
        }
    }
}

TEST(Tokenizer, TakesTheLeftmostThenLongestAddedToken) {
    VocabularyData data = byteVocabulary({});
    for (const char* text : {"<ab", "<abc>", "bc>x", "]<]v[>[", "[e~["}) {
        data.tokens.emplace_back(text);
        data.types.push_back(3);
    }
    const auto tokenizer = createOrFail(std::move(data));
    ASSERT_NE(tokenizer, nullptr);
    const auto found = [&](std::string_view text) {
        return pieces(*tokenizer, tokenizer->encode(text, SpecialTokens::Recognise));
    };
    using Texts = std::vector<std::string>;
    EXPECT_EQ(found("<abc>x"), (Texts{"<abc>", "x"}));
    EXPECT_EQ(found("<abc"), (Texts{"<ab", "c"}));
    EXPECT_EQ(found("<<abbc>x"), (Texts{"<", "<ab", "bc>x"}));
    EXPECT_EQ(found("]<]v[>[[e~["), (Texts{"]<]v[>[", "[e~["}));
    EXPECT_EQ(found("<|s|><u>"), (Texts{"<|s|>", "<u>"}));
}

TEST(Tokenizer, AddedTokensMayTakeTheWhiteSpaceBesideThem) {
    VocabularyData data = byteVocabulary({});
    const auto id = static_cast<uint32_t>(data.tokens.size() - 2);  // <|s|>
    data.added_rules.push_back({.id = id, .strip_left = true, .strip_right = true});
    const auto tokenizer = createOrFail(std::move(data));
    ASSERT_NE(tokenizer, nullptr);
    const auto encoded = [&](std::string_view text) {
        return tokenizer->decode(tokenizer->encode(text, SpecialTokens::Recognise));
    };
    EXPECT_EQ(encoded("a \xC2\xA0 <|s|>\n\tb c"), "a<|s|>b c");
    EXPECT_EQ(encoded("<|s|> <|s|> "), "<|s|><|s|>");
    EXPECT_EQ(tokenizer->decode(plain(*tokenizer, "a <|s|> b")), "a <|s|> b");
}

TEST(Tokenizer, NormalizedAddedTokensComeAfterTheOthers) {
    VocabularyData data = byteVocabulary({});
    for (const char* text : {"ab<", "<c>"}) {
        data.tokens.emplace_back(text);
        data.types.push_back(4);
    }
    data.added_rules.push_back(
        {.id = static_cast<uint32_t>(data.tokens.size() - 2), .normalized = true});
    const auto tokenizer = createOrFail(std::move(data));
    ASSERT_NE(tokenizer, nullptr);
    const auto found = [&](std::string_view text) {
        return pieces(*tokenizer, tokenizer->encode(text, SpecialTokens::Recognise));
    };
    using Texts = std::vector<std::string>;
    EXPECT_EQ(found("ab<c>ab<"), (Texts{"a", "b", "<c>", "ab<"}));
}

TEST(Tokenizer, MergesInRankOrderLeftmostFirst) {
    const auto tokenizer = createOrFail(byteVocabulary({"a a", "aa b", "b c"}));
    ASSERT_NE(tokenizer, nullptr);
    using Texts = std::vector<std::string>;
    EXPECT_EQ(pieces(*tokenizer, plain(*tokenizer, "aaab")), (Texts{"aa", "a", "b"}));
    EXPECT_EQ(pieces(*tokenizer, plain(*tokenizer, "aabc")), (Texts{"aab", "c"}));
    EXPECT_EQ(pieces(*tokenizer, plain(*tokenizer, "abc")), (Texts{"a", "bc"}));
}

/// The definition: rescan the whole piece for its best merge until there is none.
std::vector<std::string> mergeSlowly(const std::vector<std::string>& merges,
                                     std::string_view text) {
    std::vector<std::string> symbols;
    for (const char c : text) {
        symbols.emplace_back(1, c);
    }
    for (;;) {
        size_t best_rank = merges.size();
        size_t best = 0;
        for (size_t i = 0; i + 1 < symbols.size(); ++i) {
            const auto rank = static_cast<size_t>(
                std::ranges::find(merges, symbols[i] + " " + symbols[i + 1]) - merges.begin());
            if (rank < best_rank) {
                best_rank = rank;
                best = i;
            }
        }
        if (best_rank == merges.size()) {
            return symbols;
        }
        symbols[best] += symbols[best + 1];
        symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
}

TEST(Tokenizer, LongAndShortWordsMergeAsDefined) {
    const std::vector<std::string> merges = {"a b", "b a",   "a a",    "ab a",  "aa ab",
                                             "b b", "ba ba", "aaab b", "abaa b"};
    std::vector<std::string> usable;  // a merge whose parts are tokens by then
    std::vector<std::string> known = {"a", "b"};
    for (const std::string& merge : merges) {
        const std::string left = merge.substr(0, merge.find(' '));
        const std::string right = merge.substr(merge.find(' ') + 1);
        if (std::ranges::count(known, left) != 0 && std::ranges::count(known, right) != 0 &&
            std::ranges::count(known, left + right) == 0) {
            usable.push_back(merge);
            known.push_back(left + right);
        }
    }
    const auto tokenizer = createOrFail(byteVocabulary(usable));
    ASSERT_NE(tokenizer, nullptr);
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        std::string text(1 + random() % 150, 'a');
        for (char& c : text) {
            c = random() % 2 == 0 ? 'a' : 'b';
        }
        ASSERT_EQ(pieces(*tokenizer, plain(*tokenizer, text)), mergeSlowly(usable, text)) << text;
    }
}

TEST(Tokenizer, OneGiantWordIsEncodedInFull) {
    for (const char* name : {"gpt2", "minimax-m3"}) {
        const auto tokenizer = namedTokenizer(name);
        ASSERT_NE(tokenizer, nullptr);
        for (const char* unit : {"a", "ab", "\xC3\xA9", " ", "(", "7"}) {
            // A quadratic way would need hours for the megabyte.
            const size_t n_bytes = std::string_view(unit) == "a" ? 1U << 20 : 1U << 16;
            std::string text;
            while (text.size() < n_bytes) {
                text += unit;
            }
            EXPECT_TRUE(tokenizer->decode(plain(*tokenizer, text)) == text) << unit;
        }
    }
}

TEST(Tokenizer, AWordBeyondTheLimitIsCutButComplete) {
    const auto tokenizer = createOrFail(byteVocabulary({}));
    ASSERT_NE(tokenizer, nullptr);
    std::string text = "a";  // so that the cut falls inside a character if nobody takes care
    while (text.size() < (4U << 20) + 100) {
        text += "\xE4\xB8\xAD";
    }
    EXPECT_TRUE(tokenizer->decode(plain(*tokenizer, text)) == text);
}

TEST(Tokenizer, SentencePieceMergesByScoreWithByteFallback) {
    const auto tokenizer = createOrFail(sentenceVocabulary(
        {"\xE2\x96\x81", "h", "e", "l", "o", "he", "ll", "\xE2\x96\x81he", "hello", "llo"}));
    ASSERT_NE(tokenizer, nullptr);
    using Texts = std::vector<std::string>;
    EXPECT_EQ(pieces(*tokenizer, plain(*tokenizer, "hello")), (Texts{" he", "llo"}));
    EXPECT_EQ(plain(*tokenizer, "\xE2\x96\x81he"), plain(*tokenizer, " he"));
    EXPECT_EQ(pieces(*tokenizer, plain(*tokenizer, "\xE2\x82\xAC")),
              (Texts{" ", "\xE2", "\x82", "\xAC"}));
    EXPECT_TRUE(plain(*tokenizer, "").empty());
    EXPECT_EQ(tokenizer->find("<0xE2>"), std::optional<TokenId>(3 + 0xE2));
    EXPECT_EQ(tokenizer->find("\xE2\x96\x81he"),
              std::optional<TokenId>(plain(*tokenizer, "he")[0]));
    EXPECT_TRUE(tokenizer->addBos());
    // The space comes again after each added token, and untrusted markers are spelled out.
    EXPECT_EQ(pieces(*tokenizer, tokenizer->encode("he<s>he", SpecialTokens::Recognise)),
              (Texts{" he", "<s>", " he"}));
    const std::vector<TokenId> spelled = plain(*tokenizer, "<s>");
    EXPECT_EQ(std::ranges::count(spelled, 1), 0);
}

TEST(Tokenizer, SentencePieceCutsAtSpacesOnlyWhereNoTokenCrosses) {
    const std::vector<std::string> words = {"\xE2\x96\x81",
                                            "a",
                                            "b",
                                            "\xE2\x96\x81"
                                            "a",
                                            "ab",
                                            "\xE2\x96\x81\xE2\x96\x81"};
    std::vector<std::string> crossing = words;
    crossing.push_back(
        "b\xE2\x96\x81"
        "a");
    const auto cutting = createOrFail(sentenceVocabulary(words));
    const auto whole = createOrFail(sentenceVocabulary(crossing));
    ASSERT_TRUE(cutting && whole);
    using Texts = std::vector<std::string>;
    EXPECT_EQ(pieces(*cutting, plain(*cutting, "ab ab  b a")),
              (Texts{" a", "b", " a", "b", "  ", "b", " a"}));
    EXPECT_EQ(pieces(*cutting, plain(*cutting, "b a")), (Texts{" ", "b", " a"}));
    EXPECT_EQ(pieces(*whole, plain(*whole, "b a")), (Texts{" ", "b a"}));
    EXPECT_EQ(plain(*cutting, std::string(300, 'a')).size(), 300U);
}

TEST(Tokenizer, AByteWithoutTokenIsLeftOutOrSubstituted) {
    VocabularyData data = byteVocabulary({"a b"});
    data.types[1] = 5;
    const auto dropping = createOrFail(data);
    ASSERT_NE(dropping, nullptr);
    EXPECT_EQ(dropping->decode(plain(*dropping,
                                     "xa\x01"
                                     "b")),
              "xab");
    data.tokens.emplace_back("<unk>");
    data.types.push_back(2);
    data.unk = static_cast<uint32_t>(data.tokens.size() - 1);
    const auto substituting = createOrFail(data);
    ASSERT_NE(substituting, nullptr);
    EXPECT_EQ(substituting->decode(plain(*substituting,
                                         "xa\x01"
                                         "b")),
              "xa<unk>b");
    data.types.back() = 3;  // a control token must not come out of ordinary text
    const auto strict = createOrFail(data);
    ASSERT_NE(strict, nullptr);
    EXPECT_EQ(strict->decode(plain(*strict,
                                   "xa\x01"
                                   "b")),
              "xab");
}

TEST(Tokenizer, AMergeThatMakesAMarkerIsNotApplied) {
    VocabularyData data = byteVocabulary({"a b", "ab c"});
    data.types[257] = 3;  // abc
    const auto tokenizer = createOrFail(std::move(data));
    ASSERT_NE(tokenizer, nullptr);
    using Texts = std::vector<std::string>;
    EXPECT_EQ(pieces(*tokenizer, plain(*tokenizer, "abc")), (Texts{"ab", "c"}));
    EXPECT_EQ(tokenizer->encode("abc", SpecialTokens::Recognise), std::vector<TokenId>{257});
}

TEST(Tokenizer, ComposesAccentsOnlyWhereTheFileAsksForIt) {
    auto json = nlohmann::json::parse(tokenizerJson("qwen2"));
    json["normalizer"] = {{"type", "NFC"}};
    const auto composing = createOrFail(fromTokenizerJson(json.dump()));
    const auto keeping = namedTokenizer("qwen2");
    ASSERT_TRUE(composing && keeping);
    const std::string decomposed =
        "caf"
        "e\xCC\x81 \xFF"
        "e\xCC\x81";
    EXPECT_EQ(composing->decode(plain(*composing, decomposed)), "caf\xC3\xA9 \xFF\xC3\xA9");
    EXPECT_EQ(keeping->decode(plain(*keeping, decomposed)), decomposed);
}

TEST(Tokenizer, KnowsWhatEndsAnAnswerAndWhatIsHidden) {
    VocabularyData data = byteVocabulary({});
    std::vector<uint32_t> ids;
    for (const char* text :
         {"<|im_end|>", "<think>", "<tool_call>", "<fim_pad>", "<file_sep>", "[e~[", "<my_eos>"}) {
        ids.push_back(static_cast<uint32_t>(data.tokens.size()));
        data.tokens.emplace_back(text);
        data.types.push_back(3);
    }
    data.eos = ids[6];
    const auto tokenizer = createOrFail(std::move(data));
    ASSERT_NE(tokenizer, nullptr);
    const bool ends[] = {true, false, false, false, false, true, true};
    const bool hidden[] = {true, false, false, true, true, true, true};
    for (size_t i = 0; i < ids.size(); ++i) {
        const auto id = static_cast<TokenId>(ids[i]);
        EXPECT_EQ(tokenizer->isEndOfGeneration(id), ends[i]) << tokenizer->bytesOf(id);
        EXPECT_EQ(tokenizer->hiddenFromUser(id), hidden[i]) << tokenizer->bytesOf(id);
    }
    EXPECT_FALSE(tokenizer->isEndOfGeneration('a'));
    EXPECT_FALSE(tokenizer->hiddenFromUser(-1));
    EXPECT_EQ(tokenizer->eos(), std::optional<TokenId>(static_cast<TokenId>(ids[6])));
    EXPECT_EQ(tokenizer->bos(), std::nullopt);
    EXPECT_EQ(tokenizer->find("no such token"), std::nullopt);
    EXPECT_EQ(tokenizer->find("\xC4\xA0"),
              std::optional<TokenId>(' '));  // U+0120 stands for a space
}

TEST(Tokenizer, ManyThreadsMayEncodeAtOnce) {
    const auto tokenizer = namedTokenizer("smollm");
    ASSERT_NE(tokenizer, nullptr);
    const std::string text = readWholeFile(testing::dataPath("tokenizers") / "README.md");
    const std::vector<TokenId> expected = plain(*tokenizer, text);
    std::atomic<int> n_equal{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 50; ++i) {
                    n_equal += plain(*tokenizer, text) == expected ? 1 : 0;
                }
            });
        }
    }
    EXPECT_EQ(n_equal, 200);
}

}  // namespace
}  // namespace belvedere::inference
