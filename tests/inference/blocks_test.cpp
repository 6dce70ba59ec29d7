// SPDX-License-Identifier: Apache-2.0
// Which blocks generated tokens attended to, as the engine tells it; and bans of blocks, which bind
// what they say and leave nothing behind for requests without.

#include <cmath>
#include <map>

#include "tests/inference/engine_fixture.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

constexpr size_t kBlock = 16;
constexpr size_t kHeads = 2;
constexpr size_t kTopK = 4;

/// Of every token, the shares of its blocks.
class BlockCollector : public Collector {
  public:
    void onBlocks(std::span<const BlockShare> blocks) override {
        shares.emplace_back(blocks.begin(), blocks.end());
    }

    std::vector<std::vector<BlockShare>> shares;
};

/// What the decoder chose for each token, by layer.
struct BlockRecorder : PassObserver {
    void onHidden(size_t /*layer*/, std::span<const float> /*values*/) override {}

    void onBlocks(size_t layer, std::span<const int32_t> ids) override {
        blocks[layer].insert(blocks[layer].end(), ids.begin(), ids.end());
    }

    void onExperts(size_t /*layer*/, const ChosenExperts& /*chosen*/) override {}

    std::map<size_t, std::vector<int32_t>> blocks;
};

class Blocks : public ::testing::Test {
  protected:
    void SetUp() override {
        EngineConfig config;
        config.compute = Compute::Exact;
        config.n_threads = 2;
        config.prefill_chunk = 40;
        path_ = dataPath("inference/m3-tiny/model-BF16.gguf").string();
        auto engine = Engine::load({path_, {}}, config, nullptr, {});
        ASSERT_TRUE(engine.has_value()) << engine.error().message;
        engine_ = std::move(*engine);
    }

    GenerateRequest request(std::vector<TokenId> ids) {
        GenerateRequest request;
        request.sequence = engine_->openSequence();
        request.prompt = std::move(ids);
        request.max_tokens = 30;
        request.ignore_end_of_turn = true;
        return request;
    }

    BlockCollector run(const GenerateRequest& request) {
        BlockCollector collector;
        const auto stats = engine_->generate(request, collector, {});
        EXPECT_TRUE(stats.has_value()) << stats.error().message;
        stats_ = *stats;
        return collector;
    }

    /// The shares of the token at `pos`, by the definition.
    static std::vector<BlockShare> expected(const BlockRecorder& recorder,
                                            const std::vector<size_t>& layers,
                                            size_t pos) {
        std::map<uint32_t, float> counts;
        for (const size_t layer : layers) {
            for (size_t i = 0; i < kHeads * kTopK; ++i) {
                const int32_t id = recorder.blocks.at(layer)[pos * kHeads * kTopK + i];
                if (id >= 0) {
                    counts[static_cast<uint32_t>(id)] += 1;
                }
            }
        }
        std::vector<BlockShare> shares;
        for (const auto& [block, count] : counts) {
            shares.push_back({block, count / static_cast<float>(layers.size() * kHeads)});
        }
        return shares;
    }

    static bool holds(const std::vector<BlockShare>& shares, uint32_t block) {
        return std::any_of(shares.begin(), shares.end(),
                           [&](const BlockShare& share) { return share.block == block; });
    }

    std::string path_;
    std::unique_ptr<Engine> engine_;
    GenerationStats stats_;
};

TEST_F(Blocks, SharesAreWhatTheLayersChose) {
    EXPECT_EQ(engine_->info().block_tokens, kBlock);
    const std::vector<TokenId> ids = prompt(200);
    for (const std::vector<size_t>& layers :
         {std::vector<size_t>{1, 2, 3, 4}, std::vector<size_t>{2, 4}}) {
        GenerateRequest some = request(ids);
        if (layers.size() == 2) {
            some.share_layers = layers;
        }
        const BlockCollector answer = run(some);
        ASSERT_EQ(answer.shares.size(), 30U);
        std::vector<TokenId> all = ids;
        all.insert(all.end(), answer.ids.begin(), answer.ids.end());
        BlockRecorder recorder;
        RunOptions options;
        options.observer = &recorder;
        ASSERT_TRUE(runModel(path_, all, options).has_value());
        std::map<uint32_t, double> sums;
        for (size_t i = 0; i < answer.shares.size(); ++i) {
            // Token i of the answer was sampled from the position before its own.
            EXPECT_EQ(answer.shares[i], expected(recorder, layers, ids.size() - 1 + i)) << i;
            for (const BlockShare& share : answer.shares[i]) {
                sums[share.block] += static_cast<double>(share.share);
            }
        }
        ASSERT_EQ(stats_.blocks.size(), sums.size());
        for (const BlockShare& mean : stats_.blocks) {
            EXPECT_NEAR(static_cast<double>(mean.share), sums.at(mean.block) / 30, 1e-6);
        }
    }
}

