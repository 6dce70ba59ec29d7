// SPDX-License-Identifier: Apache-2.0
// Matrix products of every weight type, exact and fast, against sums in f64.

#include <cmath>
#include <limits>

#include "kernels/base/thread_pool.h"
#include "tests/kernels/kernel_test.h"

namespace belvedere::kernels {
namespace {

/// Sizes of one product; strides larger than the rows, so that a write outside shows.
struct Shape {
    size_t n_rows;
    size_t n_cols;
    size_t n_tokens;

    size_t xStride() const { return n_cols + 5; }

    size_t outStride() const { return n_rows + 3; }
};

constexpr float kUntouched = -12345.0F;

std::vector<float> decoded(WeightType type, const std::vector<uint8_t>& w, const Shape& shape) {
    std::vector<float> values(shape.n_rows * shape.n_cols);
    tableFor(Isa::Scalar)->dequantize(type, w.data(), values.data(), values.size());
    return values;
}

/// out[t, r] in f64, with `kUntouched` in the gaps.
std::vector<float> reference(const std::vector<float>& w,
                             const std::vector<float>& x,
                             const Shape& shape) {
    std::vector<float> out(shape.n_tokens * shape.outStride(), kUntouched);
    for (size_t t = 0; t < shape.n_tokens; ++t) {
        for (size_t r = 0; r < shape.n_rows; ++r) {
            double sum = 0;
            for (size_t i = 0; i < shape.n_cols; ++i) {
                sum += static_cast<double>(w[r * shape.n_cols + i]) *
                       static_cast<double>(x[t * shape.xStride() + i]);
            }
            out[t * shape.outStride() + r] = static_cast<float>(sum);
        }
    }
    return out;
}

std::vector<float> multiplyExact(const KernelTable& k,
                                 WeightType type,
                                 const std::vector<uint8_t>& w,
                                 const std::vector<float>& x,
                                 const Shape& shape,
                                 size_t rows_per_call) {
    std::vector<float> out(shape.n_tokens * shape.outStride(), kUntouched);
    for (size_t begin = 0; begin < shape.n_rows; begin += rows_per_call) {
        k.mat_mul_f32({type, w.data(), shape.n_rows, shape.n_cols, x.data(), shape.xStride(),
                       out.data(), shape.outStride(), shape.n_tokens, begin,
                       std::min(begin + rows_per_call, shape.n_rows)});
    }
    return out;
}

/// Weights as mat_mul_fast wants them.
std::vector<uint8_t> packed(const KernelTable& k,
                            WeightType type,
                            const std::vector<uint8_t>& w,
                            const Shape& shape) {
    const size_t n_bytes = k.packed_bytes(type, shape.n_rows, shape.n_cols);
    if (n_bytes == 0) {
        return w;
    }
    std::vector<uint8_t> bytes(n_bytes);
    for (size_t begin = 0; begin < shape.n_rows; begin += kRowTile) {
        k.pack(type, w.data(), shape.n_rows, shape.n_cols, bytes.data(), begin,
               std::min(begin + kRowTile, shape.n_rows));
    }
    return bytes;
}

std::vector<float> multiplyFast(const KernelTable& k,
                                WeightType type,
                                const std::vector<uint8_t>& w,
                                const std::vector<float>& x,
                                const Shape& shape,
                                size_t rows_per_call) {
    const std::vector<uint8_t> weights = packed(k, type, w, shape);
    std::vector<uint8_t> activations(k.activation_bytes(type, shape.n_tokens, shape.n_cols));
    for (size_t t = 0; t < shape.n_tokens; ++t) {
        k.quantize_activations(type, x.data(), shape.xStride(), shape.n_tokens, shape.n_cols,
                               activations.data(), t, t + 1);
    }
    std::vector<float> out(shape.n_tokens * shape.outStride(), kUntouched);
    for (size_t begin = 0; begin < shape.n_rows; begin += rows_per_call) {
        k.mat_mul_fast({type, weights.data(), shape.n_rows, shape.n_cols, activations.data(),
                        out.data(), shape.outStride(), shape.n_tokens, begin,
                        std::min(begin + rows_per_call, shape.n_rows)});
    }
    return out;
}

class MatMul : public KernelTest {
  protected:
    /// Tiles of AMX take both sides as bf16; AVX-512 may with weights that are.
    static bool roundsToBFloat(WeightType type) {
        return (GetParam() == Isa::Amx && type != WeightType::F32 && type != WeightType::F16) ||
               (GetParam() == Isa::Avx512 && type == WeightType::BF16);
    }

