// SPDX-License-Identifier: Apache-2.0
#include "inference/sampling/drafter.h"

#include <gtest/gtest.h>

namespace belvedere::testing {
namespace {

using namespace inference;

constexpr double kRowCost = 0.2;

std::vector<TokenId> draftOf(Drafter& drafter, const std::vector<TokenId>& tokens, size_t n_max) {
    const auto draft = drafter.draft(tokens, n_max);
    return {draft.begin(), draft.end()};
}

TEST(Drafter, ContinuesAsAfterTheSameTokensBefore) {
    Drafter drafter(kRowCost);
    EXPECT_EQ(draftOf(drafter, {1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4}, 2), (std::vector<TokenId>{5, 6}));
}

TEST(Drafter, PrefersTheLongestMatchAndOfEqualsTheNewest) {
    Drafter longest(kRowCost);
    EXPECT_EQ(draftOf(longest, {7, 1, 2, 3, 50, 9, 2, 3, 60, 8, 7, 1, 2, 3}, 1),
              std::vector<TokenId>{50});
    Drafter newest(kRowCost);
    EXPECT_EQ(draftOf(newest, {0, 2, 3, 50, 9, 2, 3, 60, 8, 2, 3}, 1), std::vector<TokenId>{60});
}

TEST(Drafter, SaysNothingWhereNothingRepeats) {
    Drafter drafter(kRowCost);
    EXPECT_TRUE(draftOf(drafter, {}, 4).empty());
    EXPECT_TRUE(draftOf(drafter, {1}, 4).empty());
    EXPECT_TRUE(draftOf(drafter, {1, 2}, 4).empty());
    EXPECT_TRUE(draftOf(drafter, {1, 2, 3, 4, 5, 2}, 4).empty());
}

TEST(Drafter, ARepetitionGoesOnBeyondTheEnd) {
    Drafter drafter(kRowCost);
    std::vector<TokenId> tokens = {9};
    for (int i = 0; i < 6; ++i) {
        tokens.insert(tokens.end(), {1, 2, 3});
    }
    EXPECT_EQ(draftOf(drafter, tokens, 7), (std::vector<TokenId>{1, 2, 3, 1, 2, 3, 1}));
    EXPECT_TRUE(draftOf(drafter, tokens, 0).empty());
}

TEST(Drafter, FindsWhatCameSinceTheLastCall) {
    Drafter drafter(kRowCost);
    std::vector<TokenId> tokens = {1, 2, 3, 4};
    EXPECT_TRUE(draftOf(drafter, tokens, 1).empty());
    tokens.insert(tokens.end(), {5, 6, 3, 4});
    EXPECT_EQ(draftOf(drafter, tokens, 1), std::vector<TokenId>{5});
    tokens.insert(tokens.end(), {7, 3, 4});
    EXPECT_EQ(draftOf(drafter, tokens, 1), std::vector<TokenId>{7});
}

TEST(DraftLength, GrowsWithWhatWasRightAndShrinksWithWhatWasWrong) {
    for (const size_t n_common : {size_t{2}, size_t{3}, size_t{5}, size_t{8}, size_t{16}}) {
        DraftLength length(kRowCost);
        const size_t at_first = length.choose(n_common, 15);
        EXPECT_GT(at_first, 0U);
        for (int i = 0; i < 20; ++i) {
            length.learn(n_common, 8, 8);
        }
        EXPECT_EQ(length.choose(n_common, 15), 15U);
        EXPECT_EQ(length.choose(n_common, 4), 4U);
        for (int i = 0; i < 40; ++i) {
            length.learn(n_common, 8, 0);
        }
        EXPECT_EQ(length.choose(n_common, 15), 0U);
        // What was given up is tried again in time.
        int n_idle = 0;
        while (length.choose(n_common, 15) == 0 && n_idle < 1000) {
            length.learn(n_common, 0, 0);
            ++n_idle;
        }
        EXPECT_GT(n_idle, 10);
        EXPECT_LT(n_idle, 300);
    }
}

TEST(DraftLength, IsShorterWhereRowsCostMore) {
    DraftLength cheap(0.1);
    DraftLength dear(0.6);
    EXPECT_GT(cheap.choose(16, 15), dear.choose(16, 15));
    EXPECT_EQ(dear.choose(2, 15), 0U);
}

}  // namespace
}  // namespace belvedere::testing
