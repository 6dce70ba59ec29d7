// SPDX-License-Identifier: Apache-2.0
// The engine end to end on a generated model: the same nonsense every time.
#include <chrono>
#include <numeric>
#include <thread>

#include "inference/tokenizer/utf8.h"
#include "inference/tokenizer/utf8_stream.h"
#include "tests/inference/engine_fixture.h"

namespace belvedere::testing {
namespace {

TEST_F(EngineTest, GreedyAnswersAreTheSameForAnyNumberOfThreads) {
    for (const Compute compute : {Compute::Exact, Compute::Fast}) {
        std::vector<std::vector<TokenId>> answers;
        for (const size_t n_threads : std::initializer_list<size_t>{1, 2, 3}) {
            EngineConfig config;
            config.n_threads = n_threads;
            config.compute = compute;
            const auto engine = load(config);
            answers.push_back(run(*engine, request(engine->openSequence(), prompt(150))));
            EXPECT_EQ(answers.back().size(), 24U);
        }
        EXPECT_EQ(answers[0], answers[1]);
        EXPECT_EQ(answers[0], answers[2]);
    }
}

TEST_F(EngineTest, GreedyAnswersAreTheSameForAnyChunkOfThePrompt) {
    for (const Compute compute : {Compute::Exact, Compute::Fast}) {
        std::vector<std::vector<TokenId>> answers;
        for (const size_t chunk : std::initializer_list<size_t>{512, 128, 100, 17, 1}) {
            EngineConfig config;
            config.compute = compute;
            config.prefill_chunk = chunk;
            const auto engine = load(config);
            answers.push_back(run(*engine, request(engine->openSequence(), prompt(300))));
            EXPECT_EQ(answers.back(), answers.front()) << chunk;
        }
    }
}

/// Exact: in the fast way a machine may round what it generates otherwise than what it is given.
TEST_F(EngineTest, ASecondQuestionReusesThePrefix) {
    EngineConfig config;
    config.compute = Compute::Exact;
    const auto engine = load(config);
    const SequenceId sequence = engine->openSequence();
    GenerationStats stats;
    std::vector<TokenId> context = prompt(200);
    const auto first = run(*engine, request(sequence, context), &stats);
    EXPECT_EQ(stats.n_cached, 0U);
    EXPECT_EQ(stats.n_prefilled, 200U);
    EXPECT_EQ(stats.n_generated, 24U);

    context.insert(context.end(), first.begin(), first.end());
    context.insert(context.end(), {1, 2, 3, 4, 5});
    EXPECT_EQ(engine->cachedPrefix(sequence, context),
              223U);  // the last sampled token was never computed
    const auto second = run(*engine, request(sequence, context), &stats);
    EXPECT_EQ(stats.n_cached, 223U);
    EXPECT_EQ(stats.n_prefilled, 6U);

    const auto fresh = load(config);
    EXPECT_EQ(second, run(*fresh, request(fresh->openSequence(), context)));
}

TEST_F(EngineTest, AnotherSequenceFindsThePrefixByItself) {
    const auto engine = load();
    const SequenceId first = engine->openSequence();
    run(*engine, request(first, prompt(300)));
    const SequenceId second = engine->openSequence();
    std::vector<TokenId> other = prompt(300);
    other.resize(250);
    other.insert(other.end(), {9, 8, 7});
    GenerationStats stats;
    const auto answer = run(*engine, request(second, other), &stats);
    EXPECT_EQ(stats.n_cached, 250U);
    EXPECT_GT(engine->cacheUse().n_shared_pages, 0U);

    // The first sequence did not notice.
    std::vector<TokenId> longer = prompt(300);
    longer.push_back(3);
    const auto again = run(*engine, request(first, longer), &stats);
    EXPECT_EQ(stats.n_cached, 300U);
    const auto fresh = load();
    EXPECT_EQ(answer, run(*fresh, request(fresh->openSequence(), other)));
    EXPECT_EQ(again, run(*fresh, request(fresh->openSequence(), longer)));
}

/// Reused entries are the very entries that a fresh run with the same chunks writes: one bit off
/// and the answers, which a random model decides by small margins, fall apart.
TEST_F(EngineTest, ForkAndRollbackGiveWhatAFreshRunGives) {
    EngineConfig config;
    config.prefill_chunk = 1;  // so that every run computes every entry in the same way
    const auto engine = load(config);
    const SequenceId source = engine->openSequence();
    run(*engine, request(source, prompt(180), 40));
    for (const size_t at : std::initializer_list<size_t>{0, 1, 127, 128, 129, 170}) {
        std::vector<TokenId> branch = prompt(180);
        branch.resize(at);
        const auto tail = prompt(20, 100);
        branch.insert(branch.end(), tail.begin(), tail.end());
        const auto fork = engine->fork(source, at);
        ASSERT_TRUE(fork.has_value()) << fork.error().message;
        const auto forked = run(*engine, request(*fork, branch));
        const auto rolled_back = run(*engine, request(source, branch));
        const auto fresh = load(config);
        const auto expected = run(*fresh, request(fresh->openSequence(), branch));
        EXPECT_EQ(forked, expected) << "at " << at;
        EXPECT_EQ(rolled_back, expected) << "at " << at;
        engine->closeSequence(*fork);
        run(*engine, request(source, prompt(180), 40));
    }
    EXPECT_FALSE(engine->fork(source, 100000).has_value());
    EXPECT_FALSE(engine->fork(999, 0).has_value());
}

TEST_F(EngineTest, TheSameRunTwiceGivesTheSameSamples) {
    const auto engine = load();
    GenerateRequest sampled = request(engine->openSequence(), prompt(40), 60);
    sampled.sampling = {.temperature = 1.2F,
                        .top_k = 50,
                        .top_p = 0.95F,
                        .min_p = 0.01F,
                        .repetition_penalty = 1.1F};
    sampled.sampling.seed = 7;
    const auto first = run(*engine, sampled);
    EXPECT_EQ(first, run(*engine, sampled));
    sampled.sampling.seed = 8;
    EXPECT_NE(first, run(*engine, sampled));
}

TEST_F(EngineTest, StopsInThePromptAndKeepsWhatIsComputed) {
    EngineConfig config;
    config.prefill_chunk =
        1;  // more messages than the channel holds, so that the engine cannot run ahead to the end
    const auto engine = load(config);
    const SequenceId sequence = engine->openSequence();
    Collector collector;
    collector.stop_at_prefill = 64;
    const auto stats =
        engine->generate(request(sequence, prompt(400)), collector, collector.source.get_token());
    ASSERT_TRUE(stats.has_value()) << stats.error().message;
    EXPECT_EQ(stats->finish, FinishReason::Cancelled);
    EXPECT_LT(stats->n_prefilled, 400U);
    EXPECT_GE(stats->n_prefilled, 64U);
    EXPECT_TRUE(collector.ids.empty());
    EXPECT_EQ(engine->cachedPrefix(sequence, prompt(400)), stats->n_prefilled);
    GenerationStats again;
    const auto resumed = run(*engine, request(sequence, prompt(400)), &again);
    EXPECT_EQ(again.n_cached, stats->n_prefilled);
    EXPECT_EQ(resumed.size(), 24U);
}

TEST_F(EngineTest, StopsInTheAnswerAndWhileWaiting) {
    const auto engine = load();
    Collector answering;
    answering.stop_at_tokens = 5;
    const auto stats = engine->generate(request(engine->openSequence(), prompt(10), 400), answering,
                                        answering.source.get_token());
    ASSERT_TRUE(stats.has_value());
    EXPECT_EQ(stats->finish, FinishReason::Cancelled);
    EXPECT_LT(stats->n_generated, 400U);

    Collector waiting;
    waiting.source.request_stop();
    const auto never = engine->generate(request(engine->openSequence(), prompt(10)), waiting,
                                        waiting.source.get_token());
    ASSERT_TRUE(never.has_value());
    EXPECT_EQ(never->finish, FinishReason::Cancelled);
    EXPECT_TRUE(waiting.ids.empty());
}

TEST_F(EngineTest, ServesSeveralCallersInOrder) {
    const auto engine = load();
    std::vector<std::vector<TokenId>> answers(4);
    std::vector<std::thread> callers;
    for (size_t i = 0; i < answers.size(); ++i) {
        callers.emplace_back([&, i] {
            answers[i] = run(*engine, request(engine->openSequence(), prompt(60 + i * 30, 40)));
        });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    const auto fresh = load();
    for (size_t i = 0; i < answers.size(); ++i) {
        EXPECT_EQ(answers[i], run(*fresh, request(fresh->openSequence(), prompt(60 + i * 30, 40))));
    }
}

TEST_F(EngineTest, RefusesWhatDoesNotFitWithTheNumbers) {
    const auto engine = load();
    Collector collector;
    const SequenceId sequence = engine->openSequence();
    const auto too_long = engine->generate(request(sequence, prompt(512)), collector, {});
    ASSERT_FALSE(too_long.has_value());
    EXPECT_EQ(too_long.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(too_long.error().message.find("512"), std::string::npos);
    EXPECT_NE(too_long.error().message.find("511"), std::string::npos);
    EXPECT_FALSE(engine->generate(request(sequence, {}), collector, {}).has_value());
    EXPECT_FALSE(engine->generate(request(sequence, {1, 5000}), collector, {}).has_value());
    EXPECT_FALSE(engine->generate(request(sequence, {-1}), collector, {}).has_value());
    EXPECT_FALSE(engine->generate(request(12345, prompt(3)), collector, {}).has_value());
    GenerateRequest bad = request(sequence, prompt(3));
    bad.sampling.temperature = -1.0F;
    EXPECT_FALSE(engine->generate(bad, collector, {}).has_value());
}

TEST_F(EngineTest, EndsWhereTheWindowIsFull) {
    const auto engine = load();
    GenerationStats stats;
    const auto ids = run(
        *engine, request(engine->openSequence(), prompt(500), std::numeric_limits<size_t>::max()),
        &stats);
    EXPECT_EQ(stats.finish, FinishReason::ContextFull);
    EXPECT_EQ(ids.size(), 13U);  // 500 + 13 - 1 computed: the last needs no entry
}

TEST_F(EngineTest, RefusesAWindowThatTheMachineCannotCache) {
    const auto path = dir_.write("tiny.gguf", tinyModel());
    EngineConfig config;
    config.context_tokens = size_t{1} << 40;
    const auto engine = Engine::load({path.string(), {}}, config, nullptr, {});
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(engine.error().code, ErrorCode::OutOfMemory);
    EXPECT_NE(engine.error().message.find("1099511627776"), std::string::npos);
}

TEST_F(EngineTest, EvictsTheLongestIdleSequenceAboveTheBudget) {
    EngineConfig config;
    const size_t page_bytes =
        size_t{2} * 2 * 2 * 128 * 8 * 2;  // layers, K and V, KV heads, tokens, head, f16
    config.cache_budget_bytes = page_bytes * 6;
    const auto engine = load(config);
    std::vector<SequenceId> sequences;
    for (int i = 0; i < 4; ++i) {
        sequences.push_back(engine->openSequence());
        run(*engine, request(sequences.back(), prompt(200, 40 + i), 4));
        EXPECT_LE(engine->cacheUse().bytes, config.cache_budget_bytes);
    }
    EXPECT_EQ(engine->cachedPrefix(sequences[3], prompt(200, 43)), 199U);
    EXPECT_EQ(engine->cachedPrefix(sequences[0], prompt(200, 40)), 0U);
    const auto answer = run(*engine, request(sequences[0], prompt(200, 40)));
    const auto fresh = load();
    EXPECT_EQ(answer, run(*fresh, request(fresh->openSequence(), prompt(200, 40))));
    for (const SequenceId sequence : sequences) {
        engine->closeSequence(sequence);
    }
    EXPECT_EQ(engine->cacheUse().n_pages, 0U);
}

TEST_F(EngineTest, AnOnlySequenceMayPassTheBudget) {
    EngineConfig config;
    config.cache_budget_bytes = 1;
    const auto engine = load(config);
    EXPECT_EQ(run(*engine, request(engine->openSequence(), prompt(300))).size(), 24U);
}

TEST_F(EngineTest, NeverSamplesRowsWithoutAToken) {
    TinyModelOptions options;
    options.n_padding_rows = 200;
    const auto engine = load({}, options);
    EXPECT_EQ(engine->info().vocab_size, engine->tokenizer().vocabSize() + 200);
    GenerateRequest sampled = request(engine->openSequence(), prompt(20), 200);
    sampled.sampling.temperature = 50.0F;
    for (const TokenId id : run(*engine, sampled)) {
        EXPECT_LT(static_cast<size_t>(id), engine->tokenizer().vocabSize());
    }
}

TEST_F(EngineTest, EndsBeforeAStopString) {
    const auto engine = load();
    GenerateRequest plain = request(engine->openSequence(), prompt(30), 200);
    Collector all;
    ASSERT_TRUE(engine->generate(plain, all, {}).has_value());
    ASSERT_GT(all.text.size(), 40U);
    plain.stop_strings = {all.text.substr(20, 5), "never to be seen"};
    Collector cut;
    const auto stats = engine->generate(plain, cut, {});
    ASSERT_TRUE(stats.has_value());
    EXPECT_EQ(stats->finish, FinishReason::StopString);
    EXPECT_EQ(cut.text, all.text.substr(0, all.text.find(plain.stop_strings[0])));
    EXPECT_EQ(cut.ids.size(), stats->n_generated);
}

bool isWholeUtf8(const std::string& text) {
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p != end;) {
        const CodePoint point = decodeUtf8(p, end);
        if (point.value == kInvalidCodePoint) {
            return false;
        }
        p += point.n_bytes;
    }
    return true;
}

/// A hot random model says bytes of every kind, in no order.
TEST_F(EngineTest, StreamsWholeCharactersThatTogetherAreTheAnswer) {
    const auto engine = load();
    GenerateRequest sampled = request(engine->openSequence(), prompt(20), 480);
    sampled.sampling = {.temperature = 4.0F, .seed = 5};
    sampled.show_special_tokens = true;
    Collector collector;
    ASSERT_TRUE(engine->generate(sampled, collector, {}).has_value());
    ASSERT_EQ(collector.ids.size(), 480U);
    for (const std::string& piece : collector.pieces) {
        EXPECT_TRUE(isWholeUtf8(piece)) << piece;
    }
    const std::string bytes = engine->tokenizer().decode(collector.ids);
    EXPECT_FALSE(isWholeUtf8(bytes));
    Utf8Stream repaired;
    std::string expected = repaired.push(bytes);
    expected += repaired.flush();
    EXPECT_EQ(collector.text, expected);
}

TEST_F(EngineTest, APromptWithoutAnAnswerWarmsTheCache) {
    const auto engine = load();
    const SequenceId sequence = engine->openSequence();
    GenerationStats stats;
    EXPECT_TRUE(run(*engine, request(sequence, prompt(100), 0), &stats).empty());
    EXPECT_EQ(stats.n_prefilled, 100U);
    EXPECT_EQ(engine->cachedPrefix(sequence, prompt(120)), 100U);
}

TEST_F(EngineTest, AdaptersChangeTheAnswerAndTheirFactsShow) {
    const auto base = load();
    const auto plain = run(*base, request(base->openSequence(), prompt(50)));
    adapters_ = {{dir_.write("adapter.gguf", tinyAdapter()).string(), 1.0F}};
    const auto engine = load();
    EXPECT_EQ(engine->info().adapters.size(), 1U);
    EXPECT_NE(plain, run(*engine, request(engine->openSequence(), prompt(50))));
}

TEST_F(EngineTest, LoadingCanBeStopped) {
    const auto path = dir_.write("tiny.gguf", tinyModel());
    std::stop_source source;
    const auto progress = [&](double fraction, const char*) {
        if (fraction > 0.0) {
            source.request_stop();
        }
    };
    const auto engine = Engine::load({path.string(), {}}, {}, progress, source.get_token());
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(engine.error().code, ErrorCode::Cancelled);
}

}  // namespace
}  // namespace belvedere::testing
