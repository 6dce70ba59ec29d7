// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "inference/format/gguf.h"
#include "inference/format/gguf_vocabulary.h"
#include "inference/sampling/answer_stream.h"
#include "inference/sampling/sampler.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using namespace inference;

std::map<TokenId, int> drawMany(const SamplingParams& params,
                                const std::vector<float>& logits,
                                int n = 4000) {
    Sampler sampler(params, logits.size(), {}, kernels::active());
    std::map<TokenId, int> counts;
    for (int i = 0; i < n; ++i) {
        std::vector<float> copy = logits;
        ++counts[sampler.sample(copy, {})];
    }
    return counts;
}

TEST(Random, GivesThePublishedSequence) {
    Random random(1234567);  // SplitMix64's test values
    EXPECT_EQ(random.next(), 6457827717110365317U);
    EXPECT_EQ(random.next(), 3203168211198807973U);
}

TEST(Sampler, GreedyTakesTheLowestOfEqualLogits) {
    Sampler sampler({}, 5, {}, kernels::active());
    std::vector<float> logits = {1, 3, 3, 2, 3};
    EXPECT_EQ(sampler.sample(logits, {}), 1);
}

TEST(Sampler, NeverPicksBannedOrPaddingIds) {
    const TokenId banned[] = {1};
    Sampler sampler({}, 3, banned, kernels::active());
    std::vector<float> logits = {1, 9, 2, 50};
    EXPECT_EQ(sampler.sample(logits, {}), 2);
}

TEST(Sampler, DrawsInProportion) {
    const auto counts = drawMany({.temperature = 1.0F, .seed = 3}, {0.0F, std::log(3.0F)});
    EXPECT_NEAR(counts.at(1) / 4000.0, 0.75, 0.03);
    const auto hot = drawMany({.temperature = 2.0F, .seed = 3}, {0.0F, 2 * std::log(3.0F)});
    EXPECT_NEAR(hot.at(1) / 4000.0, 0.75, 0.03);
}

TEST(Sampler, EachCutLeavesOutTheUnlikely) {
    const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.15F),
                                       std::log(0.05F)};
    EXPECT_EQ(drawMany({.temperature = 1.0F, .top_k = 2}, logits).size(), 2U);
    EXPECT_EQ(drawMany({.temperature = 1.0F, .top_p = 0.79F}, logits).size(), 2U);
    EXPECT_EQ(drawMany({.temperature = 1.0F, .top_p = 0.81F}, logits).size(), 3U);
    EXPECT_EQ(drawMany({.temperature = 1.0F, .top_p = 0.01F}, logits).size(), 1U);
    EXPECT_EQ(drawMany({.temperature = 1.0F, .min_p = 0.2F}, logits).size(), 3U);
    EXPECT_EQ(drawMany({.temperature = 1.0F}, logits).size(), 4U);
}

TEST(Sampler, PenaltyLowersRecentTokensOnly) {
    SamplingParams params;
    params.repetition_penalty = 2.0F;
    params.repetition_window = 2;
    Sampler sampler(params, 3, {}, kernels::active());
    const std::vector<TokenId> recent = {2, 0, 0};  // 2 is outside the window
    std::vector<float> logits = {5.0F, 3.0F, 2.9F};
    EXPECT_EQ(sampler.sample(logits, recent), 1);
    std::vector<float> negative = {-1.0F, -1.5F, -3.0F};
    EXPECT_EQ(sampler.sample(negative, recent), 1);
}

TEST(Sampler, RefusesParametersOutsideTheirRange) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(checkSampling({}).has_value());
    EXPECT_FALSE(checkSampling({.temperature = -0.1F}).has_value());
    EXPECT_FALSE(checkSampling({.temperature = nan}).has_value());
    EXPECT_FALSE(checkSampling({.top_p = 0.0F}).has_value());
    EXPECT_FALSE(checkSampling({.min_p = 1.5F}).has_value());
    EXPECT_FALSE(checkSampling({.repetition_penalty = 0.0F}).has_value());
}

TEST(Sampler, SurvivesLogitsThatAreNoNumbers) {
    Sampler sampler({.temperature = 1.0F}, 3, {}, kernels::active());
    std::vector<float> logits(3, std::numeric_limits<float>::quiet_NaN());
    const TokenId id = sampler.sample(logits, {});
    EXPECT_TRUE(id >= 0 && id < 3);
}

class AnswerStreamTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const std::string bytes = tinyModel();
        const auto file = GgufFile::parse(std::as_bytes(std::span(bytes)), "tiny");
        ASSERT_TRUE(file.has_value());
        auto tokenizer = Tokenizer::create(*vocabularyFromGguf(*file));
        ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
        tokenizer_ = std::move(*tokenizer);
    }

    /// Pushes byte by byte; returns what was free after each.
    std::vector<std::string> pushAll(AnswerStream& stream, const std::string& text) {
        std::vector<std::string> pieces;
        for (const char byte : text) {
            if (stream.push(byteToken(byte))) {
                pieces.push_back(stream.take());
                break;
            }
            pieces.push_back(stream.take());
        }
        return pieces;
    }

    [[nodiscard]] TokenId byteToken(char byte) const {
        for (TokenId id = 0; id < 256; ++id) {
            if (tokenizer_->bytesOf(id) == std::string_view(&byte, 1)) {
                return id;
            }
        }
        return -1;
    }

    std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(AnswerStreamTest, HoldsBackWhatCouldBeginAStopString) {
    AnswerStream stream(*tokenizer_, {"END", "EN!"}, false);
    EXPECT_EQ(pushAll(stream, "aEbENc"), (std::vector<std::string>{"a", "", "Eb", "", "", "ENc"}));
    EXPECT_EQ(pushAll(stream, "xENDy"), (std::vector<std::string>{"x", "", "", ""}));
    stream.finish();
    EXPECT_EQ(stream.take(), "");
}

TEST_F(AnswerStreamTest, FreesTheRestAtTheEnd) {
    AnswerStream stream(*tokenizer_, {"END"}, false);
    pushAll(stream, "aEN");
    stream.finish();
    EXPECT_EQ(stream.take(), "EN");
}

TEST_F(AnswerStreamTest, GivesWholeCharactersOnly) {
    AnswerStream stream(*tokenizer_, {}, false);
    EXPECT_EQ(pushAll(stream, "\xE2\x82\xAC!"),
              (std::vector<std::string>{"", "", "\xE2\x82\xAC", "!"}));
    pushAll(stream, "\xE2\x82");
    stream.finish();
    EXPECT_EQ(stream.take(), "\xEF\xBF\xBD");
}

TEST_F(AnswerStreamTest, HidesMarkersUnlessAskedFor) {
    const TokenId marker = *tokenizer_->find("<|im_start|>");
    AnswerStream hidden(*tokenizer_, {}, false);
    EXPECT_FALSE(hidden.push(marker));
    EXPECT_EQ(hidden.take(), "");
    AnswerStream shown(*tokenizer_, {}, true);
    EXPECT_FALSE(shown.push(marker));
    EXPECT_EQ(shown.take(), "<|im_start|>");
}

}  // namespace
}  // namespace belvedere::testing
