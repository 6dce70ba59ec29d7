// SPDX-License-Identifier: Apache-2.0
#include "app/headless/arguments.h"

#include <gtest/gtest.h>

namespace belvedere::app {
namespace {

TEST(Arguments, TakeOptionsInBothFormsAndAnyOrder) {
    const Result<Arguments> a =
        parseArguments({"ask", "--budget=4096", "where is", "--repo", "src", "--json", "main"});
    ASSERT_TRUE(a.has_value()) << a.error().message;
    EXPECT_EQ(a->command, "ask");
    EXPECT_EQ(a->positional, (std::vector<std::string>{"where is", "main"}));
    EXPECT_EQ(a->repository, "src");
    EXPECT_EQ(a->budget, 4096U);
    EXPECT_TRUE(a->json);
}

TEST(Arguments, EndOptionsAtTwoDashes) {
    const Result<Arguments> a = parseArguments({"ask", "--", "--repo"});
    ASSERT_TRUE(a.has_value());
    EXPECT_EQ(a->positional, std::vector<std::string>{"--repo"});
}

TEST(Arguments, NameWhatIsWrong) {
    const std::vector<std::vector<std::string>> wrong = {
        {"ask", "--budgets", "1"},      // unknown
        {"ask", "--budget"},            // no value
        {"ask", "--budget", "1k"},      // not a number
        {"ask", "--budget", "-1"},      // negative
        {"ask", "--seed", ""},          // empty
        {"ask", "--compute", "quick"},  // no such way
        {"ask", "--adapter", "a.gguf:x"},
        {"ask", "--adapter", ":2"},
        {"ask", "--adapter", "a.gguf:nan"},
    };
    for (const std::vector<std::string>& words : wrong) {
        const Result<Arguments> a = parseArguments(words);
        ASSERT_FALSE(a.has_value()) << words[1];
        EXPECT_EQ(a.error().code, ErrorCode::InvalidArgument);
        EXPECT_NE(a.error().message.find(words[1]), std::string::npos) << a.error().message;
    }
}

TEST(Arguments, AdapterScaleIsOptional) {
    const Result<Arguments> a = parseArguments({"--adapter", "a.gguf", "--adapter", "b.gguf:-0.5"});
    ASSERT_TRUE(a.has_value());
    ASSERT_EQ(a->adapters.size(), 2U);
    EXPECT_EQ(a->adapters[0].path, "a.gguf");
    EXPECT_FLOAT_EQ(a->adapters[0].scale, 1.0F);
    EXPECT_EQ(a->adapters[1].path, "b.gguf");
    EXPECT_FLOAT_EQ(a->adapters[1].scale, -0.5F);
}

TEST(Arguments, CacheTypesAreThoseOfTheEngine) {
    const auto a = parseArguments({"ask", "--cache-type", "q8_0", "--index-cache-type=f32"});
    ASSERT_TRUE(a.has_value()) << a.error().message;
    EXPECT_EQ(a->cache_type, kernels::CacheType::Q8_0);
    EXPECT_EQ(a->index_cache_type, kernels::CacheType::F32);
    EXPECT_FALSE(parseArguments({"ask"})->cache_type.has_value());
    const auto wrong = parseArguments({"ask", "--cache-type", "q4"});
    ASSERT_FALSE(wrong.has_value());
    EXPECT_NE(wrong.error().message.find("f32 or f16 or bf16 or q8_0"), std::string::npos);
}

TEST(Arguments, AttentionIsMsaOrDense) {
    EXPECT_EQ(parseArguments({"ask", "--attention", "dense"})->attention,
              inference::Attention::Dense);
    EXPECT_EQ(parseArguments({"ask", "--attention", "msa"})->attention, inference::Attention::Msa);
    EXPECT_FALSE(parseArguments({"ask"})->attention.has_value());
    const auto wrong = parseArguments({"ask", "--attention", "sparse"});
    ASSERT_FALSE(wrong.has_value());
    EXPECT_NE(wrong.error().message.find("sparse"), std::string::npos);
}

TEST(Arguments, SpeculativeIsOnOrOff) {
    EXPECT_EQ(parseArguments({"ask", "--speculative", "on"})->speculative, true);
    EXPECT_EQ(parseArguments({"ask", "--speculative", "off"})->speculative, false);
    EXPECT_FALSE(parseArguments({"ask"})->speculative.has_value());
    EXPECT_FALSE(parseArguments({"ask", "--speculative", "maybe"}).has_value());
}

}  // namespace
}  // namespace belvedere::app
