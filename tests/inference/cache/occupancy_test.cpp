// SPDX-License-Identifier: Apache-2.0
// What sequences hold of the cache, exactly, and that eviction takes whole ones, the longest idle
// first, to stay within the budget.
#include "tests/inference/engine_fixture.h"

namespace belvedere::testing {
namespace {

class Occupancy : public EngineTest {
  protected:
    static Engine::SequenceUse useOf(const Engine& engine, SequenceId sequence) {
        for (const Engine::SequenceUse& use : engine.sequences()) {
            if (use.sequence == sequence) {
                return use;
            }
        }
        ADD_FAILURE() << "no sequence " << sequence;
        return {};
    }

    static size_t pageBytes(const Engine& engine) { return engine.info().memory.page_bytes; }
};

TEST_F(Occupancy, SaysWhatIsOwnSharedAndStored) {
    const auto engine = load();
    const size_t page = pageBytes(*engine);
    const SequenceId first = engine->openSequence();
    run(*engine, request(first, prompt(300), 1));
    Engine::SequenceUse use = useOf(*engine, first);
    EXPECT_EQ(use.n_tokens, 300U);
    EXPECT_EQ(use.n_pages, 3U);
    EXPECT_EQ(use.n_shared_pages, 0U);
    EXPECT_EQ(use.bytes, 3 * page);
    EXPECT_EQ(use.own_bytes, 3 * page);

    const SequenceId fork = *engine->fork(first, 200);
    use = useOf(*engine, fork);
    EXPECT_EQ(use.n_tokens, 200U);
    EXPECT_EQ(use.n_pages, 2U);
    EXPECT_EQ(use.n_shared_pages, 2U);
    EXPECT_EQ(use.own_bytes, 0U);
    EXPECT_EQ(useOf(*engine, first).own_bytes, page);
    EXPECT_EQ(engine->sequences().front().sequence, fork) << "newest first";

    std::vector<TokenId> ids = prompt(200);
    ids.insert(ids.end(), 5, 3);
    run(*engine, request(fork, ids, 1));
    use = useOf(*engine, fork);
    EXPECT_EQ(use.n_shared_pages, 1U) << "the last page was copied";
    EXPECT_EQ(use.own_bytes, page);
    EXPECT_EQ(engine->cacheUse().n_pages, 4U);
    EXPECT_EQ(engine->cacheUse().n_shared_pages, 1U);

    const std::string path = (dir_.path() / "s").string();
    ASSERT_TRUE(engine->saveSnapshot(first, path, {}).has_value());
    const SequenceId opened = *engine->openSnapshot(path, {});
    use = useOf(*engine, opened);
    EXPECT_EQ(use.n_tokens, 300U);
    EXPECT_EQ(use.n_stored_pages, 3U);
    EXPECT_EQ(use.bytes, 0U);
    EXPECT_EQ(engine->cacheUse().n_stored_pages, 3U);
    EXPECT_EQ(engine->cacheUse().n_pages, 4U);
    engine->closeSequence(opened);
    EXPECT_EQ(engine->cacheUse().n_stored_pages, 0U);
}

TEST_F(Occupancy, TheBudgetHoldsAndTheLongestIdleGoesFirst) {
    EngineConfig config;
    config.cache_budget_bytes = 5 * pageBytes(*load());
    const auto engine = load(config);
    const SequenceId old = engine->openSequence();
    const SequenceId middle = engine->openSequence();
    const SequenceId young = engine->openSequence();
    run(*engine, request(old, prompt(200, 1), 1));
    run(*engine, request(middle, prompt(200, 2), 1));
    run(*engine, request(young, prompt(250, 3), 1));
    EXPECT_EQ(useOf(*engine, old).n_pages, 0U) << "whole sequences go";
    EXPECT_EQ(useOf(*engine, middle).n_pages, 2U);
    EXPECT_EQ(useOf(*engine, young).n_pages, 2U);
    EXPECT_LE(engine->cacheUse().bytes, config.cache_budget_bytes);
    run(*engine, request(middle, prompt(210, 2), 1));
    run(*engine, request(old, prompt(250, 1), 1));
    EXPECT_EQ(useOf(*engine, young).n_pages, 0U) << "it was used before the middle one";
    EXPECT_EQ(useOf(*engine, middle).n_tokens, 210U);
    EXPECT_LE(engine->cacheUse().bytes, config.cache_budget_bytes);
}

TEST_F(Occupancy, StoredPagesTakeNoneOfTheBudget) {
    EngineConfig config;
    config.cache_budget_bytes = 4 * pageBytes(*load());
    const std::string path = (dir_.path() / "s").string();
    {
        const auto writer = load();
        const SequenceId sequence = writer->openSequence();
        run(*writer, request(sequence, prompt(500), 1));
        ASSERT_TRUE(writer->saveSnapshot(sequence, path, {}).has_value());
    }
    const auto engine = load(config);
    const SequenceId opened = *engine->openSnapshot(path, {});
    for (int i = 0; i < 6; ++i) {
        run(*engine, request(engine->openSequence(), prompt(200, 100 + i), 1));
        EXPECT_LE(engine->cacheUse().bytes, config.cache_budget_bytes);
    }
    EXPECT_EQ(useOf(*engine, opened).n_tokens, 500U) << "evicting it would free nothing";
    EXPECT_EQ(useOf(*engine, opened).n_stored_pages, 4U);
}

}  // namespace
}  // namespace belvedere::testing
