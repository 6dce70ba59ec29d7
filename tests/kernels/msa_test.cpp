// SPDX-License-Identifier: Apache-2.0
// MSA's index branch: block scores against the scalar version, and the contract of the choice.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/kernels/kernel_test.h"

namespace belvedere::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Scene {
    CacheType type;
    size_t n_tokens;
    size_t first_pos;
    size_t n_heads;
    size_t head_dim;
    size_t block_tokens;

    [[nodiscard]] size_t blockCount() const {
        return (first_pos + n_tokens + block_tokens - 1) / block_tokens;
    }
};

/// Index queries and pages of index keys, with poison behind the last position.
struct Input {
    std::vector<float> q;
    size_t q_stride = 0;
    std::vector<std::vector<uint8_t>> pages;
    std::vector<const void*> page_pointers;
};

Input makeInput(const Scene& scene, float poison, size_t gap = 0) {
    Input in;
    Random random(scene.first_pos + scene.head_dim);
    const size_t n_positions = scene.first_pos + scene.n_tokens;
    in.q_stride = scene.n_heads * scene.head_dim + gap;
    in.q = random.normals(scene.n_tokens * in.q_stride);
    const size_t vector_bytes = cacheRowBytes(scene.type, scene.head_dim);
    for (size_t page = 0; page * kPageTokens < n_positions; ++page) {
        auto& bytes = in.pages.emplace_back(kPageTokens * vector_bytes);
        for (size_t slot = 0; slot < kPageTokens; ++slot) {
            const std::vector<float> key = page * kPageTokens + slot < n_positions
                                               ? random.normals(scene.head_dim)
                                               : std::vector<float>(scene.head_dim, poison);
            tableFor(Isa::Scalar)
                ->to_cache(scene.type, key.data(), bytes.data() + slot * vector_bytes,
                           scene.head_dim);
            if (scene.type == CacheType::Q8_0 && page * kPageTokens + slot >= n_positions &&
                poison != 0) {
                // Scales that are NaN.
                const auto row = bytes.begin() + static_cast<std::ptrdiff_t>(slot * vector_bytes);
                std::fill(row + static_cast<std::ptrdiff_t>(cacheScalesBegin(scene.head_dim)),
                          row + static_cast<std::ptrdiff_t>(vector_bytes), 0xff);
            }
        }
        in.page_pointers.push_back(bytes.data());
    }
    return in;
}

std::vector<float> score(const KernelTable& k, const Scene& scene, const Input& in, size_t step) {
    std::vector<float> scores(scene.n_tokens * scene.n_heads * scene.blockCount(), -kInfinity);
    std::vector<float> scratch(k.score_scratch_floats(scene.n_heads, scene.head_dim));
    const size_t span = std::max(scene.block_tokens, kPageTokens);
    const size_t n_spans = (scene.first_pos + scene.n_tokens + span - 1) / span;
    for (size_t begin = 0; begin < n_spans; begin += step) {
        k.score_blocks({.type = scene.type,
                        .q = in.q.data(),
                        .q_stride = in.q_stride,
                        .key_pages = in.page_pointers.data(),
                        .scores = scores.data(),
                        .n_blocks = scene.blockCount(),
                        .n_tokens = scene.n_tokens,
                        .first_pos = scene.first_pos,
                        .n_heads = scene.n_heads,
                        .head_dim = scene.head_dim,
                        .block_tokens = scene.block_tokens,
                        .scratch = scratch.data(),
                        .span_begin = begin,
                        .span_end = std::min(begin + step, n_spans)});
    }
    return scores;
}

std::vector<Scene> scenes() {
    std::vector<Scene> all;
    for (const CacheType type :
         {CacheType::F32, CacheType::F16, CacheType::BF16, CacheType::Q8_0}) {
        for (const size_t block : {size_t{8}, size_t{16}, size_t{64}, size_t{128}, size_t{256}}) {
            all.push_back({type, 1, 0, 4, 128, block});    // the first token of all
            all.push_back({type, 1, 700, 4, 128, block});  // generation at the real shape
            all.push_back({type, 1, 511, 3, 64, block});   // the last slot of a page
            all.push_back({type, 130, 0, 2, 32, block});   // a prompt
            all.push_back({type, 33, 250, 1, 20, block});  // head_dim off every vector
            all.push_back({type, 5, 383, 50, 16, block});  // more heads than rows of a step
        }
    }
    return all;
}