    /// Every type, within limitOf(type) (NMSE).
    template <class LimitOf>
    void expectScalarFastWay(const KernelTable& k, size_t n_tokens, LimitOf&& limitOf) const {
        for (const WeightTypeInfo& info : kWeightTypes) {
            const Shape shape{35, 768, n_tokens};
            SCOPED_TRACE(info.name);
            const std::vector<uint8_t> w = makeWeights(info.type, shape.n_rows, shape.n_cols, 7);
            const std::vector<float> x = Random(8).normals(shape.n_tokens * shape.xStride());
            EXPECT_NMSE_BELOW(multiplyFast(k, info.type, w, x, shape, 16),
                              multiplyFast(scalar(), info.type, w, x, shape, 16),
                              limitOf(info.type));
        }
    }
};

// Rows and tokens off every tile size, one to three blocks of columns; float types also at odd
// column counts.
std::vector<Shape> shapesFor(const WeightTypeInfo& info) {
    const size_t block = info.block_elements;
    std::vector<Shape> shapes;
    for (const size_t n_tokens : {1U, 2U, 3U, 5U, 8U, 15U, 16U, 33U}) {
        shapes.push_back({19, block == 1 ? 37 : 2 * block, n_tokens});
    }
    shapes.push_back({1, block, 1});
    shapes.push_back({16, block == 1 ? 1 : 3 * block, 4});
    shapes.push_back({48, 512, 7});
    return shapes;
}

TEST_P(MatMul, ExactMatchesDoubleSumsForEveryType) {
    for (const WeightTypeInfo& info : kWeightTypes) {
        for (const Shape& shape : shapesFor(info)) {
            SCOPED_TRACE(::testing::Message() << info.name << " rows " << shape.n_rows << " cols "
                                              << shape.n_cols << " tokens " << shape.n_tokens);
            const std::vector<uint8_t> w = makeWeights(info.type, shape.n_rows, shape.n_cols, 1);
            const std::vector<float> x = Random(2).normals(shape.n_tokens * shape.xStride());
            EXPECT_NMSE_BELOW(multiplyExact(table(), info.type, w, x, shape, 16),
                              reference(decoded(info.type, w, shape), x, shape), 1e-11);
        }
    }
}

TEST_P(MatMul, ExactAddsToTheOutputWhereAsked) {
    const Shape shape{21, 64, 9};
    const std::vector<uint8_t> w = makeWeights(WeightType::F16, shape.n_rows, shape.n_cols, 3);
    const std::vector<float> x = Random(4).normals(shape.n_tokens * shape.xStride());
    std::vector<float> out(shape.n_tokens * shape.outStride(), 2.5F);
    std::vector<float> expected = reference(decoded(WeightType::F16, w, shape), x, shape);
    for (float& value : expected) {
        value = value == kUntouched ? 2.5F : value + 2.5F;
    }
    table().mat_mul_f32({WeightType::F16, w.data(), shape.n_rows, shape.n_cols, x.data(),
                         shape.xStride(), out.data(), shape.outStride(), shape.n_tokens, 0,
                         shape.n_rows, true});
    EXPECT_NMSE_BELOW(out, expected, 1e-11);
}

TEST_P(MatMul, FastStaysCloseToExactForEveryType) {
    for (const WeightTypeInfo& info : kWeightTypes) {
        for (const Shape& shape : shapesFor(info)) {
            SCOPED_TRACE(::testing::Message() << info.name << " rows " << shape.n_rows << " cols "
                                              << shape.n_cols << " tokens " << shape.n_tokens);
            const std::vector<uint8_t> w = makeWeights(info.type, shape.n_rows, shape.n_cols, 5);
            const std::vector<float> x = Random(6).normals(shape.n_tokens * shape.xStride());
            const std::vector<float> expected = reference(decoded(info.type, w, shape), x, shape);
            const std::vector<float> actual = multiplyFast(table(), info.type, w, x, shape, 16);
            // Eight-bit activations: an error of about 2^-8 of each block's largest value; few rows
            // make it uneven.
            EXPECT_NMSE_BELOW(actual, expected, shape.n_rows == 1 ? 1e-2 : 2e-4);
        }
        // Both sides as bf16: errors of 2^-9 of each value, even over many results.
        const double limit = roundsToBFloat(info.type) ? 2e-5 : 2e-4;
        for (const Shape& shape : {Shape{40, 768, 33}, Shape{100, 256, 64}}) {
            SCOPED_TRACE(info.name);
            const std::vector<uint8_t> w = makeWeights(info.type, shape.n_rows, shape.n_cols, 23);
            const std::vector<float> x = Random(24).normals(shape.n_tokens * shape.xStride());
            EXPECT_NMSE_BELOW(multiplyFast(table(), info.type, w, x, shape, 48),
                              reference(decoded(info.type, w, shape), x, shape), limit);
        }
    }
}

// Eight-bit activations are rounded alike everywhere, so the tables differ only by the order of f32
// sums; tiles take bf16.
TEST_P(MatMul, FastMatchesTheScalarFastWay) {
    expectScalarFastWay(table(), 19,
                        [](WeightType type) { return roundsToBFloat(type) ? 2e-4 : 1e-11; });
}

// Its table computes some types otherwise than the one for prompts.
TEST_P(MatMul, GenerationMatchesTheScalarFastWay) {
    expectScalarFastWay(generationTable(table()), 3, [](WeightType /*type*/) { return 1e-11; });
}

TEST_P(MatMul, ResultHasTheSameBitsHoweverRowsAreSliced) {
    for (const WeightTypeInfo& info : kWeightTypes) {
        const Shape shape{75, 512, 6};
        SCOPED_TRACE(info.name);
        const std::vector<uint8_t> w = makeWeights(info.type, shape.n_rows, shape.n_cols, 9);
        const std::vector<float> x = Random(10).normals(shape.n_tokens * shape.xStride());
        EXPECT_EQ(multiplyExact(table(), info.type, w, x, shape, 16),
                  multiplyExact(table(), info.type, w, x, shape, 80));
        EXPECT_EQ(multiplyFast(table(), info.type, w, x, shape, 16),
                  multiplyFast(table(), info.type, w, x, shape, 80));
    }
}

TEST_P(MatMul, ATokenHasTheSameBitsAloneAndInABatch) {
    for (const WeightTypeInfo& info : kWeightTypes) {
        const Shape batch{33, 1280, 23};
        SCOPED_TRACE(info.name);
        const std::vector<uint8_t> w = makeWeights(info.type, batch.n_rows, batch.n_cols, 11);
        const std::vector<float> x = Random(12).normals(batch.n_tokens * batch.xStride());
        const std::vector<float> fast = multiplyFast(table(), info.type, w, x, batch, 48);
        const std::vector<float> exact = multiplyExact(table(), info.type, w, x, batch, 48);
        for (size_t t = 0; t < batch.n_tokens; t += 3) {
            const Shape alone{batch.n_rows, batch.n_cols, 1};
            const auto row = [&](const std::vector<float>& out) {
                const auto begin = out.begin() + static_cast<std::ptrdiff_t>(t * batch.outStride());
                return std::vector<float>(begin,
                                          begin + static_cast<std::ptrdiff_t>(alone.outStride()));
            };
            const std::vector<float> one(
                x.begin() + static_cast<std::ptrdiff_t>(t * batch.xStride()),
                x.begin() + static_cast<std::ptrdiff_t>((t + 1) * batch.xStride()));
            EXPECT_EQ(row(fast), multiplyFast(table(), info.type, w, one, alone, 48));
            EXPECT_EQ(row(exact), multiplyExact(table(), info.type, w, one, alone, 48));
        }
    }
}

TEST_P(MatMul, FastReachesTheEndsOfTheIntegerRange) {
    // All weights at their largest or smallest integer and all activations at +-127: the widest
    // integer sums there can be.
    for (const WeightTypeInfo& info : kWeightTypes) {
        if (info.block_elements == 1 || info.type == WeightType::MXFP8) {
            continue;
        }
        for (const int fill : {0x00, 0xff, 0x80, 0x7f}) {
            for (const float sign : {1.0F, -1.0F}) {
                const Shape shape{16, 512, 19};
                SCOPED_TRACE(::testing::Message()
                             << info.name << " fill " << fill << " sign " << sign);
                std::vector<uint8_t> w = makeWeights(info.type, shape.n_rows, shape.n_cols, 13);
                for (size_t at = 0; at < w.size(); ++at) {
                    const size_t in_block = at % info.block_bytes;
                    const bool scale =
                        info.block_elements == 32
                            ? in_block < info.block_bytes - 16U -
                                             (info.type == WeightType::Q8_0 ? 16U : 0U)
                            : in_block < 4 || in_block >= info.block_bytes - 4U;
                    if (!scale) {
                        w[at] = static_cast<uint8_t>(fill);
                    }
                }
                const std::vector<float> x(shape.n_tokens * shape.xStride(), sign);
                const Errors errors = compare(multiplyFast(table(), info.type, w, x, shape, 16),
                                              multiplyFast(scalar(), info.type, w, x, shape, 16));
                EXPECT_LT(errors.nmse, roundsToBFloat(info.type) ? 2e-5 : 1e-9) << errors;
            }
        }
    }
}

/// Its numbers are read exactly and its activations stay f32, so the fast way is as good as the
/// exact one, at every scale; with tiles as good as bf16 activations, and numbers below the normal
/// ones count as 0.
TEST_P(MatMul, FastIsExactForMxfp8) {
    const bool has_tiles = GetParam() == Isa::Amx;
    for (const int e : {has_tiles ? 14 : 1, 20, 127, 200, 235}) {
        const Shape shape{19, 96, 5};
        std::vector<uint8_t> w = makeWeights(WeightType::MXFP8, shape.n_rows, shape.n_cols, 21);
        for (size_t at = 0; at < w.size(); at += 33) {
            w[at] = static_cast<uint8_t>(e);
        }
        const std::vector<float> x = Random(22).normals(shape.n_tokens * shape.xStride());
        SCOPED_TRACE(e);
        const Errors errors = compare(multiplyFast(table(), WeightType::MXFP8, w, x, shape, 16),
                                      reference(decoded(WeightType::MXFP8, w, shape), x, shape));
        EXPECT_LT(errors.nmse, has_tiles ? 1e-4 : 1e-11) << errors;
        EXPECT_LT(errors.largest, has_tiles ? 1e34 : 1e30) << errors;
    }
}

TEST_P(MatMul, FastActivationsOfAnySizeAndNaN) {
    const Shape shape{16, 64, 1};
    const std::vector<uint8_t> w = makeWeights(WeightType::Q4_1, shape.n_rows, shape.n_cols, 14);
    for (const float size : {0.0F, 1e-42F, 1e-30F, 1e20F}) {
        std::vector<float> x = Random(15).normals(shape.xStride());
        for (float& value : x) {
            value *= size;
        }
        const std::vector<float> out = multiplyFast(table(), WeightType::Q4_1, w, x, shape, 16);
        EXPECT_LT(compare(out, multiplyFast(scalar(), WeightType::Q4_1, w, x, shape, 16)).nmse,
                  roundsToBFloat(WeightType::Q4_1) ? 1e-2 : 1e-9)
            << size;
    }
    // What is not finite shows in every row instead of turning into plausible numbers.
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()}) {
        std::vector<float> x = Random(16).normals(shape.xStride());
        x[40] = bad;
        const std::vector<float> out = multiplyFast(table(), WeightType::Q4_1, w, x, shape, 16);
        for (size_t r = 0; r < shape.n_rows; ++r) {
            // An infinity stays one in tiles.
            const bool shows =
                roundsToBFloat(WeightType::Q4_1) ? !std::isfinite(out[r]) : std::isnan(out[r]);
            EXPECT_TRUE(shows) << bad;
        }
    }
}

