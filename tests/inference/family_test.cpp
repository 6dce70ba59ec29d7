// SPDX-License-Identifier: Apache-2.0
// Whole models against logits of transformers in f32: every family, from a GGUF and from a
// checkpoint, every instruction set, exact and fast.
#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "tests/inference/checkpoint_twin.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using inference::Compute;
using kernels::Isa;

constexpr double kExactTolerance = 2e-3;

std::string folder(const std::string& family) {
    return dataPath(std::filesystem::path("inference") / family).string();
}

/// Where the weights come from. Published: the checkpoint that the GGUF was converted from, read
/// from the reference folder; Twin: the same, made from the GGUF.
enum class Form { Gguf, Twin, Published };

/// The experts of each token, by layer.
struct ExpertRecorder : inference::PassObserver {
    void onHidden(size_t /*layer*/, std::span<const float> /*values*/) override {}

    void onBlocks(size_t /*layer*/, std::span<const int32_t> /*ids*/) override {}

    void onExperts(size_t layer, const inference::ChosenExperts& chosen) override {
        std::vector<int32_t>& all = ids[layer];
        all.insert(all.end(), chosen.ids.begin(), chosen.ids.end());
    }

    std::map<size_t, std::vector<int32_t>> ids;
};

using FamilyCase = std::tuple<const char*, Form, Isa>;

class FamilyTest : public ::testing::TestWithParam<FamilyCase> {
  protected:
    void SetUp() override {
        options_.kernels = kernels::tableFor(std::get<2>(GetParam()));
        if (options_.kernels == nullptr) {
            GTEST_SKIP() << "no kernels here for " << kernels::isaName(std::get<2>(GetParam()));
        }
        const std::string family = folder(std::get<0>(GetParam()));
        model_ = pathOf(family);
        if (model_.empty()) {
            GTEST_SKIP() << kNoReference;
        }
        ids_ = expectedIds(family + "/expected.safetensors");
        expected_ = expectedLogits(family + "/expected.safetensors");
        vocab_size_ = expected_.size() / ids_.size();
        leaveOutWhatAnUnroundedBiasDecides();
    }

    std::string pathOf(const std::string& family) const {
        switch (std::get<1>(GetParam())) {
            case Form::Gguf:
                return family + "/model-BF16.gguf";
            case Form::Twin:
                return checkpointTwin(readFile(family + "/model-BF16.gguf"),
                                      readFile(family + "/config.json"))
                    .write(dir_.path());
            case Form::Published:
                break;
        }
        const auto reference = referenceDir();
        return reference ? (*reference / std::get<0>(GetParam())).string() : "";
    }

    /// The reference of minimax-m2 added a correction bias that was not rounded as the file's is;
    /// from position 61 on that decides a choice of experts within 5e-5 the other way.
    void leaveOutWhatAnUnroundedBiasDecides() {
        if (std::string(std::get<0>(GetParam())) == "family-minimax-m2") {
            keepTokens(61);
        }
    }

    void keepTokens(size_t n) {
        ids_.resize(n);
        expected_.resize(n * vocab_size_);
    }

    /// Tokens before the first for which the fast way chooses other experts than the exact one: the
    /// router's near ties fall either way by rounding, and then nothing is near.
    size_t tokensWithTheExpertsOf(ExpertRecorder& fast) {
        size_t n_same = ids_.size();
        if (fast.ids.empty()) {
            return n_same;
        }
        ExpertRecorder exact;
        options_.compute = Compute::Exact;
        options_.observer = &exact;
        run();
        for (const auto& [layer, ids] : exact.ids) {
            const std::vector<int32_t>& others = fast.ids[layer];
            const auto differs = std::ranges::mismatch(ids, others).in1 - ids.begin();
            n_same = std::min(n_same, static_cast<size_t>(differs) * ids_.size() / ids.size());
        }
        return n_same;
    }

