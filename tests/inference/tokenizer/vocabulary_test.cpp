// SPDX-License-Identifier: Apache-2.0
// Vocabularies that contradict themselves are refused with the key and the index.
#include <cmath>
#include <functional>

#include "tests/inference/tokenizer/test_vocabularies.h"

namespace belvedere::inference {
namespace {

void expectError(VocabularyData data, const std::string& part) {
    const auto tokenizer = Tokenizer::create(std::move(data));
    ASSERT_FALSE(tokenizer) << part;
    EXPECT_NE(tokenizer.error().message.find(part), std::string::npos) << tokenizer.error().message;
}

TEST(Vocabulary, ByteLevelFaultsAreNamed) {
    const std::pair<std::string, std::function<void(VocabularyData&)>> faults[] = {
        {"tokenizer.ggml.model: 'unigram'", [](auto& d) { d.model = "unigram"; }},
        {"tokenizer.ggml.pre: 'dbrx'", [](auto& d) { d.pre = "dbrx"; }},
        {"tokenizer.ggml.tokens: missing", [](auto& d) { d.tokens.clear(); }},
        {"tokenizer.ggml.token_type: 3 entries", [](auto& d) { d.types.resize(3); }},
        {"tokenizer.ggml.token_type[7]: 9", [](auto& d) { d.types[7] = 9; }},
        {"tokenizer.ggml.token_type[0]: -1", [](auto& d) { d.types[0] = -1; }},
        {"tokenizer.ggml.scores: 1 entries", [](auto& d) { d.scores = {1.0F}; }},
        {"tokenizer.ggml.tokens[98]: the same text as token 97",
         [](auto& d) { d.tokens[98] = "a"; }},
        {"tokenizer.ggml.tokens[5]: a byte token", [](auto& d) { d.types[5] = 6; }},
        {"tokenizer.ggml.tokens[1]: 65537 bytes",
         [](auto& d) { d.tokens[1] = std::string(65537, 'x'); }},
        {"an added token of 1025 bytes", [](auto& d) { d.tokens.back() = std::string(1025, 'x'); }},
        {"tokenizer.ggml.merges: missing", [](auto& d) { d.merges.clear(); }},
        {"tokenizer.ggml.merges[1]: not two tokens", [](auto& d) { d.merges[1] = "ab"; }},
        {"tokenizer.ggml.merges[1]: not two tokens", [](auto& d) { d.merges[1] = ""; }},
        {"tokenizer.ggml.merges[1]: not two tokens", [](auto& d) { d.merges[1] = " a"; }},
        {"tokenizer.ggml.merges[1]: not two tokens", [](auto& d) { d.merges[1] = "a "; }},
        {"tokenizer.ggml.merges[1]: not two tokens", [](auto& d) { d.merges[1] = "a b c"; }},
        {"tokenizer.ggml.merges[1]: its left part", [](auto& d) { d.merges[1] = "zz c"; }},
        {"tokenizer.ggml.merges[1]: its right part", [](auto& d) { d.merges[1] = "c zz"; }},
        {"tokenizer.ggml.merges[1]: its result", [](auto& d) { d.merges[1] = "c d"; }},
        {"tokenizer.ggml.merges[1]: the same pair as merge 0",
         [](auto& d) { d.merges[1] = "a b"; }},
        {"tokenizer.ggml.bos_token_id: 260", [](auto& d) { d.bos = 260; }},
        {"tokenizer.ggml.eos_token_id: 4294967295", [](auto& d) { d.eos = 0xFFFFFFFF; }},
        {"tokenizer.ggml.unknown_token_id", [](auto& d) { d.unk = 1000; }},
        {"tokenizer.ggml.remove_extra_whitespaces",
         [](auto& d) { d.remove_extra_whitespaces = true; }},
        {"added token 3: not an added token", [](auto& d) { d.added_rules.push_back({.id = 3}); }},
        {"added token 99999: not an added token",
         [](auto& d) { d.added_rules.push_back({.id = 99999}); }},
    };
    const VocabularyData good = byteVocabulary({"a b", "ab c"});
    ASSERT_EQ(good.tokens.size(), 260U);
    ASSERT_NE(createOrFail(good), nullptr);
    for (const auto& [part, spoil] : faults) {
        VocabularyData data = good;
        spoil(data);
        expectError(std::move(data), part);
    }
}

TEST(Vocabulary, SentencePieceFaultsAreNamed) {
    const std::pair<std::string, std::function<void(VocabularyData&)>> faults[] = {
        {"tokenizer.ggml.scores: 0 entries", [](auto& d) { d.scores.clear(); }},
        {"tokenizer.ggml.scores[4]: not a number", [](auto& d) { d.scores[4] = std::nanf(""); }},
        {"tokenizer.ggml.tokens[3]: a byte token, but not of the form",
         [](auto& d) { d.tokens[3] = "<0x-1>"; }},
        {"tokenizer.ggml.tokens[3]: a byte token, but not of the form",
         [](auto& d) { d.tokens[3] = "<0x0>"; }},
        {"tokenizer.ggml.tokens[3]: a byte token, but not of the form",
         [](auto& d) { d.tokens[3] = "<0x000>"; }},
        {"tokenizer.ggml.tokens[3]: a byte token, but not of the form",
         [](auto& d) { d.tokens[3] = ""; }},
        {"tokenizer.ggml.tokens[4]: byte 0x00 is token 3", [](auto& d) { d.tokens[4] = "<0x00>"; }},
        {"no token for byte 0x05 and no unknown token",
         [](auto& d) {
             d.types[3 + 5] = 5;
             d.unk.reset();
         }},
    };
    const VocabularyData good = sentenceVocabulary({"a", "b", "ab"});
    ASSERT_NE(createOrFail(good), nullptr);
    for (const auto& [part, spoil] : faults) {
        VocabularyData data = good;
        spoil(data);
        expectError(std::move(data), part);
    }
}

TEST(Vocabulary, EmptyAndUnusedTextsMatchNothing) {
    VocabularyData data = byteVocabulary({});
    for (int i = 0; i < 2; ++i) {
        data.tokens.emplace_back();
        data.types.push_back(1);
        data.tokens.emplace_back("[PAD]");
        data.types.push_back(5);
    }
    const auto tokenizer = createOrFail(std::move(data));
    ASSERT_NE(tokenizer, nullptr);
    EXPECT_EQ(tokenizer->encode("[PAD]", SpecialTokens::Recognise).size(), 5U);
    EXPECT_EQ(tokenizer->bytesOf(258), "");
    EXPECT_EQ(tokenizer->kind(259), TokenKind::Unused);
}

TEST(Vocabulary, BosIsWantedWhereTheFileOrTheFamilySaysSo) {
    VocabularyData data = byteVocabulary({});
    data.bos = 256;
    EXPECT_FALSE(createOrFail(data)->addBos());
    data.pre = "llama-bpe";
    EXPECT_TRUE(createOrFail(data)->addBos());
    data.add_bos = false;
    EXPECT_FALSE(createOrFail(data)->addBos());
    data.add_bos = true;
    data.bos.reset();
    EXPECT_FALSE(createOrFail(data)->addBos());
}

}  // namespace
}  // namespace belvedere::inference
