// SPDX-License-Identifier: Apache-2.0
// Several sequences generated together: a batch of forks equals separate runs, whatever each of
// them asks for and whenever it ends.

#include <deque>

#include "tests/inference/engine_fixture.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

class Together : public EngineTest {
  protected:
    /// Requests over one shared prefix that differ in everything else.
    static std::vector<GenerateRequest> variants(size_t n_shared) {
        std::vector<GenerateRequest> requests;
        for (int i = 0; i < 6; ++i) {
            std::vector<TokenId> ids = prompt(n_shared);
            const auto tail = prompt(static_cast<size_t>(1 + 9 * i), 80 + i);
            ids.insert(ids.end(), tail.begin(), tail.end());
            GenerateRequest request = EngineTest::request(0, ids, static_cast<size_t>(20 + 25 * i));
            request.sampling.repetition_penalty = 0.6F;
            request.sampling.repetition_window = 12;
            request.sampling.temperature = i % 2 == 0 ? 0.0F : 0.4F;
            request.sampling.seed = static_cast<uint64_t>(i);
            request.drafts = i != 4;
            requests.push_back(std::move(request));
        }
        requests[0].max_tokens = 0;
        return requests;
    }

    /// Sinks of their own; the outcomes in `outcomes_`.
    std::deque<Collector> runTogether(Engine& engine, std::vector<GenerateRequest> requests) {
        std::deque<Collector> collectors(requests.size());
        std::vector<GenerationItem> items;
        for (size_t i = 0; i < requests.size(); ++i) {
            requests[i].sequence = engine.openSequence();
            items.push_back({requests[i], &collectors[i], collectors[i].source.get_token()});
        }
        outcomes_ = engine.generateTogether(items);
        return collectors;
    }

    void checkEqualsSeparateRuns(Engine& together, Engine& separate, size_t n_shared) {
        std::vector<GenerateRequest> requests = variants(n_shared);
        GenerateRequest base = EngineTest::request(separate.openSequence(), prompt(n_shared), 60);
        const auto text = [&] {
            Collector collector;
            EXPECT_TRUE(separate.generate(base, collector, {}).has_value());
            return collector.text;
        }();
        ASSERT_GT(text.size(), 4U);
        requests[3].stop_strings = {text.substr(text.size() / 2, 2)};
        const std::deque<Collector> collectors = runTogether(together, requests);
        size_t n_together = 0;
        for (size_t i = 0; i < requests.size(); ++i) {
            ASSERT_TRUE(outcomes_[i].has_value()) << outcomes_[i].error().message;
            Collector alone;
            requests[i].sequence = separate.openSequence();
            const auto stats = separate.generate(requests[i], alone, {});
            ASSERT_TRUE(stats.has_value());
            EXPECT_EQ(collectors[i].ids, alone.ids) << i;
            EXPECT_EQ(collectors[i].text, alone.text) << i;
            EXPECT_EQ(outcomes_[i]->finish, stats->finish) << i;
            EXPECT_EQ(outcomes_[i]->n_generated, stats->n_generated) << i;
            EXPECT_EQ(outcomes_[i]->blocks, stats->blocks) << i;
            n_together += outcomes_[i]->n_accepted;
            // The shared prefix was computed by the first alone.
            EXPECT_EQ(outcomes_[i]->n_cached >= n_shared - 1, i > 0) << i;
        }
        EXPECT_GT(n_together, 0U);
    }

    std::vector<Result<GenerationStats>> outcomes_;
};

TEST_F(Together, ABatchOfForksEqualsSeparateRuns) {
    for (const Compute compute : {Compute::Exact, Compute::Fast}) {
        EngineConfig config;
        config.compute = compute;
        // The last page of the prefix is whole, empty but for one token, and in between.
        for (const size_t n_shared : {size_t{128}, size_t{129}, size_t{200}}) {
            const auto together = load(config);
            const auto separate = load(config);
            checkEqualsSeparateRuns(*together, *separate, n_shared);
        }
    }
}

TEST_F(Together, ABatchOfForksEqualsSeparateRunsWithMsaAndExperts) {
    const std::string path = dataPath("inference/m3-tiny/model-BF16.gguf").string();
    EngineConfig config;
    config.n_threads = 2;
    const auto together = Engine::load({path, {}}, config, nullptr, {});
    const auto separate = Engine::load({path, {}}, config, nullptr, {});
    ASSERT_TRUE(together.has_value() && separate.has_value());
    checkEqualsSeparateRuns(**together, **separate, 200);
}

