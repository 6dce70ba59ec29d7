// SPDX-License-Identifier: Apache-2.0
// MiniMax-M3 against transformers: logits, hidden states, chosen blocks and experts of a small
// model whose dense layers of attention and of MLP differ, and of one layer pair at the real shape.

#include <gtest/gtest.h>

#include "inference/format/safetensors.h"
#include "kernels/kernels.h"
#include "tests/inference/checkpoint_twin.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using inference::Compute;
using kernels::Isa;

constexpr double kTolerance = 1e-3;
constexpr size_t kTokens = 320;
constexpr size_t kLayers = 5;
constexpr size_t kDim = 128;
constexpr size_t kGroups = 2;
constexpr size_t kTopK = 4;
constexpr size_t kUsed = 2;

std::string file(const char* name) {
    return (dataPath("inference/m3-tiny") / name).string();
}

/// What passes computed, one list a layer.
struct Recorder : inference::PassObserver {
    void onHidden(size_t layer, std::span<const float> values) override {
        hidden[layer].insert(hidden[layer].end(), values.begin(), values.end());
    }

    void onBlocks(size_t layer, std::span<const int32_t> ids) override {
        blocks[layer].insert(blocks[layer].end(), ids.begin(), ids.end());
    }

    void onExperts(size_t layer, const inference::ChosenExperts& chosen) override {
        experts[layer].insert(experts[layer].end(), chosen.ids.begin(), chosen.ids.end());
        weights[layer].insert(weights[layer].end(), chosen.weights.begin(), chosen.weights.end());
    }

    std::vector<float> hidden[kLayers + 1];
    std::vector<int32_t> blocks[kLayers];
    std::vector<int32_t> experts[kLayers];
    std::vector<float> weights[kLayers];
};

class M3Tiny : public ::testing::TestWithParam<Isa> {
  protected:
    void SetUp() override {
        options_.kernels = kernels::tableFor(GetParam());
        if (options_.kernels == nullptr) {
            GTEST_SKIP() << "no kernels here for " << kernels::isaName(GetParam());
        }
        ids_ = expectedIds(file("expected.safetensors"));
        logits_ = expectedLogits(file("expected.safetensors"));
    }

    std::vector<float> run(const std::string& path = file("model-BF16.gguf")) {
        auto logits = runModel(path, ids_, options_);
        EXPECT_TRUE(logits.has_value()) << (logits.has_value() ? "" : logits.error().message);
        return logits.value_or(std::vector<float>(logits_.size()));
    }

    RunOptions options_;
    std::vector<inference::TokenId> ids_;
    std::vector<float> logits_;
};

TEST_P(M3Tiny, ExactComputesWhatTheReferenceComputes) {
    const auto expected = inference::SafetensorsFile::open(file("expected.safetensors"));
    Recorder recorder;
    options_.observer = &recorder;
    const size_t vocab_size = logits_.size() / ids_.size();
    EXPECT_LT(compareLogits(run(), logits_, vocab_size, 0.0).largest, kTolerance);

    const auto hidden = *expected->readF32("hidden");
    for (size_t layer = 0; layer <= kLayers; ++layer) {
        const auto reference = std::span(hidden).subspan(layer * kTokens * kDim, kTokens * kDim);
        EXPECT_LT(compareLogits(recorder.hidden[layer], reference, kDim, 0.0).largest, kTolerance)
            << "before layer " << layer;
    }
    // [layer, group, token, top_k] against our [token, group, top_k] a layer.
    const auto blocks = *expected->readInts("selected_blocks");
    size_t n_wrong = 0;
    for (size_t layer = 1; layer < kLayers; ++layer) {
        for (size_t t = 0; t < kTokens; ++t) {
            for (size_t i = 0; i < kGroups * kTopK; ++i) {
                const size_t group = i / kTopK;
                const size_t at =
                    (((layer - 1) * kGroups + group) * kTokens + t) * kTopK + i % kTopK;
                n_wrong +=
                    blocks[at] != recorder.blocks[layer][(t * kGroups + group) * kTopK + i % kTopK]
                        ? 1U
                        : 0U;
            }
        }
    }
    EXPECT_EQ(n_wrong, 0U);
    const auto experts = *expected->readInts("expert_ids");
    const auto weights = *expected->readF32("expert_weights");
    for (size_t layer = 2; layer < kLayers; ++layer) {
        for (size_t i = 0; i < kTokens * kUsed; ++i) {
            const size_t at = (layer - 2) * kTokens * kUsed + i;
            ASSERT_EQ(recorder.experts[layer][i], experts[at]) << "layer " << layer;
            ASSERT_NEAR(recorder.weights[layer][i], weights[at], 1e-5F);
        }
    }
}