    std::vector<float> run() {
        auto logits = runModel(model_, ids_, options_);
        EXPECT_TRUE(logits.has_value()) << (logits.has_value() ? "" : logits.error().message);
        return logits.value_or(std::vector<float>(expected_.size()));
    }

    TempDir dir_;
    RunOptions options_;
    std::string model_;
    std::vector<inference::TokenId> ids_;
    std::vector<float> expected_;
    size_t vocab_size_ = 0;
};

TEST_P(FamilyTest, ExactLogitsMatchTheReference) {
    const LogitsDifference difference = compareLogits(run(), expected_, vocab_size_, 0.0);
    EXPECT_LT(difference.largest, kExactTolerance);
}

TEST_P(FamilyTest, FastLogitsStayCloseToTheReference) {
    ExpertRecorder experts;
    options_.compute = Compute::Fast;
    options_.observer = &experts;
    std::vector<float> logits = run();
    const size_t n_same = tokensWithTheExpertsOf(experts);
    EXPECT_GE(n_same, ids_.size() / 5);
    keepTokens(n_same);
    logits.resize(expected_.size());
    const LogitsDifference difference = compareLogits(logits, expected_, vocab_size_, 0.3);
    EXPECT_LT(difference.nmse, 2e-3);
    EXPECT_LE(difference.n_best_differs - difference.n_near_ties, ids_.size() * 3 / 100);
    const double reference_loss = meanLoss(expected_, ids_, vocab_size_);
    EXPECT_NEAR(meanLoss(logits, ids_, vocab_size_) / reference_loss, 1.0, 0.005);
}

