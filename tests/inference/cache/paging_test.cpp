// SPDX-License-Identifier: Apache-2.0
// Results do not depend on where pages stand, on who else is in a pass, or on what their pages held
// before; and a pass writes the rows of its tokens and nothing else. msa.md 7, test 10.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "inference/model/model.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

using namespace inference;
using kernels::CacheType;
using kernels::kPageTokens;

TokenId tokenOf(size_t sequence, size_t pos) {
    return static_cast<TokenId>((sequence * 31 + pos * pos * 3 + pos * 7) % 256);
}

/// A sequence that a test moves through the pool by hand.
struct Walker {
    size_t id = 0;
    size_t n_prompt = 0;
    size_t enters = 0;  ///< step of the batch
    size_t leaves = 0;
    size_t n_tokens = 0;
    std::vector<PageId> pages;
    std::vector<std::vector<float>> logits;  ///< of each step
};

class Paging : public ::testing::TestWithParam<CacheType> {
  protected:
    void SetUp() override {
        ModelOptions options;
        options.n_threads = 2;
        options.max_pass_tokens = 64;
        options.cache_type = GetParam();
        options.index_cache_type = GetParam();
        auto model = Model::load({dataPath("inference/m3-tiny/model-BF16.gguf").string(), {}},
                                 options, nullptr, {});
        ASSERT_TRUE(model.has_value()) << model.error().message;
        model_ = std::move(*model);
    }

    void fillPool(size_t n, uint32_t seed) {
        while (pool_.size() < n) {
            pool_.push_back(*model_->backend().allocatePage());
        }
        std::shuffle(pool_.begin(), pool_.end(), std::mt19937(seed));
    }

    void reserve(Walker& walker, size_t n_tokens) {
        while (walker.pages.size() * kPageTokens < n_tokens) {
            ASSERT_FALSE(pool_.empty());
            walker.pages.push_back(pool_.back());
            pool_.pop_back();
        }
    }

    void give(Walker& walker) {
        // To the front: others will use them soon.
        pool_.insert(pool_.end(), walker.pages.begin(), walker.pages.end());
        walker.pages.clear();
    }

    void prefill(Walker& walker) {
        reserve(walker, walker.n_prompt);
        while (walker.n_tokens < walker.n_prompt) {
            const size_t n = std::min<size_t>(64, walker.n_prompt - walker.n_tokens);
            std::vector<TokenId> tokens;
            for (size_t i = 0; i < n; ++i) {
                tokens.push_back(tokenOf(walker.id, walker.n_tokens + i));
            }
            const PassRun run = {n, walker.n_tokens, walker.pages};
            ASSERT_TRUE(model_->decoder().forward(tokens, std::span(&run, 1), {}).has_value());
            walker.n_tokens += n;
        }
    }

    /// One token of each.
    void step(std::span<Walker*> walkers) {
        std::vector<TokenId> tokens;
        std::vector<PassRun> runs;
        for (Walker* walker : walkers) {
            reserve(*walker, walker->n_tokens + 1);
            tokens.push_back(tokenOf(walker->id, walker->n_tokens));
            runs.push_back({1, walker->n_tokens, walker->pages});
        }
        ASSERT_TRUE(model_->decoder().forward(tokens, runs, {}).has_value());
        const auto logits = model_->decoder().logits(0, tokens.size());
        ASSERT_TRUE(logits.has_value());
        const size_t width = logits->size() / tokens.size();
        for (size_t i = 0; i < walkers.size(); ++i) {
            const auto row = logits->subspan(i * width, width);
            walkers[i]->logits.emplace_back(row.begin(), row.end());
            ++walkers[i]->n_tokens;
        }
    }

    static std::vector<Walker> walkers() {
        // Lengths on and beside borders of pages; they come and go.
        return {{1, 100, 0, 40, 0, {}, {}},
                {2, 127, 0, 12, 0, {}, {}},
                {3, 128, 5, 40, 0, {}, {}},
                {4, 1, 9, 30, 0, {}, {}},
                {5, 250, 13, 40, 0, {}, {}}};
    }

