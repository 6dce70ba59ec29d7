// SPDX-License-Identifier: Apache-2.0
// Norm, RoPE, SwiGLU, addition, cache conversion and arg max at every length up to twice the widest
// vector and a few more, at three misalignments of each pointer, against the scalar version (sums
// in f64).

#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/kernel_test.h"

namespace belvedere::kernels {
namespace {

constexpr size_t kMaxLength = 70;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Calls work(n, offset_a, offset_b) for every length and misalignment (in elements).
template <class Work>
void forEveryLength(Work work) {
    for (size_t n = 0; n <= kMaxLength; ++n) {
        for (const size_t a : {0U, 1U, 3U}) {
            for (const size_t b : {0U, 1U, 3U}) {
                work(n, a, b);
            }
        }
    }
}

class Elementwise : public KernelTest {};

TEST_P(Elementwise, RmsNorm) {
    const std::vector<float> x = Random(1).normals(400);
    const std::vector<float> weight = Random(2).normals(100);
    forEveryLength([&](size_t n, size_t a, size_t b) {
        if (n == 0) {
            return;
        }
        std::vector<float> actual(400, -7);
        std::vector<float> expected(400, -7);
        for (const auto& [k, out] :
             {std::pair(&table(), &actual), std::pair(&scalar(), &expected)}) {
            k->rms_norm(x.data() + a, 90, weight.data() + b, out->data() + b, 80, 3, n, 1e-5F);
        }
        EXPECT_NMSE_BELOW(actual, expected, 1e-12);
    });
}

TEST_P(Elementwise, RmsNormInPlaceAndOfZeros) {
    std::vector<float> x = Random(3).normals(576);
    const std::vector<float> weight = Random(4).normals(576);
    std::vector<float> expected(576);
    scalar().rms_norm(x.data(), 576, weight.data(), expected.data(), 576, 1, 576, 1e-6F);
    table().rms_norm(x.data(), 576, weight.data(), x.data(), 576, 1, 576, 1e-6F);
    EXPECT_NMSE_BELOW(x, expected, 1e-12);
    std::vector<float> zeros(576, 0);
    table().rms_norm(zeros.data(), 576, weight.data(), zeros.data(), 576, 1, 576, 1e-6F);
    EXPECT_EQ(zeros, std::vector<float>(576, 0));
}

TEST_P(Elementwise, RopeBothPairings) {
    for (size_t n_pairs = 0; n_pairs <= 36; ++n_pairs) {
        const size_t head_dim = 2 * n_pairs + 5;  // the last five pass through
        const size_t stride = 3 * head_dim + 2;
        const std::vector<float> x = Random(n_pairs).normals(2 * stride);
        const std::vector<float> cos = Random(n_pairs + 50).normals(2 * n_pairs + 1);
        const std::vector<float> sin = Random(n_pairs + 90).normals(2 * n_pairs + 1);
        std::vector<float> a = x;
        std::vector<float> b = x;
        table().rope_adjacent(a.data(), stride, cos.data(), sin.data(), 2, 3, head_dim, n_pairs);
        scalar().rope_adjacent(b.data(), stride, cos.data(), sin.data(), 2, 3, head_dim, n_pairs);
        EXPECT_NMSE_BELOW(a, b, 1e-12);
        a = x;
        b = x;
        table().rope_half_split(a.data(), stride, cos.data(), sin.data(), 2, 3, head_dim, n_pairs);
        scalar().rope_half_split(b.data(), stride, cos.data(), sin.data(), 2, 3, head_dim, n_pairs);
        EXPECT_NMSE_BELOW(a, b, 1e-12);
        for (size_t i = 2 * n_pairs; i < head_dim; ++i) {
            EXPECT_EQ(a[i], x[i]);
        }
    }
}

TEST_P(Elementwise, RopeOfAKnownAngle) {
    const float cos[2] = {0, 1};  // a quarter turn, then none
    const float sin[2] = {1, 0};
    float adjacent[4] = {1, 2, 3, 4};
    table().rope_adjacent(adjacent, 4, cos, sin, 1, 1, 4, 2);
    EXPECT_EQ(std::vector<float>(adjacent, adjacent + 4), (std::vector<float>{-2, 1, 3, 4}));
    float halves[4] = {1, 2, 3, 4};
    table().rope_half_split(halves, 4, cos, sin, 1, 1, 4, 2);
    EXPECT_EQ(std::vector<float>(halves, halves + 4), (std::vector<float>{-3, 2, 1, 4}));
}

TEST_P(Elementwise, Swiglu) {
    const std::vector<float> gate = Random(5).normals(100);
    const std::vector<float> up = Random(6).normals(100);
    forEveryLength([&](size_t n, size_t a, size_t b) {
        std::vector<float> actual(100, -7);
        std::vector<float> expected(100, -7);
        table().swiglu(gate.data() + a, up.data() + b, actual.data() + b, n);
        scalar().swiglu(gate.data() + a, up.data() + b, expected.data() + b, n);
        EXPECT_NMSE_BELOW(actual, expected, 1e-12);
    });
}

TEST_P(Elementwise, SwigluOverTheWholeRange) {
    std::vector<float> gate;
    for (float x = -120; x < 120; x += 0.37F) {
        gate.push_back(x);
    }
    for (const float x : {0.0F, -0.0F, 1e-40F, -1e30F, 1e30F}) {
        gate.push_back(x);
    }
    const std::vector<float> up(gate.size(), 1);
    std::vector<float> actual(gate.size());
    table().swiglu(gate.data(), up.data(), actual.data(), gate.size());
    for (size_t i = 0; i < gate.size(); ++i) {
        const auto g = static_cast<double>(gate[i]);
        const double expected = g / (1 + std::exp(-g));
        EXPECT_NEAR(static_cast<double>(actual[i]), expected, 1e-6 * std::fabs(expected) + 1e-36)
            << g;
    }
    std::vector<float> nan(20, kNaN);
    table().swiglu(nan.data(), nan.data(), nan.data(), nan.size());
    EXPECT_TRUE(std::isnan(nan[0]) && std::isnan(nan[19]));
}

TEST_P(Elementwise, SwigluOaiClampsGateAboveAndUpOnBothSides) {
    std::vector<float> gate;
    std::vector<float> up;
    for (const float g : {-200.0F, -20.0F, -1.0F, 0.0F, 0.5F, 6.9F, 7.0F, 7.1F, 20.0F, 1e30F}) {
        for (const float u : {-20.0F, -7.0F, -1.0F, 0.0F, 0.3F, 6.9F, 7.0F, 20.0F}) {
            gate.push_back(g);
            up.push_back(u);
        }
    }
    std::vector<float> actual(gate.size());
    table().swiglu_oai(gate.data(), up.data(), actual.data(), gate.size(), 1.702F, 7.0F);
    for (size_t i = 0; i < gate.size(); ++i) {
        const auto g = std::min(static_cast<double>(gate[i]), 7.0);
        const auto u = std::clamp(static_cast<double>(up[i]), -7.0, 7.0);
        const double expected = (u + 1) * g / (1 + std::exp(-static_cast<double>(1.702F) * g));
        EXPECT_NEAR(static_cast<double>(actual[i]), expected, 1e-6 * std::fabs(expected) + 1e-30)
            << gate[i] << ' ' << up[i];
    }
    std::vector<float> nan(20, kNaN);
    table().swiglu_oai(nan.data(), actual.data(), actual.data(), nan.size(), 1.702F, 7.0F);
    EXPECT_TRUE(std::isnan(actual[0]) && std::isnan(actual[19]));
}

TEST_P(Elementwise, SwigluOaiAtEveryLength) {
    const std::vector<float> gate = Random(11).normals(100);
    const std::vector<float> up = Random(12).normals(100);
    forEveryLength([&](size_t n, size_t a, size_t b) {
        std::vector<float> actual(100, -7);
        std::vector<float> expected(100, -7);
        table().swiglu_oai(gate.data() + a, up.data() + b, actual.data() + b, n, 1.7F, 1.5F);
        scalar().swiglu_oai(gate.data() + a, up.data() + b, expected.data() + b, n, 1.7F, 1.5F);
        EXPECT_NMSE_BELOW(actual, expected, 1e-12);
    });
}

TEST_P(Elementwise, Add) {
    const std::vector<float> src = Random(7).normals(100);
    const std::vector<float> before = Random(8).normals(100);
    forEveryLength([&](size_t n, size_t a, size_t b) {
        std::vector<float> actual = before;
        std::vector<float> expected = before;
        table().add(actual.data() + a, src.data() + b, n);
        scalar().add(expected.data() + a, src.data() + b, n);
        EXPECT_EQ(actual, expected);
    });
}

TEST_P(Elementwise, CacheConversionBitForBit) {
    std::vector<float> src;
    Random random(9);
    for (size_t i = 0; i < 4000; ++i) {
        src.push_back(std::bit_cast<float>(random.bits() << 16 | (random.bits() & 0xffffU)));
    }
    for (const float special : {0.0F, -0.0F, kInfinity, -kInfinity, kNaN, 65504.0F, 65520.0F,
                                1e-40F, 0x1p-25F, 0x1.8p-25F, 6e-8F}) {
        src.push_back(special);
    }
    for (const CacheType type :
         {CacheType::F32, CacheType::F16, CacheType::BF16, CacheType::Q8_0}) {
        const size_t bytes = type == CacheType::Q8_0 ? 2 : cacheRowBytes(type, 1);
        std::vector<uint8_t> actual(cacheRowBytes(type, src.size()));
        std::vector<uint8_t> expected(actual.size());
        table().to_cache(type, src.data(), actual.data(), src.size());
        scalar().to_cache(type, src.data(), expected.data(), src.size());
        EXPECT_EQ(actual, expected) << static_cast<int>(type);
        forEveryLength([&](size_t n, size_t a, size_t b) {
            std::vector<uint8_t> some(400, 0xee);
            std::vector<uint8_t> want(400, 0xee);
            table().to_cache(type, src.data() + a, some.data() + b * bytes, n);
            scalar().to_cache(type, src.data() + a, want.data() + b * bytes, n);
            EXPECT_EQ(some, want);
        });
    }
}

/// A row of Q8_0 by hand: half a step is the most that an element moves, and nothing overflows.
TEST_P(Elementwise, Q8CacheRowsHaveAScaleForEach32Elements) {
    constexpr size_t kElements = 72;
    Random random(3);
    std::vector<float> src = random.normals(kElements);
    src[40] = 1e30F;
    std::vector<uint8_t> row(cacheRowBytes(CacheType::Q8_0, kElements));
    ASSERT_EQ(row.size(), kElements + 3 * 2);
    table().to_cache(CacheType::Q8_0, src.data(), row.data(), kElements);
    for (size_t block = 0; block < 3; ++block) {
        uint16_t bits = 0;
        std::memcpy(&bits, &row[kElements + 2 * block], 2);
        float scale = 0;
        table().dequantize(WeightType::F16, &bits, &scale, 1);
        EXPECT_TRUE(std::isfinite(scale));
        for (size_t i = 32 * block; i < std::min<size_t>(kElements, 32 * block + 32); ++i) {
            const float value = static_cast<float>(static_cast<int8_t>(row[i])) * scale;
            if (block == 1) {
                EXPECT_EQ(static_cast<int8_t>(row[i]), i == 40 ? 127 : 0) << i;
            } else {
                EXPECT_NEAR(value, src[i], scale * 0.56F) << i;  // the scale itself is rounded
            }
        }
    }
    const std::vector<float> zeros(kElements, 0.0F);
    table().to_cache(CacheType::Q8_0, zeros.data(), row.data(), kElements);
    EXPECT_EQ(row, std::vector<uint8_t>(row.size(), 0));
}

TEST_P(Elementwise, ArgMaxFindsTheFirstOfTheLargest) {
    for (size_t n = 1; n <= kMaxLength; ++n) {
        for (size_t at = 0; at < n; ++at) {
            std::vector<float> x(n, -3);
            x[at] = -1;
            x[n - 1] = -1;  // a tie, unless it is the same
            EXPECT_EQ(table().arg_max(x.data(), n), at);
        }
    }
    const std::vector<float> lowest(33, -kInfinity);
    EXPECT_EQ(table().arg_max(lowest.data(), lowest.size()), 0U);
}

TEST_P(Elementwise, ArgMaxPassesOverNaN) {
    for (size_t n = 2; n <= kMaxLength; ++n) {
        std::vector<float> x(n, kNaN);
        EXPECT_EQ(table().arg_max(x.data(), n), 0U);
        x[n - 1] = -kInfinity;
        EXPECT_EQ(table().arg_max(x.data(), n), n - 1);
        x[n / 2] = 5;
        EXPECT_EQ(table().arg_max(x.data(), n), n / 2);
    }
}

BV_FOR_EVERY_ISA(Elementwise);

}  // namespace
}  // namespace belvedere::kernels
