// SPDX-License-Identifier: Apache-2.0
// The backend's attention with an index branch against its definition: the tests that an MSA
// implementation must pass whatever model it serves. The first word of each name is the number in
// the project's list of fifteen; 9 and 10 stand in cache tests too, 11 and 15 in model tests, 14 in
// msa_scale_test.cpp.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/inference/msa_oracle.h"

namespace belvedere::testing {
namespace {

using kernels::Isa;

constexpr float kTolerance = 2e-5F;
/// Blocks and choice of MiniMax-M3; one small head keeps the oracle quick.
constexpr MsaShape kRealBlocks = {
    .n_heads = 1, .n_groups = 1, .head_dim = 16, .index_dim = 16, .block_tokens = 128, .top_k = 16};

class MsaAttend : public ::testing::TestWithParam<Isa> {
  protected:
    void SetUp() override {
        run_.table = kernels::tableFor(GetParam());
        if (run_.table == nullptr) {
            GTEST_SKIP() << "no kernels here for " << kernels::isaName(GetParam());
        }
    }

    [[nodiscard]] MsaOutput run(const MsaShape& shape,
                                const MsaInput& input,
                                std::vector<size_t> chunks) const {
        BackendRun with = run_;
        with.chunks = std::move(chunks);
        return runBackend(shape, input, with);
    }

    [[nodiscard]] MsaOutput runDense(const MsaShape& shape,
                                     const MsaInput& input,
                                     std::vector<size_t> chunks) const {
        BackendRun with = run_;
        with.chunks = std::move(chunks);
        with.is_dense = true;
        return runBackend(shape, input, with);
    }