TEST_P(MatMul, DamageShowsInItsTokenOnly) {
    for (const WeightTypeInfo& info : kWeightTypes) {
        const Shape shape{32, 256, 20};
        const std::vector<uint8_t> w = makeWeights(info.type, shape.n_rows, shape.n_cols, 18);
        std::vector<float> x = Random(19).normals(shape.n_tokens * shape.xStride());
        const std::vector<float> before = multiplyFast(table(), info.type, w, x, shape, 32);
        x[7 * shape.xStride() + 3] = std::numeric_limits<float>::quiet_NaN();
        const std::vector<float> after = multiplyFast(table(), info.type, w, x, shape, 32);
        for (size_t i = 0; i < after.size(); ++i) {
            if (i / shape.outStride() == 7 && i % shape.outStride() < shape.n_rows) {
                EXPECT_TRUE(std::isnan(after[i])) << info.name << ' ' << i;
            } else {
                EXPECT_EQ(after[i], before[i]) << info.name << ' ' << i;
            }
        }
    }
}

TEST_P(MatMul, ActivationsAreSharedOnlyWhereTheLayoutIsOne) {
    const KernelTable& k = table();
    for (const WeightTypeInfo& a : kWeightTypes) {
        for (const WeightTypeInfo& b : kWeightTypes) {
            if (!k.same_activations(a.type, b.type)) {
                continue;
            }
            const size_t n_bytes = k.activation_bytes(a.type, 3, 256);
            ASSERT_EQ(n_bytes, k.activation_bytes(b.type, 3, 256));
            const std::vector<float> x = Random(17).normals(size_t{3} * 256);
            std::vector<uint8_t> for_a(n_bytes);
            std::vector<uint8_t> for_b(n_bytes);
            k.quantize_activations(a.type, x.data(), 256, 3, 256, for_a.data(), 0, 3);
            k.quantize_activations(b.type, x.data(), 256, 3, 256, for_b.data(), 0, 3);
            EXPECT_EQ(for_a, for_b) << a.name << ' ' << b.name;
        }
    }
    EXPECT_TRUE(k.same_activations(WeightType::Q4_1, WeightType::Q8_0));
    EXPECT_FALSE(k.same_activations(WeightType::Q4_1, WeightType::F32));
    EXPECT_TRUE(k.same_activations(WeightType::F16, WeightType::F32));
}

BV_FOR_EVERY_ISA(MatMul);

}  // namespace
}  // namespace belvedere::kernels