    std::unique_ptr<Model> model_;
    std::vector<PageId> pool_;
};

TEST_P(Paging, T10_SequencesThatComeAndGoAreAsIfAlone) {
    std::vector<Walker> alone = walkers();
    fillPool(12, 1);
    for (Walker& walker : alone) {
        prefill(walker);
        Walker* one = &walker;
        for (size_t i = walker.enters; i < walker.leaves; ++i) {
            step(std::span(&one, 1));
        }
        give(walker);
    }
    for (const uint32_t seed : {2U, 3U}) {
        fillPool(12, seed);
        std::vector<Walker> together = walkers();
        for (size_t i = 0; i < 40; ++i) {
            std::vector<Walker*> live;
            for (Walker& walker : together) {
                if (walker.enters == i) {
                    prefill(walker);
                }
                if (walker.leaves == i) {
                    give(walker);
                }
                if (walker.enters <= i && i < walker.leaves) {
                    live.push_back(&walker);
                }
            }
            std::rotate(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(i % live.size()),
                        live.end());
            step(live);
        }
        for (size_t w = 0; w < together.size(); ++w) {
            EXPECT_TRUE(together[w].logits == alone[w].logits) << "sequence " << w;
            give(together[w]);
        }
    }
}

TEST_P(Paging, T10_APassWritesTheRowsOfItsTokensAndNothingElse) {
    fillPool(8, 4);
    std::vector<PageId> all = pool_;
    Backend& backend = model_->backend();
    const PageShape& shape = backend.pageShape();
    const auto copyOf = [&] {
        std::vector<std::vector<std::byte>> parts;
        for (const PageId page : all) {
            for (size_t layer = 0; layer < shape.n_layers; ++layer) {
                for (const PagePart part : {PagePart::KeysAndValues, PagePart::IndexKeys}) {
                    if (shape.has(part, layer)) {
                        const auto bytes = *backend.readPage(page, part, layer);
                        parts.emplace_back(bytes.begin(), bytes.end());
                    } else {
                        parts.emplace_back();
                    }
                }
            }
        }
        return parts;
    };
    Walker first = {1, 126, 0, 0, 0, {}, {}};
    Walker second = {2, 40, 0, 0, 0, {}, {}};
    prefill(first);
    prefill(second);
    const auto before = copyOf();
    Walker* both[] = {&first, &second};
    for (int i = 0; i < 4; ++i) {  // the first goes on into a new page
        step(both);
    }
    const auto after = copyOf();
    size_t n_written = 0;
    for (size_t i = 0; i < all.size() * shape.n_layers * 2; ++i) {
        const PageId page = all[i / (2 * shape.n_layers)];
        const PagePart part = i % 2 == 0 ? PagePart::KeysAndValues : PagePart::IndexKeys;
        const size_t row_bytes = shape.rowBytes(part);
        for (size_t at = 0; at < before[i].size(); ++at) {
            const size_t row = at / row_bytes % kPageTokens;
            const bool is_of_pass = (page == first.pages[0] && row >= 126) ||
                                    (page == first.pages[1] && row < 2) ||
                                    (page == second.pages[0] && row >= 40 && row < 44);
            n_written += before[i][at] != after[i][at] ? 1U : 0U;
            ASSERT_TRUE(is_of_pass || before[i][at] == after[i][at])
                << "page " << page << " row " << row;
        }
    }
    EXPECT_GT(n_written, 0U);
}

INSTANTIATE_TEST_SUITE_P(,
                         Paging,
                         ::testing::Values(CacheType::F16, CacheType::Q8_0),
                         [](const auto& type) {
                             return std::string(kernels::cacheTypeName(type.param));
                         });

}  // namespace
}  // namespace belvedere::testing