std::string caseName(const ::testing::TestParamInfo<FamilyCase>& info) {
    std::string name = std::get<0>(info.param);
    std::erase(name, '-');
    constexpr const char* kForms[] = {"gguf", "twin", "published"};
    return fmt::format("{}_{}_{}", name, kForms[static_cast<size_t>(std::get<1>(info.param))],
                       kernels::isaName(std::get<2>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(
    ,
    FamilyTest,
    ::testing::Combine(::testing::Values("family-llama-tied",
                                         "family-llama3-rope",
                                         "family-qwen2",
                                         "family-qwen3",
                                         "family-qwen3-moe",
                                         "family-minimax-m2"),
                       ::testing::Values(Form::Gguf, Form::Twin, Form::Published),
                       ::testing::Values(Isa::Scalar, Isa::Avx2, Isa::Avx512, Isa::Amx)),
    caseName);

class ChunkTest : public ::testing::TestWithParam<size_t> {};

TEST_P(ChunkTest, DoesNotChangeExactLogits) {
    const std::string family = folder("family-qwen3");
    const auto ids = expectedIds(family + "/expected.safetensors");
    const auto expected = expectedLogits(family + "/expected.safetensors");
    RunOptions options;
    options.chunk = GetParam();
    const auto logits = runModel(family + "/model-BF16.gguf", ids, options);
    ASSERT_TRUE(logits.has_value()) << logits.error().message;
    EXPECT_LT(compareLogits(*logits, expected, expected.size() / ids.size(), 0.0).largest,
              kExactTolerance);
}

INSTANTIATE_TEST_SUITE_P(, ChunkTest, ::testing::Values(1, 7, 64, 128, 129));

TEST(ThreadsTest, DoNotChangeOneBit) {
    const std::string family = folder("family-llama-tied");
    const auto ids = expectedIds(family + "/expected.safetensors");
    for (const Compute compute : {Compute::Exact, Compute::Fast}) {
        RunOptions options;
        options.compute = compute;
        options.n_threads = 1;
        const auto one = runModel(family + "/model-BF16.gguf", ids, options);
        options.n_threads = 2;
        const auto two = runModel(family + "/model-BF16.gguf", ids, options);
        options.n_threads = 5;
        const auto five = runModel(family + "/model-BF16.gguf", ids, options);
        ASSERT_TRUE(one.has_value() && two.has_value() && five.has_value());
        EXPECT_EQ(*one, *two);
        EXPECT_EQ(*one, *five);
    }
}

TEST(AdapterTest, BringsMsaToItsLayers) {
    const std::string adapter = folder("adapter-llama-msa");
    const auto ids = expectedIds(adapter + "/expected.safetensors");
    const auto expected = expectedLogits(adapter + "/expected.safetensors");
    const size_t vocab_size = expected.size() / ids.size();
    RunOptions options;
    options.adapters = {{adapter + "/adapter.gguf", 1.0F}};
    const std::string model = folder("family-llama-tied") + "/model-BF16.gguf";
    const auto logits = runModel(model, ids, options);
    ASSERT_TRUE(logits.has_value()) << logits.error().message;
    EXPECT_LT(compareLogits(*logits, expected, vocab_size, 0.0).largest, kExactTolerance);

    options.compute = Compute::Fast;
    const auto fast = runModel(model, ids, options);
    ASSERT_TRUE(fast.has_value()) << fast.error().message;
    EXPECT_LT(compareLogits(*fast, expected, vocab_size, 0.0).nmse, 2e-2);
}

/// Up to position 47 all blocks (of 16, top-k 3) are chosen, so dense attention gives the same;
/// behind it does not.
TEST(AdapterTest, RunsDenseWhereThatIsAskedFor) {
    constexpr size_t kDensePositions = 48;
    const std::string adapter = folder("adapter-llama-msa");
    const auto ids = expectedIds(adapter + "/expected.safetensors");
    const auto expected = expectedLogits(adapter + "/expected.safetensors");
    const size_t vocab_size = expected.size() / ids.size();
    RunOptions options;
    options.adapters = {{adapter + "/adapter.gguf", 1.0F}};
    options.attention = inference::Attention::Dense;
    const auto logits = runModel(folder("family-llama-tied") + "/model-BF16.gguf", ids, options);
    ASSERT_TRUE(logits.has_value()) << logits.error().message;
    const size_t n = kDensePositions * vocab_size;
    EXPECT_LT(
        compareLogits(std::span(*logits).first(n), std::span(expected).first(n), vocab_size, 0.0)
            .largest,
        kExactTolerance);
    EXPECT_GT(compareLogits(*logits, expected, vocab_size, 0.0).largest, 10 * kExactTolerance);
}

TEST(AdapterTest, NeedsTheRowsOfAGgufWhereTheseAreReordered) {
    const TempDir dir;
    const std::string llama = folder("family-llama-tied");
    RunOptions options;
    options.adapters = {{folder("adapter-llama-msa") + "/adapter.gguf", 1.0F}};
    const std::vector<inference::TokenId> ids = {1, 2, 3};
    const auto logits = runModel(
        checkpointTwin(readFile(llama + "/model-BF16.gguf"), readFile(llama + "/config.json"))
            .write(dir.path()),
        ids, options);
    ASSERT_FALSE(logits.has_value());
    EXPECT_EQ(logits.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(logits.error().message.find("another order"), std::string::npos);
}

TEST(AdapterTest, ScaleZeroLeavesOnlyWhatItReplaces) {
    const std::string adapter = folder("adapter-llama-msa") + "/adapter.gguf";
    const std::string model = folder("family-llama-tied") + "/model-BF16.gguf";
    const auto ids = expectedIds(folder("family-llama-tied") + "/expected.safetensors");
    RunOptions options;
    options.adapters = {{adapter, 0.0F}};
    const auto zero = runModel(model, ids, options);
    options.adapters = {{adapter, 1.0F}};
    const auto one = runModel(model, ids, options);
    ASSERT_TRUE(zero.has_value() && one.has_value());
    EXPECT_NE(*zero, *one);
    options.adapters = {{adapter, 1.0F}, {adapter, 0.5F}};
    const auto twice = runModel(model, ids, options);
    ASSERT_FALSE(twice.has_value());
    EXPECT_EQ(twice.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(twice.error().message.find("already"), std::string::npos);
}

}  // namespace
}  // namespace belvedere::testing