TEST_F(Together, AStopEndsOneAndLeavesTheOthers) {
    const auto engine = load();
    std::vector<GenerateRequest> requests = variants(100);
    requests[0].max_tokens = 40;
    const std::deque<Collector> whole = runTogether(*engine, requests);
    std::deque<Collector> collectors(requests.size());
    std::vector<GenerationItem> items;
    for (size_t i = 0; i < requests.size(); ++i) {
        requests[i].sequence = engine->openSequence();
        items.push_back({requests[i], &collectors[i], collectors[i].source.get_token()});
    }
    collectors[5].stop_at_tokens = 3;
    collectors[2].source.request_stop();
    outcomes_ = engine->generateTogether(items);
    for (size_t i = 0; i < requests.size(); ++i) {
        ASSERT_TRUE(outcomes_[i].has_value());
        if (i == 2 || i == 5) {
            EXPECT_EQ(outcomes_[i]->finish, FinishReason::Cancelled);
            EXPECT_LT(collectors[i].ids.size(), whole[i].ids.size());
        } else {
            EXPECT_EQ(collectors[i].ids, whole[i].ids) << i;
        }
    }
}

TEST_F(Together, StoppingAllEndsAll) {
    const auto engine = load();
    std::vector<GenerateRequest> requests = variants(60);
    std::deque<Collector> collectors(requests.size());
    std::vector<GenerationItem> items;
    std::stop_source all;
    all.request_stop();
    for (size_t i = 0; i < requests.size(); ++i) {
        requests[i].sequence = engine->openSequence();
        items.push_back({requests[i], &collectors[i], all.get_token()});
    }
    outcomes_ = engine->generateTogether(items);
    for (const auto& outcome : outcomes_) {
        ASSERT_TRUE(outcome.has_value());
        EXPECT_EQ(outcome->finish, FinishReason::Cancelled);
        EXPECT_EQ(outcome->n_generated, 0U);
    }
}

TEST_F(Together, AFaultOfOneIsItsOwn) {
    const auto engine = load();
    std::vector<GenerateRequest> requests = variants(50);
    requests.resize(4);
    std::deque<Collector> collectors(requests.size());
    std::vector<GenerationItem> items;
    for (size_t i = 0; i < requests.size(); ++i) {
        requests[i].max_tokens = 20;
        requests[i].sequence = engine->openSequence();
    }
    requests[1].prompt.clear();
    requests[2].sequence = requests[0].sequence;  // is already generating
    for (size_t i = 0; i < requests.size(); ++i) {
        items.push_back({requests[i], &collectors[i], {}});
    }
    outcomes_ = engine->generateTogether(items);
    EXPECT_TRUE(outcomes_[0].has_value());
    EXPECT_FALSE(outcomes_[1].has_value());
    ASSERT_FALSE(outcomes_[2].has_value());
    EXPECT_EQ(outcomes_[2].error().code, ErrorCode::InvalidArgument);
    EXPECT_TRUE(outcomes_[3].has_value());
    EXPECT_EQ(collectors[0].ids.size(), 20U);
    EXPECT_EQ(collectors[3].ids.size(), 20U);
    EXPECT_TRUE(engine->generateTogether({}).empty());
}

TEST_F(Together, SixteenAreServedAndMoreAreRefused) {
    const auto engine = load();
    std::vector<GenerateRequest> requests(Engine::kMaxTogether, request(0, prompt(30), 12));
    for (size_t i = 0; i < requests.size(); ++i) {
        requests[i].prompt.push_back(static_cast<TokenId>(40 + i));
    }
    const std::deque<Collector> collectors = runTogether(*engine, requests);
    for (size_t i = 0; i < requests.size(); ++i) {
        requests[i].sequence = engine->openSequence();
        EXPECT_EQ(collectors[i].ids, run(*engine, requests[i])) << i;
    }
    requests.push_back(requests.back());
    runTogether(*engine, requests);
    ASSERT_EQ(outcomes_.size(), Engine::kMaxTogether + 1);
    for (const auto& outcome : outcomes_) {
        ASSERT_FALSE(outcome.has_value());
        EXPECT_NE(outcome.error().message.find("16"), std::string::npos);
    }
}

}  // namespace
}  // namespace belvedere::testing