TEST_F(Blocks, SharesAreTheSameWithDraftsAndWithout) {
    GenerateRequest plain = request(prompt(150));
    plain.sampling.repetition_penalty = 0.6F;
    plain.max_tokens = 80;
    plain.drafts = false;
    const auto without = run(plain).shares;
    plain.sequence = engine_->openSequence();
    plain.drafts = true;
    EXPECT_EQ(run(plain).shares, without);
    EXPECT_GT(stats_.n_accepted, 0U);
}

TEST_F(Blocks, ABanBindsTheAnswer) {
    const std::vector<TokenId> ids = prompt(200);
    const auto before = run(request(ids));
    uint32_t favourite = 0;
    float most = 0;
    for (const BlockShare& share : stats_.blocks) {
        if (share.block + 1 < ids.size() / kBlock && share.share > most) {
            most = share.share;
            favourite = share.block;
        }
    }
    ASSERT_GT(most, 0.0F);
    GenerateRequest banned = request(ids);
    banned.ban.blocks = {favourite};
    const auto after = run(banned);
    EXPECT_EQ(stats_.n_cached, ids.size() - 1) << "the prompt before its last token is as without";
    ASSERT_EQ(after.shares.size(), 30U);
    for (const auto& shares : after.shares) {
        EXPECT_FALSE(holds(shares, favourite));
    }
    // And leaves nothing behind.
    const auto again = run(request(ids));
    EXPECT_EQ(again.ids, before.ids);
    EXPECT_EQ(again.shares, before.shares);
}

TEST_F(Blocks, WhatWasComputedUnderABanServesTheSameBanOnly) {
    std::vector<TokenId> ids = prompt(180);
    GenerateRequest banned = request(ids);
    banned.ban = {{1, 3}, 70};
    run(banned);
    EXPECT_EQ(stats_.n_cached, 0U);
    GenerateRequest plain = request(ids);
    const auto plain_answer = run(plain);
    EXPECT_EQ(stats_.n_cached, 70U);
    banned.sequence = engine_->openSequence();
    const auto again = run(banned);
    EXPECT_EQ(stats_.n_cached, 179U);
    GenerateRequest other = banned;
    other.sequence = engine_->openSequence();
    other.ban.blocks = {1};
    run(other);
    EXPECT_EQ(stats_.n_cached, 70U);
    other.ban = {{1, 3}, 100};
    other.sequence = engine_->openSequence();
    run(other);
    EXPECT_EQ(stats_.n_cached, 100U) << "plain up to 100, from the plain sequence";
    // A fork carries what its source was computed under.
    const auto fork = engine_->fork(banned.sequence, 150);
    ASSERT_TRUE(fork.has_value());
    GenerateRequest forked = request(ids);
    forked.sequence = *fork;
    forked.ban = {{3, 1, 3}, 70};
    EXPECT_EQ(run(forked).ids, again.ids);
    EXPECT_EQ(stats_.n_cached, 179U);

    SetUp();  // a cold engine
    GenerateRequest cold = request(ids);
    EXPECT_EQ(run(cold).ids, plain_answer.ids);
    SetUp();
    cold = request(ids);
    cold.ban = {{1, 3}, 70};
    const auto cold_answer = run(cold);
    EXPECT_EQ(cold_answer.ids, again.ids);
    EXPECT_EQ(cold_answer.shares, again.shares);
}

TEST_F(Blocks, RefusesBlocksAndLayersThatAreNone) {
    Collector collector;
    GenerateRequest bad = request(prompt(10));
    bad.ban.blocks = {1'000'000};
    EXPECT_FALSE(engine_->generate(bad, collector, {}).has_value());
    bad.ban.blocks.clear();
    bad.share_layers = {0};  // attends densely
    EXPECT_FALSE(engine_->generate(bad, collector, {}).has_value());

    EngineConfig dense;
    dense.attention = Attention::Dense;
    engine_ = std::move(*Engine::load({path_, {}}, dense, nullptr, {}));
    EXPECT_EQ(engine_->info().block_tokens, 0U);
    bad = request(prompt(10));
    bad.ban.blocks = {0};
    const auto refused = engine_->generate(bad, collector, {});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
    bad.ban.blocks.clear();
    const BlockCollector answer = run(bad);
    EXPECT_TRUE(answer.shares.empty());
    EXPECT_TRUE(stats_.blocks.empty());
}

}  // namespace
}  // namespace belvedere::testing