    BackendRun run_;
};

/// Largest difference of rows [begin, end) of [n_tokens, width].
float difference(const std::vector<float>& a,
                 const std::vector<float>& b,
                 size_t width,
                 size_t begin,
                 size_t end) {
    float largest = 0;
    for (size_t i = begin * width; i < end * width; ++i) {
        // Not std::max alone: it drops NaN.
        const float one = std::fabs(a.at(i) - b.at(i));
        largest = one <= largest ? largest : one;
    }
    return largest;
}

void expectEqual(const MsaShape& shape, const MsaOutput& actual, const MsaOutput& expected) {
    ASSERT_EQ(actual.out.size(), expected.out.size());
    EXPECT_EQ(actual.blocks, expected.blocks);
    const size_t width = shape.n_heads * shape.head_dim;
    EXPECT_LT(difference(actual.out, expected.out, width, 0, actual.out.size() / width),
              kTolerance);
}

/// The ids of a token's group.
std::vector<int32_t> chosen(const MsaShape& shape,
                            const MsaOutput& output,
                            size_t pos,
                            size_t group) {
    const auto begin = output.blocks.begin() +
                       static_cast<std::ptrdiff_t>((pos * shape.n_groups + group) * shape.top_k);
    return {begin, begin + static_cast<std::ptrdiff_t>(shape.top_k)};
}

/// Index keys and queries that give a block the score asked for: one token of it carries it, its
/// other tokens score far less.
void setScores(const MsaShape& shape, MsaInput& input, const std::vector<float>& scores) {
    std::fill(input.index_q.begin(), input.index_q.end(), 0.0F);
    std::fill(input.index_k.begin(), input.index_k.end(), 0.0F);
    for (size_t i = 0; i < input.index_q.size(); i += shape.index_dim) {
        input.index_q[i] = 1;
    }
    for (size_t token = 0; token < input.n_tokens; ++token) {
        const size_t block = token / shape.block_tokens;
        const bool carries = token % shape.block_tokens == block % shape.block_tokens;
        input.index_k[token * shape.index_dim] = carries ? scores.at(block) : -1e6F;
    }
}

TEST_P(MsaAttend, T01_EqualsDenseAttentionAsLongAsAllBlocksAreChosen) {
    const MsaShape small;
    const MsaInput input = randomInput(small, 64, 1);
    const MsaOutput msa = run(small, input, {64});
    const MsaOutput dense = runDense(small, input, {64});
    const size_t width = small.n_heads * small.head_dim;
    const size_t n_equal = small.block_tokens * small.top_k;
    EXPECT_LT(difference(msa.out, dense.out, width, 0, n_equal), kTolerance);
    EXPECT_GT(difference(msa.out, dense.out, width, n_equal, 64), 0.01F);

    MsaShape all = small;
    all.top_k = 8;
    EXPECT_LT(difference(run(all, input, {64}).out, dense.out, width, 0, 64), kTolerance);
}

TEST_P(MsaAttend, T01_DiffersFromPosition2048OnWhereABlockIsDropped) {
    MsaInput input = randomInput(kRealBlocks, 2049, 2);
    std::vector<float> scores(17, 1);
    scores[5] = 0;
    setScores(kRealBlocks, input, scores);
    std::fill_n(input.v.begin() + 5 * 128 * 16, 128 * 16, 1000.0F);  // who attends to it shows it
    const MsaOutput msa = run(kRealBlocks, input, {512});
    const MsaOutput dense = runDense(kRealBlocks, input, {512});
    EXPECT_LT(difference(msa.out, dense.out, 16, 0, 2048), 1000 * kTolerance);
    EXPECT_GT(difference(msa.out, dense.out, 16, 2048, 2049), 10);
    std::vector<int32_t> expected(17);
    std::iota(expected.begin(), expected.end(), 0);
    expected.erase(expected.begin() + 5);
    EXPECT_EQ(chosen(kRealBlocks, msa, 2048, 0), expected);
}

/// 64 heads in 4 groups, each of which ranks other blocks first.
TEST_P(MsaAttend, T02_GroupsChooseAloneAndHeadsSeeTheirOwnGroupOnly) {
    const MsaShape shape = {.n_heads = 64, .n_groups = 4, .head_dim = 8};
    constexpr size_t kBlocks = 16;
    MsaInput input = randomInput(shape, kBlocks * shape.block_tokens, 3);
    std::fill(input.index_q.begin(), input.index_q.end(), 0.0F);
    std::fill(input.index_k.begin(), input.index_k.end(), 0.0F);
    for (size_t token = 0; token < input.n_tokens; ++token) {
        const size_t block = token / shape.block_tokens;
        input.index_k[token * shape.index_dim + block] = 1;
        for (size_t group = 0; group < shape.n_groups; ++group) {
            float* q = &input.index_q[(token * shape.n_groups + group) * shape.index_dim];
            q[3 * group] = 2;
            q[3 * group + 1] = 1;
            std::fill_n(&input.v[(token * shape.n_groups + group) * shape.head_dim], shape.head_dim,
                        static_cast<float>(block));
        }
    }
    const MsaOutput output = run(shape, input, {32});
    expectEqual(shape, output, msaOracle(shape, input));
    const size_t last = input.n_tokens - 1;
    for (size_t group = 0; group < 4; ++group) {
        const auto first = static_cast<int32_t>(3 * group);
        EXPECT_EQ(chosen(shape, output, last, group), (std::vector<int32_t>{first, first + 1, 15}));
        for (size_t head = 16 * group; head < 16 * (group + 1); ++head) {
            const float value = output.out[(last * 64 + head) * shape.head_dim];
            EXPECT_GE(value, static_cast<float>(first)) << "head " << head;
            EXPECT_LE(value, 15) << "head " << head;
        }
    }
}

TEST_P(MsaAttend, T02_PermutedGroupsGivePermutedOutputs) {
    const MsaShape shape;
    const size_t n_tokens = 100;
    const MsaInput input = randomInput(shape, n_tokens, 4);
    MsaInput swapped = input;
    const auto swapHalves = [&](std::vector<float>& values) {
        const size_t width = values.size() / n_tokens;
        for (size_t t = 0; t < n_tokens; ++t) {
            const auto row = values.begin() + static_cast<std::ptrdiff_t>(t * width);
            const auto half = static_cast<std::ptrdiff_t>(width / 2);
            std::swap_ranges(row, row + half, row + half);
        }
    };
    swapHalves(swapped.q);
    swapHalves(swapped.k);
    swapHalves(swapped.v);
    swapHalves(swapped.index_q);
    MsaOutput output = run(shape, swapped, {100});
    swapHalves(output.out);
    EXPECT_EQ(output.out, run(shape, input, {100}).out);
}

TEST_P(MsaAttend, T03_TheOwnBlockIsChosenWhateverItsScore) {
    const MsaShape shape = {.block_tokens = 16, .top_k = 4};
    for (const size_t offset : std::initializer_list<size_t>{0, 1, 14, 15}) {
        const size_t pos = 9 * 16 + offset;
        MsaInput input = randomInput(shape, pos + 1, 5);
        setScores(shape, input, {0, 1, 2, 3, 4, 5, 6, 7, 8, -100});
        const MsaOutput output = run(shape, input, {64, 1});
        EXPECT_EQ(chosen(shape, output, pos, 0), (std::vector<int32_t>{6, 7, 8, 9})) << offset;
        expectEqual(shape, output, msaOracle(shape, input));
    }
}

TEST_P(MsaAttend, T03_InitAndLocalBlocksAreForcedAsASet) {
    for (const MsaShape& shape :
         {MsaShape{.top_k = 4, .n_init = 1}, MsaShape{.top_k = 4, .n_local = 2},
          MsaShape{.top_k = 4, .n_init = 1, .n_local = 3}}) {
        const MsaInput input = randomInput(shape, 150, 6);
        expectEqual(shape, run(shape, input, {47}), msaOracle(shape, input));
    }
}

TEST_P(MsaAttend, T04_NoTokenSeesWhatComesAfterIt) {
    const MsaShape shape;
    MsaInput input = randomInput(shape, 200, 7);
    const MsaOutput before = run(shape, input, {200});
    constexpr size_t kPos = 100;
    // An enormous score, key and value for everything behind: in the own block and in later ones.
    for (size_t token = kPos + 1; token < input.n_tokens; ++token) {
        std::fill_n(&input.index_k[token * shape.index_dim], shape.index_dim, 1e6F);
        std::fill_n(&input.k[token * shape.n_groups * shape.head_dim],
                    shape.n_groups * shape.head_dim, 1e6F);
        std::fill_n(&input.v[token * shape.n_groups * shape.head_dim],
                    shape.n_groups * shape.head_dim, 1e30F);
    }
    const MsaOutput after = run(shape, input, {200});
    const size_t width = shape.n_heads * shape.head_dim;
    EXPECT_EQ(difference(after.out, before.out, width, 0, kPos + 1), 0);
    for (size_t pos = 0; pos <= kPos; ++pos) {
        ASSERT_EQ(chosen(shape, after, pos, 0), chosen(shape, before, pos, 0)) << pos;
        ASSERT_EQ(chosen(shape, after, pos, 1), chosen(shape, before, pos, 1)) << pos;
    }
}

constexpr kernels::CacheType kAllTypes[] = {kernels::CacheType::F32, kernels::CacheType::F16,
                                            kernels::CacheType::BF16, kernels::CacheType::Q8_0};

TEST_P(MsaAttend, T05_WhatNoTokenWroteIsNeverRead) {
    const MsaShape shape;
    const MsaInput input = randomInput(shape, 300, 31);
    for (const kernels::CacheType type : kAllTypes) {
        BackendRun with = run_;
        with.cache_type = type;
        with.index_cache_type = type;
        // Chunks that end inside pages and blocks, and single tokens: both ways of the kernels.
        with.chunks = {100, 60, 1, 1, 13, 1};
        with.filling = 0.0F;
        const MsaOutput expected = runBackend(shape, input, with);
        BackendRun dense = with;
        dense.is_dense = true;
        const MsaOutput expected_dense = runBackend(shape, input, dense);
        for (const float poison : {std::numeric_limits<float>::quiet_NaN(),
                                   std::numeric_limits<float>::infinity(), 1e30F}) {
            SCOPED_TRACE(::testing::Message() << kernels::cacheTypeName(type) << " " << poison);
            with.filling = poison;
            dense.filling = poison;
            const MsaOutput poisoned = runBackend(shape, input, with);
            EXPECT_EQ(poisoned.blocks, expected.blocks);
            EXPECT_TRUE(poisoned.out == expected.out);
            EXPECT_TRUE(runBackend(shape, input, dense).out == expected_dense.out);
        }
    }
}

TEST_P(MsaAttend, T06_TiesGoToLowerIdsAndRunsRepeatBitForBit) {
    const MsaShape shape;
    MsaInput input = randomInput(shape, 80, 8);
    setScores(shape, input, std::vector<float>(10, 2.5F));
    EXPECT_EQ(chosen(shape, run(shape, input, {80}), 79, 0), (std::vector<int32_t>{0, 1, 9}));
    setScores(shape, input, {2, 2, 2, 3, 2, 2, 2, 2, 2, 2});  // 3 is chosen, and the lowest 2
    EXPECT_EQ(chosen(shape, run(shape, input, {80}), 79, 1), (std::vector<int32_t>{0, 3, 9}));
    setScores(shape, input, {-0.0F, 0.0F, -0.0F, 0.0F, 0, 0, 0, 0, 0, 0});
    EXPECT_EQ(chosen(shape, run(shape, input, {80}), 79, 0), (std::vector<int32_t>{0, 1, 9}));
    setScores(shape, input, {-9, -8, -7, -6, -5, -4, -3, -2, -1, -10});
    EXPECT_EQ(chosen(shape, run(shape, input, {80}), 79, 0), (std::vector<int32_t>{7, 8, 9}));

    const MsaInput random = randomInput(shape, 300, 9);
    const MsaOutput first = run(shape, random, {300});
    for (const size_t n_threads : std::initializer_list<size_t>{1, 2, 3}) {
        run_.n_threads = n_threads;
        const MsaOutput again = run(shape, random, {300});
        EXPECT_EQ(again.out, first.out) << n_threads << " threads";
        EXPECT_EQ(again.blocks, first.blocks) << n_threads << " threads";
    }
}

TEST_P(MsaAttend, T07_MatchesTheOracleAtEveryLength) {
    const MsaShape shape;
    for (const size_t n : std::initializer_list<size_t>{1, 2, 7, 8, 9, 23, 24, 25, 127, 128, 129,
                                                        255, 256, 257, 391}) {
        const MsaInput input = randomInput(shape, n, n);
        const MsaOutput expected = msaOracle(shape, input);
        expectEqual(shape, run(shape, input, {n}), expected);
        expectEqual(shape, run(shape, input, {n > 1 ? n - 1 : 1, 1}), expected);
    }
}

TEST_P(MsaAttend, T07_MatchesTheOracleWithTheRealBlocks) {
    for (const size_t n : std::initializer_list<size_t>{2049, 2177, 4097}) {
        const MsaInput input = randomInput(kRealBlocks, n, n);
        expectEqual(kRealBlocks, run(kRealBlocks, input, {512}), msaOracle(kRealBlocks, input));
    }
}

TEST_P(MsaAttend, T08_ChunksChangeNothing) {
    const MsaShape shape;
    const MsaInput input = randomInput(shape, 2100, 10);
    const MsaOutput whole = run(shape, input, {2100});
    for (const size_t chunk : std::initializer_list<size_t>{1, 7, 64, 128, 129, 2048}) {
        const MsaOutput pieces = run(shape, input, {chunk});
        EXPECT_EQ(pieces.blocks, whole.blocks) << chunk;
        const size_t width = shape.n_heads * shape.head_dim;
        EXPECT_LT(difference(pieces.out, whole.out, width, 0, 2100), kTolerance) << chunk;
    }
}

TEST_P(MsaAttend, T10_WhereThePagesStandChangesNoBit) {
    const MsaShape shape;
    const MsaInput input = randomInput(shape, 700, 33);
    BackendRun with = run_;
    with.chunks = {300, 1, 99};
    const MsaOutput expected = runBackend(shape, input, with);
    for (const PageOrder order : {PageOrder::Descending, PageOrder::Scattered}) {
        with.order = order;
        const MsaOutput output = runBackend(shape, input, with);
        EXPECT_EQ(output.blocks, expected.blocks);
        EXPECT_TRUE(output.out == expected.out);
    }
}

/// How many of the blocks that an f32 index chooses a smaller one chooses too.
struct Recall {
    double mean = 0;
    double lowest = 1;
};

Recall recallOf(const MsaShape& shape, const MsaOutput& output, const MsaOutput& expected) {
    Recall recall;
    const size_t n_rows = output.blocks.size() / shape.top_k;
    for (size_t row = 0; row < n_rows; ++row) {
        const auto begin = static_cast<std::ptrdiff_t>(row * shape.top_k);
        const auto end = begin + static_cast<std::ptrdiff_t>(shape.top_k);
        size_t n = 0;
        size_t n_found = 0;
        for (auto id = expected.blocks.begin() + begin; id != expected.blocks.begin() + end; ++id) {
            n += *id >= 0 ? 1U : 0U;
            n_found +=
                *id >= 0 && std::find(output.blocks.begin() + begin, output.blocks.begin() + end,
                                      *id) != output.blocks.begin() + end
                    ? 1U
                    : 0U;
        }
        const double one = static_cast<double>(n_found) / static_cast<double>(n);
        recall.mean += one / static_cast<double>(n_rows);
        recall.lowest = std::min(recall.lowest, one);
    }
    return recall;
}

TEST_P(MsaAttend, T13_SmallerIndexKeysChooseNearlyTheSameBlocks) {
    MsaShape shape;
    shape.index_dim = 128;  // the real size; random keys are the hard case: scores lie close
    shape.top_k = 16;
    const MsaInput input = randomInput(shape, 800, 35);
    const MsaOutput expected = run(shape, input, {256});
    const std::pair<kernels::CacheType, double> kinds[] = {{kernels::CacheType::F16, 0.998},
                                                           {kernels::CacheType::BF16, 0.99},
                                                           {kernels::CacheType::Q8_0, 0.98}};
    for (const auto& [type, mean] : kinds) {
        BackendRun with = run_;
        with.chunks = {256};
        with.index_cache_type = type;
        const Recall recall = recallOf(shape, runBackend(shape, input, with), expected);
        std::printf("index keys %s: recall mean %.5f, lowest %.3f\n", kernels::cacheTypeName(type),
                    recall.mean, recall.lowest);
        EXPECT_GT(recall.mean, mean) << kernels::cacheTypeName(type);
        EXPECT_GE(recall.lowest, 0.75) << kernels::cacheTypeName(type);
    }
}

TEST_P(MsaAttend, T13_TheChoiceIsAllThatTheIndexKeysDecide) {
    MsaShape shape;
    shape.n_heads = 2;
    shape.n_groups = 1;  // a mask binds all groups
    const MsaInput input = randomInput(shape, 150, 36);
    BackendRun with = run_;
    with.chunks = {1};
    const MsaOutput expected = runBackend(shape, input, with);
    const size_t n_blocks = (150 + shape.block_tokens - 1) / shape.block_tokens;
    for (size_t pos = 0; pos < input.n_tokens; ++pos) {
        auto& banned = with.banned.emplace_back(n_blocks, uint8_t{1});
        for (const int32_t id : chosen(shape, expected, pos, 0)) {
            if (id >= 0) {
                banned[static_cast<size_t>(id)] = 0;
            }
        }
    }
    for (const kernels::CacheType type : kAllTypes) {
        with.index_cache_type = type;
        const MsaOutput output = runBackend(shape, input, with);
        EXPECT_EQ(output.blocks, expected.blocks) << kernels::cacheTypeName(type);
        EXPECT_TRUE(output.out == expected.out) << kernels::cacheTypeName(type);
    }
}

/// Of K and V apart from the index.
TEST_P(MsaAttend, T13_SmallerKeysAndValuesStayNearF32) {
    const MsaShape shape;
    const MsaInput input = randomInput(shape, 400, 37);
    const MsaOutput expected = run(shape, input, {64});
    const std::pair<kernels::CacheType, float> kinds[] = {{kernels::CacheType::F16, 0.004F},
                                                          {kernels::CacheType::BF16, 0.03F},
                                                          {kernels::CacheType::Q8_0, 0.05F}};
    const size_t width = shape.n_heads * shape.head_dim;
    for (const auto& [type, tolerance] : kinds) {
        BackendRun with = run_;
        with.chunks = {64};
        with.cache_type = type;
        const MsaOutput output = runBackend(shape, input, with);
        EXPECT_EQ(output.blocks, expected.blocks);
        EXPECT_LT(difference(output.out, expected.out, width, 0, 400), tolerance)
            << kernels::cacheTypeName(type);
    }
}

TEST_P(MsaAttend, T12_IdsAreUniqueAscendingAndAsManyAsThereAreBlocks) {
    const MsaShape shape = {.block_tokens = 4, .top_k = 6};
    const MsaInput input = randomInput(shape, 90, 11);
    const MsaOutput output = run(shape, input, {31});
    for (size_t pos = 0; pos < 90; ++pos) {
        const size_t n_visible = pos / 4 + 1;
        const std::vector<int32_t> ids = chosen(shape, output, pos, pos % 2);
        for (size_t i = 0; i < ids.size(); ++i) {
            if (i >= std::min<size_t>(6, n_visible)) {
                ASSERT_EQ(ids[i], -1) << pos;
            } else {
                ASSERT_LT(ids[i], static_cast<int32_t>(n_visible)) << pos;
                ASSERT_GT(ids[i], i == 0 ? -1 : ids[i - 1]) << pos;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         MsaAttend,
                         ::testing::Values(Isa::Scalar, Isa::Avx2, Isa::Avx512),
                         [](const auto& tested) {
                             return std::string(kernels::isaName(tested.param));
                         });

}  // namespace
}  // namespace belvedere::testing
