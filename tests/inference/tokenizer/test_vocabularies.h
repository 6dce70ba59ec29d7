// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tokenizers that several tests here need.

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "inference/tokenizer/byte_alphabet.h"
#include "inference/tokenizer/tokenizer.h"
#include "inference/tokenizer/tokenizer_json.h"
#include "tests/support/reference_dir.h"

namespace belvedere::inference {

inline std::string readWholeFile(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in.good()) << path;
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::string tokenizerJson(const std::string& name) {
    return readWholeFile(testing::dataPath("tokenizers") / (name + ".json"));
}

inline std::unique_ptr<Tokenizer> createOrFail(Result<VocabularyData> data) {
    if (!data) {
        ADD_FAILURE() << data.error().message;
        return nullptr;
    }
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::create(std::move(*data));
    if (!tokenizer) {
        ADD_FAILURE() << tokenizer.error().message;
        return nullptr;
    }
    return std::move(*tokenizer);
}

/// A test's name may not hold a dash.
inline std::string withoutDashes(std::string name) {
    std::erase(name, '-');
    return name;
}

/// One of tests/data/tokenizers.
inline std::unique_ptr<Tokenizer> namedTokenizer(const std::string& name) {
    return createOrFail(fromTokenizerJson(tokenizerJson(name)));
}

/// "0xB5"-style bytes and a few merges: small enough to follow by hand. Ids: byte b is id b; then
/// the merged tokens; then
/// <|s|> (control) and <u> (user-defined).
inline VocabularyData byteVocabulary(const std::vector<std::string>& merges) {
    VocabularyData data;
    data.model = "gpt2";
    data.pre = "gpt-2";
    for (uint32_t byte = 0; byte < 256; ++byte) {
        for (uint32_t c = 0; c < 256 + 68; ++c) {
            std::string text;
            appendUtf8(text, c);
            if (bytesOfStoredToken(text) == std::string(1, static_cast<char>(byte))) {
                data.tokens.push_back(text);
            }
        }
    }
    for (const std::string& merge : merges) {
        const size_t space = merge.find(' ', 1);
        data.tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
    }
    data.merges = merges;
    data.types.assign(data.tokens.size(), 1);
    data.tokens.push_back("<|s|>");
    data.types.push_back(3);
    data.tokens.push_back("<u>");
    data.types.push_back(4);
    return data;
}

/// A SentencePiece vocabulary of the given pieces (better ones first): <unk> <s> </s>, 256 bytes,
/// the pieces.
inline VocabularyData sentenceVocabulary(const std::vector<std::string>& pieces) {
    VocabularyData data;
    data.model = "llama";
    data.tokens = {"<unk>", "<s>", "</s>"};
    data.types = {2, 3, 3};
    for (uint32_t byte = 0; byte < 256; ++byte) {
        data.tokens.push_back(fmt::format("<0x{:02X}>", byte));
        data.types.push_back(6);
    }
    data.scores.assign(data.tokens.size(), 0.0F);
    for (const std::string& piece : pieces) {
        data.scores.push_back(-static_cast<float>(data.tokens.size()));
        data.tokens.push_back(piece);
        data.types.push_back(1);
    }
    data.bos = 1;
    data.eos = 2;
    data.unk = 0;
    return data;
}

}  // namespace belvedere::inference