/// What a token does not see was not written.
void expectSameScores(const std::vector<float>& actual, const std::vector<float>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
        if (std::isinf(expected[i])) {
            ASSERT_EQ(actual[i], expected[i]) << i;
        } else {
            ASSERT_NEAR(actual[i], expected[i], 1e-5F * (1 + std::fabs(expected[i])) * 4) << i;
        }
    }
}

class Msa : public KernelTest {};

TEST_P(Msa, ScoresMatchTheScalarVersion) {
    for (const Scene& scene : scenes()) {
        SCOPED_TRACE(::testing::Message() << "block " << scene.block_tokens << " tokens "
                                          << scene.n_tokens << " after " << scene.first_pos);
        const Input in = makeInput(scene, 0);
        expectSameScores(score(table(), scene, in, 1000), score(scalar(), scene, in, 1000));
        const Input apart = makeInput(scene, 0, 7);
        expectSameScores(score(table(), scene, apart, 1000), score(scalar(), scene, apart, 1000));
    }
}

TEST_P(Msa, ScoresHaveTheSameBitsWithPoisonBehindThemAndHoweverSpansAreSliced) {
    for (const float poison : {kNaN, kInfinity, 1e30F}) {
        for (const Scene& scene : scenes()) {
            const std::vector<float> clean = score(table(), scene, makeInput(scene, 0), 1000);
            EXPECT_EQ(clean, score(table(), scene, makeInput(scene, poison), 1));
        }
    }
}

/// A huge key behind a token must not reach its scores, though later tokens of the call see it.
TEST_P(Msa, ScoresAreCausalInsideABlock) {
    const Scene scene{CacheType::F32, 40, 100, 2, 32, 128};
    Input in = makeInput(scene, 0);
    for (float& value : in.q) {
        value = std::fabs(value);
    }
    const std::vector<float> before = score(table(), scene, in, 1000);
    const std::vector<float> huge(scene.head_dim, 1000);
    const size_t pos = 120;
    tableFor(Isa::Scalar)
        ->to_cache(scene.type, huge.data(), in.pages[0].data() + pos * scene.head_dim * 4,
                   scene.head_dim);
    const std::vector<float> after = score(table(), scene, in, 1000);
    const size_t width = scene.n_heads * scene.blockCount();
    for (size_t t = 0; t < scene.n_tokens; ++t) {
        const bool is_same =
            std::equal(before.begin() + static_cast<std::ptrdiff_t>(t * width),
                       before.begin() + static_cast<std::ptrdiff_t>((t + 1) * width),
                       after.begin() + static_cast<std::ptrdiff_t>(t * width));
        EXPECT_EQ(is_same, scene.first_pos + t < pos) << t;
    }
}

/// One token at `pos` with given block scores.
struct Choice {
    size_t pos = 0;
    size_t block_tokens = 128;
    size_t top_k = 16;
    size_t n_init = 0;
    size_t n_local = 1;
    std::vector<uint8_t> banned = {};
};

std::vector<int32_t> select(const KernelTable& k,
                            const std::vector<float>& scores,
                            const Choice& choice) {
    std::vector<int32_t> ids(choice.top_k, -7);
    k.select_blocks({.scores = scores.data(),
                     .n_blocks = scores.size(),
                     .n_tokens = 1,
                     .first_pos = choice.pos,
                     .n_heads = 1,
                     .block_tokens = choice.block_tokens,
                     .top_k = choice.top_k,
                     .n_init = choice.n_init,
                     .n_local = choice.n_local,
                     .banned = choice.banned.empty() ? nullptr : choice.banned.data(),
                     .ids = ids.data(),
                     .token_begin = 0,
                     .token_end = 1});
    return ids;
}

std::vector<int32_t> range(int32_t begin, int32_t end) {
    std::vector<int32_t> ids(static_cast<size_t>(end - begin));
    std::iota(ids.begin(), ids.end(), begin);
    return ids;
}

