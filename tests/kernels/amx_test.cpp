// SPDX-License-Identifier: Apache-2.0
// The AMX table where there is no AMX: this program is linked with the tile products in plain loops
// (BV_EMULATE_TILES), so that layouts, borders and scales are tested on every machine with AVX-512.
// On a machine with AMX all kernel tests run with its table too.

#include <array>
#include <cmath>
#include <limits>

#include "kernels/registration.h"
#include "kernels/scalar/scalar_kernels.h"
#include "tests/kernels/kernel_test.h"

namespace belvedere::kernels {
namespace {

class AmxEmulated : public ::testing::TestWithParam<WeightType> {
  protected:
    void SetUp() override {
        if (tableFor(Isa::Avx512) == nullptr ||
            cpuInfo().features.find("avx512bf16") == std::string::npos) {
            GTEST_SKIP() << "no AVX-512 with BF16 here";
        }
        registerScalar(table_);
        registerAvx2(table_);
        registerAvx512(table_, {.avx512_bf16 = true});
        registerAmx(table_);
    }

    /// In slices of rows, tokens prepared in slices of 16.
    static std::vector<float> run(const KernelTable& k,
                                  const std::vector<uint8_t>& weights,
                                  const std::vector<float>& x,
                                  size_t n_rows,
                                  size_t n_cols,
                                  size_t n_tokens,
                                  size_t rows_per_call) {
        const WeightType type = GetParam();
        std::vector<uint8_t> packed(k.packed_bytes(type, n_rows, n_cols));
        k.pack(type, weights.data(), n_rows, n_cols, packed.data(), 0, n_rows);
        std::vector<uint8_t> activations(k.activation_bytes(type, n_tokens, n_cols), 0xff);
        for (size_t begin = 0; begin < n_tokens; begin += 16) {
            k.quantize_activations(type, x.data(), n_cols, n_tokens, n_cols, activations.data(),
                                   begin, std::min(begin + 16, n_tokens));
        }
        std::vector<float> out(n_tokens * (n_rows + 3), -7);
        for (size_t row = 0; row < n_rows; row += rows_per_call) {
            k.mat_mul_fast({type, packed.data(), n_rows, n_cols, activations.data(), out.data(),
                            n_rows + 3, n_tokens, row, std::min(row + rows_per_call, n_rows)});
        }
        return out;
    }

    KernelTable table_{};
};

TEST_P(AmxEmulated, MatchesTheExactProduct) {
    for (const auto& [n_rows, n_cols, n_tokens] :
         {std::array<size_t, 3>{16, 256, 17}, {40, 768, 33}, {100, 256, 64}, {7, 1280, 70}}) {
        const std::vector<uint8_t> weights = makeWeights(GetParam(), n_rows, n_cols, n_rows);
        const std::vector<float> x = Random(n_tokens).normals(n_tokens * n_cols);
        std::vector<float> expected(n_tokens * (n_rows + 3), -7);
        scalar::matMulF32({.type = GetParam(),
                           .w = weights.data(),
                           .n_rows = n_rows,
                           .n_cols = n_cols,
                           .x = x.data(),
                           .x_stride = n_cols,
                           .out = expected.data(),
                           .out_stride = n_rows + 3,
                           .n_tokens = n_tokens,
                           .row_begin = 0,
                           .row_end = n_rows});
        const std::vector<float> actual = run(table_, weights, x, n_rows, n_cols, n_tokens, n_rows);
        EXPECT_NMSE_BELOW(actual, expected, 2e-5);
        EXPECT_EQ(run(table_, weights, x, n_rows, n_cols, n_tokens, 16), actual)
            << "sliced by 16 rows";
    }
}

TEST_P(AmxEmulated, FewTokensAreComputedAsWithoutTiles) {
    const std::vector<uint8_t> weights = makeWeights(GetParam(), 48, 512, 3);
    const std::vector<float> x = Random(4).normals(16 * 512);
    EXPECT_EQ(run(table_, weights, x, 48, 512, 16, 48),
              run(*tableFor(Isa::Avx512), weights, x, 48, 512, 16, 48));
}

TEST_P(AmxEmulated, DamageShowsInItsTokenOnly) {
    const std::vector<uint8_t> weights = makeWeights(GetParam(), 32, 256, 5);
    std::vector<float> x = Random(6).normals(20 * 256);
    const std::vector<float> before = run(table_, weights, x, 32, 256, 20, 32);
    x[7 * 256 + 3] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> after = run(table_, weights, x, 32, 256, 20, 32);
    for (size_t i = 0; i < after.size(); ++i) {
        if (i / 35 == 7 && i % 35 < 32) {
            EXPECT_TRUE(std::isnan(after[i])) << i;
        } else {
            EXPECT_EQ(after[i], before[i]) << i;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(,
                         AmxEmulated,
                         ::testing::ValuesIn([] {
                             std::vector<WeightType> types;
                             for (const WeightTypeInfo& type : kWeightTypes) {
                                 types.push_back(type.type);
                             }
                             return types;
                         }()),
                         [](const auto& tested) {
                             return std::string(
                                 findWeightType(static_cast<uint32_t>(tested.param))->name);
                         });

}  // namespace
}  // namespace belvedere::kernels
