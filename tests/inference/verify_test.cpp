// SPDX-License-Identifier: Apache-2.0
// A pass over several tokens, of one sequence or of several, computes for each the very bits that
// it computes alone: what verifying drafts and decoding forks together rest on. On every
// instruction set, in both ways of computing. msa.md 7, test 11.

#include <gtest/gtest.h>

#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

using namespace inference;
using kernels::Isa;
using kernels::kIndependentTokens;

struct Case {
    Isa isa;
    Compute compute;
};

/// What a pass says of a token.
struct Verdict {
    std::vector<float> logits;
    std::vector<std::vector<int32_t>> blocks;  ///< of each MSA layer

    bool operator==(const Verdict&) const = default;
};

class Verify : public ::testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        options_.kernels = kernels::tableFor(GetParam().isa);
        if (options_.kernels == nullptr) {
            GTEST_SKIP() << "no kernels here for " << kernels::isaName(GetParam().isa);
        }
        options_.compute = GetParam().compute;
        options_.n_threads = 2;
    }

    void load(const char* base, const char* adapter) {
        LoadRequest request;
        request.model_path = dataPath(std::filesystem::path("inference") / base).string();
        if (adapter != nullptr) {
            request.adapters = {{dataPath(std::filesystem::path("inference") / adapter).string()}};
        }
        auto model = Model::load(request, options_, nullptr, {});
        ASSERT_TRUE(model.has_value()) << model.error().message;
        model_ = std::move(*model);
        n_checked_ = 0;
    }

    /// Pages of n_pages of their own.
    std::vector<PageId> newPages(size_t n_pages) {
        std::vector<PageId> pages;
        for (size_t i = 0; i < n_pages; ++i) {
            pages.push_back(*model_->backend().allocatePage());
        }
        return pages;
    }

    [[nodiscard]] std::span<const TokenId> tokens(size_t begin, size_t n) const {
        return std::span<const TokenId>(ids_).subspan(begin, n);
    }

    std::vector<Verdict> pass(std::span<const TokenId> tokens, std::span<const PassRun> runs) {
        EXPECT_TRUE(model_->decoder().forward(tokens, runs, {}).has_value());
        const auto logits = *model_->decoder().logits(0, tokens.size());
        const size_t width = logits.size() / tokens.size();
        std::vector<Verdict> verdicts(tokens.size());
        for (size_t t = 0; t < tokens.size(); ++t) {
            const auto row = logits.subspan(t * width, width);
            verdicts[t].logits.assign(row.begin(), row.end());
            for (size_t layer = 0; layer < model_->config().n_layers; ++layer) {
                if (model_->config().layers[layer].attention != AttentionKind::Msa) {
                    continue;
                }
                const auto ids = model_->decoder().chosenBlocks(layer);
                const size_t n = ids.size() / tokens.size();
                const auto own = ids.subspan(t * n, n);
                verdicts[t].blocks.emplace_back(own.begin(), own.end());
            }
        }
        return verdicts;
    }

    /// `prefix` tokens in the cache, then the next ones alone, together and among other sequences.
    void check(size_t prefix) {
        ids_.resize(prefix + kIndependentTokens);
        for (size_t i = 0; i < ids_.size(); ++i) {
            ids_[i] = static_cast<TokenId>((i * i + 3 * i) % 251);
        }
        const std::vector<PageId> pages =
            newPages((ids_.size() + kernels::kPageTokens - 1) / kernels::kPageTokens);
        for (size_t begin = 0; begin < prefix;) {
            const size_t n = std::min<size_t>(128, prefix - begin);
            ASSERT_TRUE(model_->decoder().forward(tokens(begin, n), begin, pages, {}).has_value());
            begin += n;
        }
        std::vector<Verdict> alone;
        for (size_t t = prefix; t < ids_.size(); ++t) {
            const PassRun run = {1, t, pages};
            alone.push_back(pass(tokens(t, 1), std::span(&run, 1)).front());
        }
        for (size_t n = 2; n <= kIndependentTokens; ++n) {
            const PassRun run = {n, prefix, pages};
            const auto together = pass(tokens(prefix, n), std::span(&run, 1));
            for (size_t t = 0; t < n; ++t) {
                EXPECT_EQ(together[t], alone[t])
                    << "token " << t << " of " << n << " at " << prefix;
                ++n_checked_;
            }
        }
        checkForks(prefix, pages, alone);
        for (const PageId page : pages) {
            model_->backend().freePage(page);
        }
    }

    /// Three sequences over the same prefix, each as far as it likes, in one pass.
    void checkForks(size_t prefix,
                    const std::vector<PageId>& pages,
                    const std::vector<Verdict>& alone) {
        const size_t lengths[] = {5, 1, 10};
        const size_t n_shared = prefix / kernels::kPageTokens;
        std::vector<std::vector<PageId>> forks;
        std::vector<PassRun> runs;
        std::vector<TokenId> all;
        for (const size_t n : lengths) {
            std::vector<PageId> own = newPages(pages.size() - n_shared);
            EXPECT_TRUE(model_->backend()
                            .copyPage(pages[n_shared], own.front(), prefix % kernels::kPageTokens)
                            .has_value());
            own.insert(own.begin(), pages.begin(), pages.begin() + static_cast<long>(n_shared));
            forks.push_back(std::move(own));
            const auto next = tokens(prefix, n);
            all.insert(all.end(), next.begin(), next.end());
        }
        for (size_t i = 0; i < forks.size(); ++i) {
            runs.push_back({lengths[i], prefix, forks[i]});
        }
        const auto together = pass(all, runs);
        size_t row = 0;
        for (const PassRun& run : runs) {
            for (size_t t = 0; t < run.n_tokens; ++t, ++row) {
                EXPECT_EQ(together[row], alone[t]) << "row " << row << " at " << prefix;
                ++n_checked_;
            }
        }
        for (const std::vector<PageId>& fork : forks) {
            for (size_t page = n_shared; page < fork.size(); ++page) {
                model_->backend().freePage(fork[page]);
            }
        }
    }

    /// Starts of the tokens: inside a page, over borders of blocks, pages and ranges of keys.
    void checkAll() {
        for (const size_t prefix : {size_t{3}, size_t{120}, size_t{505}}) {
            check(prefix);
        }
        EXPECT_EQ(n_checked_, 3 * (135U + 16U));
    }

    ModelOptions options_;
    std::unique_ptr<Model> model_;
    std::vector<TokenId> ids_;
    size_t n_checked_ = 0;
};

TEST_P(Verify, T11_DenseAndMsaLayersWithExperts) {
    load("m3-tiny/model-BF16.gguf", nullptr);
    checkAll();
}

TEST_P(Verify, T11_AdapterWithMsa) {
    load("family-llama-tied/model-BF16.gguf", "adapter-llama-msa/adapter.gguf");
    checkAll();
}

TEST_P(Verify, DenseAttentionAndBiases) {
    load("family-qwen2/model-BF16.gguf", nullptr);
    checkAll();
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         Verify,
                         ::testing::Values(Case{Isa::Scalar, Compute::Exact},
                                           Case{Isa::Scalar, Compute::Fast},
                                           Case{Isa::Avx2, Compute::Exact},
                                           Case{Isa::Avx2, Compute::Fast},
                                           Case{Isa::Avx512, Compute::Exact},
                                           Case{Isa::Avx512, Compute::Fast},
                                           Case{Isa::Amx, Compute::Fast}),
                         [](const auto& parameter) {
                             return std::string(kernels::isaName(parameter.param.isa)) +
                                    (parameter.param.compute == Compute::Exact ? "_exact"
                                                                               : "_fast");
                         });

}  // namespace
}  // namespace belvedere::testing
