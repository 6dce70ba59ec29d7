// SPDX-License-Identifier: Apache-2.0
// Attention over pages against the scalar version, and that against a short f64 version of its own.

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <tuple>

#include "tests/kernels/kernel_test.h"

namespace belvedere::kernels {
namespace {

enum class PassTable { Prompt, Generation };

struct Scene {
    CacheType type;
    size_t n_tokens;
    size_t first_pos;
    size_t n_heads;
    size_t n_kv_heads;
    size_t head_dim;
};

/// Queries and a paged cache filled with keys and values up to the last position, and with poison
/// behind it.
struct Input {
    std::vector<float> q;
    std::vector<float> k;  ///< [n_positions, n_kv_heads, head_dim]
    std::vector<float> v;
    std::vector<std::vector<uint8_t>> pages;
    std::vector<const void*> k_pages;
    std::vector<const void*> v_pages;
};

void putVector(const Scene& scene, const float* from, void* page, size_t head, size_t slot) {
    const size_t at = (head * kPageTokens + slot) * cacheRowBytes(scene.type, scene.head_dim);
    tableFor(Isa::Scalar)
        ->to_cache(scene.type, from, static_cast<uint8_t*>(page) + at, scene.head_dim);
}

Input makeInput(const Scene& scene, float poison) {
    Input in;
    Random random(scene.n_tokens * 1000 + scene.first_pos + scene.head_dim);
    const size_t n_positions = scene.first_pos + scene.n_tokens;
    in.q = random.normals(scene.n_tokens * scene.n_heads * scene.head_dim);
    in.k = random.normals(n_positions * scene.n_kv_heads * scene.head_dim);
    in.v = random.normals(in.k.size());
    const std::vector<float> bad(scene.head_dim, poison);
    const size_t row_bytes = cacheRowBytes(scene.type, scene.head_dim);
    const size_t n_pages = (n_positions + kPageTokens - 1) / kPageTokens;
    for (const std::vector<float>* values : {&in.k, &in.v}) {
        for (size_t page = 0; page < n_pages; ++page) {
            auto& bytes = in.pages.emplace_back(scene.n_kv_heads * kPageTokens *
                                                cacheRowBytes(scene.type, scene.head_dim));
            for (size_t slot = 0; slot < kPageTokens; ++slot) {
                for (size_t head = 0; head < scene.n_kv_heads; ++head) {
                    const size_t pos = page * kPageTokens + slot;
                    const float* from =
                        pos < n_positions
                            ? values->data() + (pos * scene.n_kv_heads + head) * scene.head_dim
                            : bad.data();
                    putVector(scene, from, bytes.data(), head, slot);
                    if (scene.type == CacheType::Q8_0 && pos >= n_positions && poison != 0) {
                        // Scales that are NaN.
                        uint8_t* row = bytes.data() + (head * kPageTokens + slot) * row_bytes;
                        std::fill(row + cacheScalesBegin(scene.head_dim), row + row_bytes, 0xff);
                    }
                }
            }
            (values == &in.k ? in.k_pages : in.v_pages).push_back(bytes.data());
        }
    }
    return in;
}

/// Blocks chosen for each token and KV head, and how the keys are split.
struct Choice {
    std::vector<int32_t> ids;
    size_t top_k = 0;
    size_t block_tokens = 0;
    size_t n_splits = 1;
    size_t split_keys = 0;  ///< 0: ranges of about equal length
    size_t n_keys = 0;
};

std::vector<float> attend(const KernelTable& k,
                          const Scene& scene,
                          const Input& in,
                          bool exact,
                          size_t items_per_call,
                          const Choice& choice = {}) {
    const size_t stride = scene.n_heads * scene.head_dim;
    std::vector<float> out(scene.n_tokens * stride, -9);
    std::vector<float> scratch(
        k.attend_scratch_floats(scene.n_heads, scene.n_kv_heads, scene.head_dim));
    const size_t tile = k.attend_token_tile(scene.n_tokens);
    const size_t n_items = (scene.n_tokens + tile - 1) / tile * choice.n_splits * scene.n_kv_heads;
    const size_t n_rows = scene.n_tokens * scene.n_heads;
    const size_t n_positions = scene.first_pos + scene.n_tokens;
    std::vector<float> partials(choice.n_splits * n_rows * (scene.head_dim + kPartialFacts), -9);
    Attend args = {.type = scene.type,
                   .q = in.q.data(),
                   .q_stride = stride,
                   .k_pages = in.k_pages.data(),
                   .v_pages = in.v_pages.data(),
                   .out = out.data(),
                   .out_stride = stride,
                   .n_tokens = scene.n_tokens,
                   .first_pos = scene.first_pos,
                   .n_heads = scene.n_heads,
                   .n_kv_heads = scene.n_kv_heads,
                   .head_dim = scene.head_dim,
                   .scale = 1.0F / std::sqrt(static_cast<float>(scene.head_dim)),
                   .exact = exact,
                   .scratch = scratch.data(),
                   .item_begin = 0,
                   .item_end = 0,
                   .blocks = choice.ids.empty() ? nullptr : choice.ids.data(),
                   .top_k = choice.top_k,
                   .block_tokens = choice.block_tokens,
                   .n_splits = choice.n_splits,
                   .split_keys = choice.split_keys > 0
                                     ? choice.split_keys
                                     : (n_positions / choice.n_splits + 64) / 64 * 64,
                   .n_keys = choice.n_keys,
                   .partials = partials.data()};
    for (size_t begin = 0; begin < n_items; begin += items_per_call) {
        args.item_begin = begin;
        args.item_end = std::min(begin + items_per_call, n_items);
        k.attend(args);
    }
    if (choice.n_splits > 1) {
        k.merge_attend(args, 0, n_rows / 2);
        k.merge_attend(args, n_rows / 2, n_rows);
    }
    return out;
}

/// With the table for prompts and with the one for generation.
class Attention : public ::testing::TestWithParam<std::tuple<Isa, PassTable>> {
  protected:
    void SetUp() override {
        const auto [isa, pass] = GetParam();
        table_ = testedTable(isa);
        if (table_ == nullptr) {
            GTEST_SKIP() << "this machine cannot run " << isaName(isa);
        }
        if (pass == PassTable::Generation) {
            table_ = &generationTable(*table_);
        }
    }