TEST_P(Msa, SelectsEverythingUpToTopK) {
    for (const size_t pos : {size_t{0}, size_t{127}, size_t{128}, size_t{2047}}) {
        const size_t n_visible = pos / 128 + 1;
        std::vector<int32_t> expected = range(0, static_cast<int32_t>(n_visible));
        expected.resize(16, -1);
        EXPECT_EQ(select(table(), std::vector<float>(n_visible, kNaN), {.pos = pos}), expected);
    }
}

TEST_P(Msa, DropsTheWorstBlockFromPosition2048On) {
    std::vector<float> scores(17, 1);
    scores[5] = 0;
    scores[16] = -100;  // the token's own
    std::vector<int32_t> expected = range(0, 17);
    expected.erase(expected.begin() + 5);
    EXPECT_EQ(select(table(), scores, {.pos = 2048}), expected);
}

TEST_P(Msa, OwnBlockTakesAPlaceWhateverItsScore) {
    for (const size_t offset : {size_t{0}, size_t{1}, size_t{126}, size_t{127}}) {
        std::vector<float> scores(40);
        for (size_t i = 0; i < scores.size(); ++i) {
            scores[i] = static_cast<float>(i % 20);  // twice each of 0..19
        }
        scores[39] = -kInfinity;
        std::vector<int32_t> ids = select(table(), scores, {.pos = 39 * 128 + offset});
        // The best of 0..38: 19 once, 18..13 twice is 13; then the lower ids of 12 twice are one
        // too many.
        const std::vector<int32_t> expected = {12, 13, 14, 15, 16, 17, 18, 19,
                                               32, 33, 34, 35, 36, 37, 38, 39};
        EXPECT_EQ(ids, expected);
    }
}

TEST_P(Msa, TiesGoToLowerIds) {
    std::vector<int32_t> first = range(0, 15);
    first.push_back(99);
    EXPECT_EQ(select(table(), std::vector<float>(100, 2.5F), {.pos = 99 * 128}), first);
    std::vector<float> scores(100, 2);
    std::fill(scores.begin() + 50, scores.begin() + 60, 3.0F);
    std::vector<int32_t> straddling = range(0, 5);
    const std::vector<int32_t> best = range(50, 60);
    straddling.insert(straddling.end(), best.begin(), best.end());
    straddling.push_back(99);
    EXPECT_EQ(select(table(), scores, {.pos = 99 * 128}), straddling);
    std::vector<float> zeros(100, 0.0F);
    zeros[3] = -0.0F;
    EXPECT_EQ(select(table(), zeros, {.pos = 99 * 128}), first);
}

TEST_P(Msa, NaNScoresComeLast) {
    std::vector<float> scores(30, -5);
    scores[4] = kNaN;
    const std::vector<int32_t> ids = select(table(), scores, {.pos = 29 * 128});
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 4), 0);
    EXPECT_EQ(ids.back(), 29);
}

TEST_P(Msa, InitAndLocalBlocksAreForcedWithoutDuplicates) {
    std::vector<float> scores(20, 0);
    scores[7] = 5;
    const Choice choice{
        .pos = 19 * 8 + 3, .block_tokens = 8, .top_k = 5, .n_init = 1, .n_local = 2};
    EXPECT_EQ(select(table(), scores, choice), (std::vector<int32_t>{0, 1, 7, 18, 19}));
    const Choice few{.pos = 8, .block_tokens = 8, .top_k = 5, .n_init = 1, .n_local = 2};
    EXPECT_EQ(select(table(), {0, 0}, few), (std::vector<int32_t>{0, 1, -1, -1, -1}));
}

TEST_P(Msa, BannedBlocksAreLeftOutExceptTheOwn) {
    std::vector<uint8_t> banned(20, 1);
    banned[3] = 0;
    const Choice choice{
        .pos = 19 * 8, .block_tokens = 8, .top_k = 4, .n_init = 1, .n_local = 1, .banned = banned};
    EXPECT_EQ(select(table(), std::vector<float>(20, 1), choice),
              (std::vector<int32_t>{3, 19, -1, -1}));
}

BV_FOR_EVERY_ISA(Msa);

}  // namespace
}  // namespace belvedere::kernels