TEST_P(M3Tiny, ACheckpointComputesWhatTheReferenceComputes) {
    const TempDir dir;
    const CheckpointBuilder twin =
        checkpointTwin(readFile(file("model-BF16.gguf")), readFile(file("config.json")));
    const size_t vocab_size = logits_.size() / ids_.size();
    const auto logits = run(twin.write(dir.path() / "whole"));
    EXPECT_LT(compareLogits(logits, logits_, vocab_size, 0.0).largest, kTolerance);
    EXPECT_EQ(run(twin.writeSharded(dir.path() / "parts", 3)), logits);
    if (const auto reference = referenceDir()) {
        EXPECT_EQ(run((*reference / "m3-tiny").string()), logits);
    }
}

TEST_P(M3Tiny, FastStaysCloseToTheReference) {
    options_.compute = Compute::Fast;
    const auto logits = run();
    const size_t vocab_size = logits_.size() / ids_.size();
    // Selections near a tie may fall the other way, so a few rows differ by more than rounding.
    EXPECT_LT(compareLogits(logits, logits_, vocab_size, 0.3).nmse, 3e-2);
    EXPECT_NEAR(meanLoss(logits, ids_, vocab_size) / meanLoss(logits_, ids_, vocab_size), 1.0,
                0.005);
}

TEST_P(M3Tiny, EveryTypeOfTheCacheStaysCloseToTheReference) {
    using kernels::CacheType;
    options_.compute = Compute::Fast;
    const size_t vocab_size = logits_.size() / ids_.size();
    const std::pair<CacheType, CacheType> types[] = {{CacheType::F32, CacheType::F32},
                                                     {CacheType::BF16, CacheType::F16},
                                                     {CacheType::Q8_0, CacheType::BF16},
                                                     {CacheType::Q8_0, CacheType::Q8_0}};
    for (const auto& [kv, index] : types) {
        options_.cache_type = kv;
        options_.index_cache_type = index;
        const auto logits = run();
        EXPECT_LT(compareLogits(logits, logits_, vocab_size, 0.3).nmse, 4e-2)
            << kernels::cacheTypeName(kv) << " " << kernels::cacheTypeName(index);
        EXPECT_NEAR(meanLoss(logits, ids_, vocab_size) / meanLoss(logits_, ids_, vocab_size), 1.0,
                    0.01);
    }
}

TEST_P(M3Tiny, ChunksDoNotChangeWhatIsChosen) {
    Recorder whole;
    options_.chunk = kTokens;
    options_.observer = &whole;
    const auto logits = run();
    // The scalar kernels are slow: one uneven chunk has to do there.
    const std::vector<size_t> chunks =
        GetParam() == Isa::Scalar ? std::vector<size_t>{129} : std::vector<size_t>{1, 7, 64, 129};
    for (const size_t chunk : chunks) {
        Recorder recorder;
        options_.chunk = chunk;
        options_.observer = &recorder;
        EXPECT_LT(compareLogits(run(), logits, logits.size() / ids_.size(), 0.0).largest, 1e-4);
        for (size_t layer = 0; layer < kLayers; ++layer) {
            EXPECT_EQ(recorder.blocks[layer], whole.blocks[layer]) << "chunk " << chunk;
            EXPECT_EQ(recorder.experts[layer], whole.experts[layer]) << "chunk " << chunk;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(,
                         M3Tiny,
                         ::testing::Values(Isa::Scalar, Isa::Avx2, Isa::Avx512),
                         [](const ::testing::TestParamInfo<Isa>& isa) {
                             return std::string(kernels::isaName(isa.param));
                         });

}  // namespace
}  // namespace belvedere::testing