    [[nodiscard]] const KernelTable& table() const { return *table_; }

    [[nodiscard]] static const KernelTable& scalar() { return *tableFor(Isa::Scalar); }

    /// Whether the fast way may round queries, keys and values to bf16.
    [[nodiscard]] static bool mayRound() { return std::get<Isa>(GetParam()) >= Isa::Avx512; }

  private:
    const KernelTable* table_ = nullptr;
};

std::vector<Scene> scenes() {
    std::vector<Scene> all;
    for (const CacheType type :
         {CacheType::F32, CacheType::F16, CacheType::BF16, CacheType::Q8_0}) {
        all.push_back({type, 1, 0, 2, 1, 16});     // the first token of all
        all.push_back({type, 1, 300, 9, 3, 64});   // generation
        all.push_back({type, 70, 0, 9, 3, 64});    // a prompt
        all.push_back({type, 37, 120, 4, 2, 40});  // across a page, head_dim off the vector
        all.push_back({type, 3, 127, 6, 1, 80});   // the last slot of a page
        all.push_back({type, 17, 64, 8, 8, 128});  // no sharing
        all.push_back({type, 5, 250, 7, 1, 8});    // seven heads on one
        all.push_back({type, 1, 333, 8, 1, 128});  // eight
        all.push_back({type, 3, 190, 24, 2, 96});  // twelve
        all.push_back({type, 2, 75, 16, 1, 64});   // sixteen
        all.push_back({type, 4, 60, 5, 1, 32});    // five
        all.push_back({type, 2, 130, 2, 2, 20});   // head_dim off every vector
    }
    return all;
}

TEST_P(Attention, MatchesTheScalarVersion) {
    for (const Scene& scene : scenes()) {
        SCOPED_TRACE(::testing::Message()
                     << "type " << static_cast<int>(scene.type) << " tokens " << scene.n_tokens
                     << " after " << scene.first_pos << " head_dim " << scene.head_dim);
        const Input in = makeInput(scene, 0);
        const std::vector<float> expected = attend(scalar(), scene, in, true, 1000);
        EXPECT_NMSE_BELOW(attend(table(), scene, in, true, 1000), expected, 1e-11);
        EXPECT_NMSE_BELOW(attend(table(), scene, in, false, 1000), expected,
                          mayRound() ? 5e-5 : 2e-5);
    }
}

TEST_P(Attention, NeverReadsBehindTheLastPosition) {
    for (const float poison :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30F}) {
        for (const Scene& scene : scenes()) {
            const Input clean = makeInput(scene, 0);
            const Input poisoned = makeInput(scene, poison);
            for (const bool exact : {true, false}) {
                EXPECT_EQ(attend(table(), scene, clean, exact, 1000),
                          attend(table(), scene, poisoned, exact, 1000))
                    << poison << ' ' << scene.first_pos;
            }
        }
    }
}

TEST_P(Attention, ResultHasTheSameBitsHoweverItemsAreSliced) {
    const Scene scene{CacheType::F16, 40, 100, 6, 3, 64};
    const Input in = makeInput(scene, 0);
    EXPECT_EQ(attend(table(), scene, in, false, 1), attend(table(), scene, in, false, 1000));
}

// A token sees itself and what came before: changing what comes after must not change it.
TEST_P(Attention, IsCausal) {
    Scene scene{CacheType::F16, 50, 30, 6, 3, 64};
    const Input longer = makeInput(scene, 0);
    const std::vector<float> all = attend(table(), scene, longer, true, 1000);
    Input changed = longer;
    for (const void* page : changed.v_pages) {
        const std::vector<float> big(scene.head_dim, 50);
        for (size_t head = 0; head < scene.n_kv_heads; ++head) {
            putVector(scene, big.data(), const_cast<void*>(page), head, 60);
        }
    }
    const std::vector<float> after = attend(table(), scene, changed, true, 1000);
    const size_t stride = scene.n_heads * scene.head_dim;
    for (size_t t = 0; t < scene.n_tokens; ++t) {
        const auto row = [&](const std::vector<float>& v) {
            return std::vector<float>(v.begin() + static_cast<std::ptrdiff_t>(t * stride),
                                      v.begin() + static_cast<std::ptrdiff_t>((t + 1) * stride));
        };
        EXPECT_EQ(row(all) == row(after), scene.first_pos + t < 60) << t;
    }
}

/// As the last query of a causal run over the same keys does.
TEST_P(Attention, EveryQuerySeesAllKeysWhereTheirNumberIsGiven) {
    for (const size_t n : {size_t{1}, size_t{3}, size_t{40}, size_t{64}, size_t{129}}) {
        for (const CacheType type : {CacheType::F32, CacheType::F16}) {
            const Scene scene{type, n, 0, 2, 2, 80};
            const Input in = makeInput(scene, std::numeric_limits<float>::quiet_NaN());
            Choice choice;
            choice.n_keys = n;
            const std::vector<float> all = attend(table(), scene, in, true, 1, choice);
            for (const size_t t : {size_t{0}, n / 2, n - 1}) {
                Input one = in;
                one.q.assign(in.q.begin() + static_cast<std::ptrdiff_t>(t * 160),
                             in.q.begin() + static_cast<std::ptrdiff_t>((t + 1) * 160));
                const std::vector<float> expected =
                    attend(scalar(), {type, 1, n - 1, 2, 2, 80}, one, true, 1);
                const auto row = all.begin() + static_cast<std::ptrdiff_t>(t * 160);
                EXPECT_NMSE_BELOW(std::vector<float>(row, row + 160), expected, 1e-11);
            }
        }
    }
}

TEST_P(Attention, LargeScoresDoNotOverflow) {
    const Scene scene{CacheType::F32, 4, 90, 2, 1, 32};
    Input in = makeInput(scene, 0);
    for (float& value : in.q) {
        value *= 3000;
    }
    EXPECT_NMSE_BELOW(attend(table(), scene, in, true, 1000),
                      attend(scalar(), scene, in, true, 1000), 1e-5);
}

/// A random choice: each token's own block, and others it sees, ascending.
Choice randomChoice(const Scene& scene, size_t block_tokens, size_t top_k) {
    Choice choice{{}, top_k, block_tokens, 1};
    Random random(block_tokens + scene.first_pos);
    for (size_t t = 0; t < scene.n_tokens; ++t) {
        const size_t own = (scene.first_pos + t) / block_tokens;
        for (size_t head = 0; head < scene.n_kv_heads; ++head) {
            std::set<int32_t> ids = {static_cast<int32_t>(own)};
            for (size_t i = 1; i < top_k; ++i) {
                ids.insert(static_cast<int32_t>(random.below(own + 1)));
            }
            choice.ids.insert(choice.ids.end(), ids.begin(), ids.end());
            choice.ids.resize((t * scene.n_kv_heads + head + 1) * top_k, -1);
        }
    }
    return choice;
}

TEST_P(Attention, OverChosenBlocksMatchesTheScalarVersion) {
    // One element type a block size: all pairs would take minutes under a sanitizer.
    const std::pair<size_t, CacheType> kinds[] = {{8, CacheType::F32},
                                                  {16, CacheType::F16},
                                                  {128, CacheType::BF16},
                                                  {256, CacheType::F16},
                                                  {128, CacheType::Q8_0}};
    for (const auto& [block_tokens, type] : kinds) {
        for (Scene scene : scenes()) {
            if (scene.type != type) {
                continue;
            }
            scene.first_pos += 400;
            const Input in = makeInput(scene, std::numeric_limits<float>::quiet_NaN());
            Choice choice = randomChoice(scene, block_tokens, 4);
            const std::vector<float> expected = attend(scalar(), scene, in, true, 1000, choice);
            EXPECT_NMSE_BELOW(attend(table(), scene, in, true, 1000, choice), expected, 1e-11);
            choice.n_splits = 3;
            EXPECT_NMSE_BELOW(attend(table(), scene, in, true, 1, choice), expected, 1e-11);
        }
    }
}

TEST_P(Attention, OverAllBlocksIsDense) {
    for (const Scene& scene : scenes()) {
        const Input in = makeInput(scene, 0);
        const size_t n_blocks = (scene.first_pos + scene.n_tokens + 15) / 16;
        Choice choice{{}, n_blocks, 16, 1};
        for (size_t t = 0; t < scene.n_tokens; ++t) {
            const size_t own = (scene.first_pos + t) / 16;
            for (size_t head = 0; head < scene.n_kv_heads; ++head) {
                for (size_t block = 0; block < n_blocks; ++block) {
                    choice.ids.push_back(block <= own ? static_cast<int32_t>(block) : -1);
                }
            }
        }
        EXPECT_NMSE_BELOW(attend(table(), scene, in, true, 1000, choice),
                          attend(scalar(), scene, in, true, 1000), 1e-11);
    }
}

TEST_P(Attention, SplitsOfKeysJoinToTheWhole) {
    for (const Scene& scene : scenes()) {
        const Input in = makeInput(scene, std::numeric_limits<float>::quiet_NaN());
        const std::vector<float> expected = attend(scalar(), scene, in, true, 1000);
        for (const size_t n_splits : {size_t{2}, size_t{5}, size_t{16}}) {
            const Choice choice{{}, 0, 0, n_splits};
            EXPECT_NMSE_BELOW(attend(table(), scene, in, true, 2, choice), expected, 1e-11);
        }
    }
}

/// kIndependentTokens: what drafts and forks rest on.
TEST_P(Attention, ATokenHasTheSameBitsAloneAndInABatch) {
    for (Scene scene : scenes()) {
        scene.n_tokens = kIndependentTokens;
        scene.first_pos += 505;
        const Input in = makeInput(scene, std::numeric_limits<float>::quiet_NaN());
        for (Choice choice : {Choice{}, randomChoice(scene, 16, 5)}) {
            choice.n_splits = choice.ids.empty() ? 16 : 1;
            choice.split_keys = 128;
            const std::vector<float> all = attend(table(), scene, in, false, 3, choice);
            for (size_t t = 0; t < scene.n_tokens; ++t) {
                Scene one = scene;
                one.n_tokens = 1;
                one.first_pos += t;
                const size_t n = scene.n_heads * scene.head_dim;
                Input alone = in;
                alone.q.assign(in.q.begin() + static_cast<std::ptrdiff_t>(t * n),
                               in.q.begin() + static_cast<std::ptrdiff_t>((t + 1) * n));
                Choice own = choice;
                if (!choice.ids.empty()) {
                    const size_t n_ids = scene.n_kv_heads * choice.top_k;
                    own.ids.assign(
                        choice.ids.begin() + static_cast<std::ptrdiff_t>(t * n_ids),
                        choice.ids.begin() + static_cast<std::ptrdiff_t>((t + 1) * n_ids));
                }
                EXPECT_EQ(attend(table(), one, alone, false, 1, own),
                          std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(t * n),
                                             all.begin() + static_cast<std::ptrdiff_t>(t * n + n)))
                    << "token " << t << " head_dim " << scene.head_dim;
            }
        }
    }
}

