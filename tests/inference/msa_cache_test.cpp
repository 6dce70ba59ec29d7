// SPDX-License-Identifier: Apache-2.0
// Index keys live and die with K and V: whatever way a sequence came about (prefix reuse, fork with
// a partial page, rollback of rejected tokens), it goes on as one that was computed in one piece.
// Also the mask of blocks that may not be chosen. msa.md 7: the first word of a name is the number
// of a test there; test 9 through a file is in cache/snapshot_test.cpp.

#include <algorithm>

#include <gtest/gtest.h>

#include "inference/cache/kv_cache.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

using inference::SequenceId;
using inference::TokenId;

constexpr double kTolerance = 1e-4;

class MsaCacheTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const std::string folder = dataPath("inference/m3-tiny").string();
        inference::ModelOptions options;
        options.compute = inference::Compute::Exact;
        options.n_threads = 2;
        options.max_pass_tokens = 128;
        auto model =
            inference::Model::load({folder + "/model-BF16.gguf", {}}, options, nullptr, {});
        ASSERT_TRUE(model.has_value()) << model.error().message;
        model_ = std::move(*model);
        cache_ = std::make_unique<inference::KvCache>(model_->backend(), SIZE_MAX);
        ids_ = expectedIds(folder + "/expected.safetensors");
    }

    /// Feeds what the sequence does not hold yet; the logits of the last token, and the blocks it
    /// chose in layer 1.
    std::vector<float> feed(SequenceId sequence, std::span<const TokenId> prompt) {
        n_cached_ = *cache_->begin(sequence, prompt);
        std::vector<float> last;
        for (size_t begin = n_cached_; begin < prompt.size();) {
            const auto tokens = prompt.subspan(begin, std::min<size_t>(128, prompt.size() - begin));
            const auto pages = *cache_->prepare(sequence, tokens.size());
            const inference::PassRun run = {tokens.size(), begin, pages, banned_};
            EXPECT_TRUE(model_->decoder().forward(tokens, std::span(&run, 1), {}).has_value());
            cache_->commit(sequence, tokens);
            begin += tokens.size();
            const auto logits = *model_->decoder().logits(tokens.size() - 1, 1);
            last.assign(logits.begin(), logits.end());
            const auto blocks = model_->decoder().chosenBlocks(1);
            blocks_.assign(blocks.end() - 8, blocks.end());
        }
        cache_->end(sequence);
        return last;
    }

    /// What the cache holds of a sequence, as the numbers of one part of each page: f32.
    std::vector<float> contentOf(SequenceId sequence, inference::PagePart part) {
        const inference::SnapshotContent content = *cache_->hold(sequence);
        cache_->end(sequence);
        inference::Backend& backend = model_->backend();
        const inference::PageShape& shape = backend.pageShape();
        const size_t row = shape.rowBytes(part) / sizeof(float);
        std::vector<float> all;
        for (size_t layer = 0; layer < shape.n_layers; ++layer) {
            for (size_t pos = 0; shape.has(part, layer) && pos < content.tokens.size(); ++pos) {
                const auto bytes = *backend.readPage(content.pages[pos / 128], part, layer);
                for (size_t head = 0; head < shape.headCount(part); ++head) {
                    const auto* from = reinterpret_cast<const float*>(bytes.data()) +
                                       (head * 128 + pos % 128) * row;
                    all.insert(all.end(), from, from + row);
                }
            }
        }
        return all;
    }

    [[nodiscard]] std::vector<TokenId> prefix(size_t n) const {
        return {ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(n)};
    }

    std::unique_ptr<inference::Model> model_;
    std::unique_ptr<inference::KvCache> cache_;
    std::vector<TokenId> ids_;
    std::vector<int32_t> blocks_;  ///< [2 groups, 4]
    size_t n_cached_ = 0;
    std::vector<uint8_t> banned_;  ///< of every block, or empty
};

double largestDifference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = a.size() == b.size() ? 0 : 1e30;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        largest =
            std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    }
    return largest;
}

TEST_F(MsaCacheTest, T09_ForksAndReusedPrefixesGoOnLikeAFreshRun) {
    const SequenceId whole = cache_->open();
    const auto expected = feed(whole, ids_);
    const auto blocks = blocks_;
    // On a border of a page, of a block, inside both, and one token before the end.
    for (const size_t n : {size_t{128}, size_t{144}, size_t{129}, size_t{255}, size_t{256},
                           size_t{257}, size_t{319}}) {
        const SequenceId fork = *cache_->fork(whole, n);
        std::vector<TokenId> other = prefix(n);
        other.insert(other.end(), 60, 7);
        feed(fork, other);
        EXPECT_EQ(n_cached_, n);
        const auto again = feed(fork, ids_);  // rolls the other tokens back
        EXPECT_GE(n_cached_, n);
        EXPECT_LT(largestDifference(again, expected), kTolerance) << "fork at " << n;
        EXPECT_EQ(blocks_, blocks) << "fork at " << n;
        for (const auto part :
             {inference::PagePart::KeysAndValues, inference::PagePart::IndexKeys}) {
            EXPECT_LT(largestDifference(contentOf(fork, part), contentOf(whole, part)), kTolerance)
                << "fork at " << n;
        }
        cache_->close(fork);
    }
    // The source is as it was.
    const auto source = feed(whole, ids_);
    EXPECT_LT(largestDifference(source, expected), kTolerance);
}

TEST_F(MsaCacheTest, T09_RejectedTokensLeaveNoTrace) {
    const SequenceId sequence = cache_->open();
    feed(sequence, prefix(300));
    for (const size_t n_rejected : {size_t{1}, size_t{9}, size_t{40}}) {
        std::vector<TokenId> draft = prefix(260);
        draft.insert(draft.end(), n_rejected, 11);
        feed(sequence, draft);
    }
    const auto continued = feed(sequence, ids_);
    const auto blocks = blocks_;
    cache_->close(sequence);
    const SequenceId fresh = cache_->open();
    EXPECT_LT(largestDifference(continued, feed(fresh, ids_)), kTolerance);
    EXPECT_EQ(blocks, blocks_);
}

TEST_F(MsaCacheTest, T12_BannedBlocksAreNotChosen) {
    const SequenceId sequence = cache_->open();
    feed(sequence, ids_);
    const std::vector<int32_t> before = blocks_;
    cache_->close(sequence);
    banned_.assign(20, 0);
    banned_[static_cast<size_t>(before[0])] = 1;
    feed(cache_->open(), ids_);
    EXPECT_EQ(std::count(blocks_.begin(), blocks_.end(), before[0]), 0);
    EXPECT_EQ(blocks_[3], 19) << "a token's own block is always there";
}

}  // namespace
}  // namespace belvedere::testing
