// SPDX-License-Identifier: Apache-2.0
// Whatever way a sequence came to its tokens (one pass, reuse, fork, rollback), the next pass
// computes the very same bits; and a pass that is stopped leaves no trace.
#include <gtest/gtest.h>

#include "inference/cache/kv_cache.h"
#include "inference/model/model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using namespace inference;

std::vector<TokenId> idsFrom(size_t seed, size_t n) {
    std::vector<TokenId> ids(n);
    for (size_t i = 0; i < n; ++i) {
        ids[i] = static_cast<TokenId>((seed + i * i * 5 + i * 3) % 256);
    }
    return ids;
}

/// The first n_shared of one text, then all of another.
std::vector<TokenId> joined(std::vector<TokenId> first,
                            size_t n_shared,
                            const std::vector<TokenId>& second) {
    first.resize(n_shared);
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

/// Asks for a stop when a layer begins; remembers which ones did.
class StopAtLayer : public PassObserver {
  public:
    StopAtLayer(std::stop_source& source, size_t layer) : source_(source), layer_(layer) {}

    void onHidden(size_t layer, std::span<const float> /*values*/) override {
        begun.push_back(layer);
        if (layer == layer_) {
            source_.request_stop();
        }
    }

    void onBlocks(size_t /*layer*/, std::span<const int32_t> /*ids*/) override {}

    void onExperts(size_t /*layer*/, const ChosenExperts& /*chosen*/) override {}

    std::vector<size_t> begun;

  private:
    std::stop_source& source_;
    size_t layer_;
};

class PrefixTest : public ::testing::TestWithParam<Compute> {
  protected:
    void SetUp() override {
        TinyModelOptions file;
        file.n_layers = 4;
        const auto path = dir_.write("tiny.gguf", tinyModel(file));
        ModelOptions options;
        options.compute = GetParam();
        options.n_threads = 2;
        auto model = Model::load({path.string(), {}}, options, nullptr, {});
        ASSERT_TRUE(model.has_value()) << model.error().message;
        model_ = std::move(*model);
    }

    /// Tokens from `begin` on in one pass; logits of the last.
    std::vector<float> pass(KvCache& cache,
                            SequenceId sequence,
                            std::span<const TokenId> ids,
                            size_t begin) {
        const auto tokens = ids.subspan(begin);
        const auto pages = cache.prepare(sequence, tokens.size());
        EXPECT_TRUE(pages.has_value());
        EXPECT_TRUE(model_->decoder().forward(tokens, begin, *pages, {}).has_value());
        cache.commit(sequence, tokens);
        const auto logits = model_->decoder().logits(tokens.size() - 1, 1);
        return {logits->begin(), logits->end()};
    }

    /// Logits of the last token, computed in two passes that meet at `split`; what the cache holds
    /// must end there.
    std::vector<float> run(KvCache& cache,
                           SequenceId sequence,
                           std::span<const TokenId> ids,
                           size_t split) {
        const auto n_cached = cache.begin(sequence, ids);
        EXPECT_TRUE(n_cached.has_value());
        EXPECT_TRUE(*n_cached == split || *n_cached == 0) << *n_cached;
        n_cached_ = *n_cached;
        if (n_cached_ < split) {
            pass(cache, sequence, ids.first(split), n_cached_);
        }
        std::vector<float> logits = pass(cache, sequence, ids, split);
        cache.end(sequence);
        return logits;
    }

    std::vector<float> runFresh(std::span<const TokenId> ids, size_t split) {
        KvCache cache(model_->backend(), SIZE_MAX);
        return run(cache, cache.open(), ids, split);
    }

    TempDir dir_;
    std::unique_ptr<Model> model_;
    size_t n_cached_ = 0;
};

TEST_P(PrefixTest, RollbackReuseAndForkGiveTheBitsOfAFreshRun) {
    for (const size_t split : std::initializer_list<size_t>{1, 100, 127, 128, 129, 256, 299}) {
        SCOPED_TRACE(split);
        const std::vector<TokenId> first = joined(idsFrom(1, 300), split, idsFrom(2, 30));
        const std::vector<TokenId> second = joined(idsFrom(1, 300), split, idsFrom(90, 41));
        const std::vector<float> expected = runFresh(second, split);
        KvCache cache(model_->backend(), SIZE_MAX);
        const SequenceId sequence = cache.open();
        const std::vector<float> of_first = run(cache, sequence, first, split);
        ASSERT_NE(of_first, expected);

        EXPECT_EQ(run(cache, sequence, second, split), expected) << "rolled back";
        EXPECT_EQ(n_cached_, split);

        EXPECT_EQ(run(cache, sequence, first, split), of_first) << "and forward again";
        EXPECT_EQ(n_cached_, split);

        const SequenceId other = cache.open();
        EXPECT_EQ(run(cache, other, second, split), expected) << "another's prefix";
        EXPECT_EQ(n_cached_, split);
        cache.close(other);

        const auto fork = cache.fork(sequence, split);
        ASSERT_TRUE(fork.has_value());
        EXPECT_EQ(run(cache, *fork, second, split), expected) << "forked";
        cache.close(*fork);

        EXPECT_EQ(run(cache, sequence, joined(first, first.size(), {7}), first.size()),
                  runFresh(joined(first, first.size(), {7}), first.size()))
            << "the source did not notice";
    }
}

TEST_P(PrefixTest, AStopEndsThePassInTheLayerItCameIn) {
    const std::vector<TokenId> ids = idsFrom(1, 200);
    const std::vector<float> expected = runFresh(ids, 100);
    KvCache cache(model_->backend(), SIZE_MAX);
    const SequenceId sequence = cache.open();
    ASSERT_TRUE(cache.begin(sequence, ids).has_value());
    pass(cache, sequence, std::span(ids).first(100), 0);
    for (const size_t layer : std::initializer_list<size_t>{0, 2}) {
        std::stop_source source;
        StopAtLayer observer(source, layer);
        const auto pages = cache.prepare(sequence, 100);
        ASSERT_TRUE(pages.has_value());
        const auto stopped = model_->decoder().forward(std::span(ids).subspan(100), 100, *pages,
                                                       source.get_token(), &observer);
        ASSERT_FALSE(stopped.has_value());
        EXPECT_EQ(stopped.error().code, ErrorCode::Cancelled);
        EXPECT_EQ(observer.begun.back(), layer) << "no layer after it began";
    }
    EXPECT_EQ(pass(cache, sequence, ids, 100), expected) << "the stopped passes left no trace";
    cache.end(sequence);
}

INSTANTIATE_TEST_SUITE_P(,
                         PrefixTest,
                         ::testing::Values(Compute::Exact, Compute::Fast),
                         [](const auto& parameter) {
                             return parameter.param == Compute::Exact ? "exact" : "fast";
                         });

}  // namespace
}  // namespace belvedere::testing
