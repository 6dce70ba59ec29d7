// SPDX-License-Identifier: Apache-2.0
// Real vocabularies of other people, read from the reference folder and not carried by the project.
#include <sstream>

#include "inference/format/gguf_vocabulary.h"
#include "tests/inference/tokenizer/test_vocabularies.h"

namespace belvedere::inference {
namespace {

std::vector<std::string> splitCases(const std::string& text) {
    const std::string separator = "\n__ggml_vocab_test__\n";
    std::vector<std::string> cases;
    size_t begin = 0;
    for (size_t end = text.find(separator); end != std::string::npos;
         end = text.find(separator, begin)) {
        cases.push_back(text.substr(begin, end - begin));
        begin = end + separator.size();
    }
    if (begin < text.size()) {
        cases.push_back(text.substr(begin));
    }
    return cases;
}

std::vector<std::vector<TokenId>> readIds(const std::string& text) {
    std::vector<std::vector<TokenId>> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        lines.emplace_back(std::istream_iterator<TokenId>(words), std::istream_iterator<TokenId>());
    }
    return lines;
}

class ReferenceVocabulary : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Files,
                         ReferenceVocabulary,
                         ::testing::Values("gpt-2", "qwen2", "llama-bpe", "llama-spm"),
                         [](const auto& test) { return withoutDashes(test.param); });

TEST_P(ReferenceVocabulary, GivesTheIdsOfTheOriginalTokenizer) {
    const auto reference = testing::referenceDir();
    if (!reference || !std::filesystem::is_directory(*reference / "vocab")) {
        GTEST_SKIP() << testing::kNoReference;
    }
    const std::string path =
        (*reference / "vocab" / ("ggml-vocab-" + std::string(GetParam()) + ".gguf")).string();
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    const auto tokenizer = createOrFail(vocabularyFromGguf(*file));
    ASSERT_NE(tokenizer, nullptr);
    const std::vector<std::string> cases = splitCases(readWholeFile(path + ".inp"));
    const std::vector<std::vector<TokenId>> expected = readIds(readWholeFile(path + ".out"));
    ASSERT_EQ(cases.size(), expected.size());
    ASSERT_GT(cases.size(), 40U);
    for (size_t i = 0; i < cases.size(); ++i) {
        EXPECT_EQ(tokenizer->encode(cases[i], SpecialTokens::Recognise), expected[i])
            << i << ": " << cases[i];
        EXPECT_EQ(tokenizer->encode(cases[i], SpecialTokens::Plain), expected[i])
            << i << ": " << cases[i];
        const std::string prefix =
            std::string(GetParam()) == "llama-spm" && !cases[i].empty() ? " " : "";
        EXPECT_EQ(tokenizer->decode(expected[i]), prefix + cases[i]);
    }
}

}  // namespace
}  // namespace belvedere::inference