/// How far the rounding of the cache moves the result from that of an f32 cache.
TEST_P(Attention, SmallerElementsStayNearF32) {
    const std::pair<CacheType, double> kinds[] = {
        {CacheType::F16, 1e-6}, {CacheType::BF16, 5e-5}, {CacheType::Q8_0, 1e-4}};
    for (const auto& [type, tolerance] : kinds) {
        for (Scene scene : scenes()) {
            if (scene.type != CacheType::F32) {
                continue;
            }
            const std::vector<float> expected =
                attend(table(), scene, makeInput(scene, 0), true, 1000);
            scene.type = type;
            EXPECT_NMSE_BELOW(attend(table(), scene, makeInput(scene, 0), true, 1000), expected,
                              tolerance);
        }
    }
}

std::string caseName(const ::testing::TestParamInfo<std::tuple<Isa, PassTable>>& info) {
    const bool is_prompt = std::get<PassTable>(info.param) == PassTable::Prompt;
    return std::string(isaName(std::get<Isa>(info.param))) + (is_prompt ? "" : "_generation");
}

/// The table for generation is another one from AVX-512 on.
std::vector<std::tuple<Isa, PassTable>> testedCases() {
    std::vector<std::tuple<Isa, PassTable>> cases;
    for (const Isa isa : testedIsas()) {
        cases.emplace_back(isa, PassTable::Prompt);
        if (isa == Isa::Avx512) {
            cases.emplace_back(isa, PassTable::Generation);
        }
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Isa, Attention, ::testing::ValuesIn(testedCases()), caseName);

// The definition itself, once more and shorter.
TEST(ScalarAttention, IsASoftmaxWeightedMean) {
    const Scene scene{CacheType::F32, 3, 5, 4, 2, 8};
    const Input in = makeInput(scene, 0);
    const std::vector<float> out = attend(*tableFor(Isa::Scalar), scene, in, true, 1000);
    for (size_t t = 0; t < scene.n_tokens; ++t) {
        for (size_t h = 0; h < scene.n_heads; ++h) {
            std::vector<double> expected(scene.head_dim, 0);
            double total = 0;
            const size_t n = scene.first_pos + t + 1;
            for (size_t pos = 0; pos < n; ++pos) {
                const size_t at = (pos * scene.n_kv_heads + h / 2) * scene.head_dim;
                double score = 0;
                for (size_t i = 0; i < scene.head_dim; ++i) {
                    score +=
                        static_cast<double>(in.q[(t * scene.n_heads + h) * scene.head_dim + i]) *
                        static_cast<double>(in.k[at + i]);
                }
                const double weight = std::exp(score / std::sqrt(8.0));
                total += weight;
                for (size_t i = 0; i < scene.head_dim; ++i) {
                    expected[i] += weight * static_cast<double>(in.v[at + i]);
                }
            }
            for (size_t i = 0; i < scene.head_dim; ++i) {
                const float actual = out[(t * scene.n_heads + h) * scene.head_dim + i];
                EXPECT_NEAR(static_cast<double>(actual), expected[i] / total, 1e-5);
            }
        }
    }
}

}  // namespace
}  // namespace belvedere::kernels
