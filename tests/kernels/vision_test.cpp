// SPDX-License-Identifier: Apache-2.0
// Layer norm and GELU against the scalar version and f64.

#include <cmath>
#include <limits>

#include "tests/kernels/kernel_test.h"

namespace belvedere::kernels {
namespace {

class Vision : public KernelTest {};

TEST_P(Vision, LayerNormAtEveryLengthAndOffset) {
    const std::vector<float> x = Random(1).normals(600);
    const std::vector<float> weight = Random(2).normals(120);
    const std::vector<float> bias = Random(3).normals(120);
    for (size_t n = 1; n <= 70; ++n) {
        for (size_t offset = 0; offset < 3; ++offset) {
            std::vector<float> actual(600, -7);
            std::vector<float> expected(600, -7);
            table().layer_norm(x.data() + offset, 90, weight.data() + offset, bias.data(),
                               actual.data() + offset, 80, 3, n, 1e-5F);
            scalar().layer_norm(x.data() + offset, 90, weight.data() + offset, bias.data(),
                                expected.data() + offset, 80, 3, n, 1e-5F);
            EXPECT_NMSE_BELOW(actual, expected, 1e-11);
        }
    }
}

TEST_P(Vision, LayerNormInPlaceOfEqualAndOfFarValues) {
    std::vector<float> x = Random(4).normals(1280);
    for (float& value : x) {
        value = 1000 + value;  // the mean is far from 0: squares of the values would cancel
    }
    const std::vector<float> weight(1280, 2);
    const std::vector<float> bias(1280, 0.5F);
    std::vector<float> expected(1280);
    scalar().layer_norm(x.data(), 1280, weight.data(), bias.data(), expected.data(), 1280, 1, 1280,
                        1e-5F);
    table().layer_norm(x.data(), 1280, weight.data(), bias.data(), x.data(), 1280, 1, 1280, 1e-5F);
    EXPECT_NMSE_BELOW(x, expected, 1e-8);

    std::vector<float> equal(33, 3);
    table().layer_norm(equal.data(), 33, weight.data(), bias.data(), equal.data(), 33, 1, 33,
                       1e-5F);
    EXPECT_EQ(equal, std::vector<float>(33, 0.5F));
}

TEST_P(Vision, GeluOverTheWholeRange) {
    std::vector<float> x = {0.0F, -0.0F, 1e-40F, -1e-40F, 1e30F, -1e30F};
    for (float value = -15; value < 15; value += 0.013F) {
        x.push_back(value);
    }
    std::vector<float> actual(x.size());
    table().gelu(x.data(), actual.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
        const auto value = static_cast<double>(x[i]);
        const double expected = value / 2 * std::erfc(-value / std::sqrt(2.0));
        EXPECT_NEAR(static_cast<double>(actual[i]), expected, 5e-7 * (1 + std::fabs(value)))
            << value;
    }
    std::vector<float> nan(20, std::numeric_limits<float>::quiet_NaN());
    table().gelu(nan.data(), nan.data(), nan.size());
    EXPECT_TRUE(std::isnan(nan[0]) && std::isnan(nan[19]));
}

TEST_P(Vision, GeluAtEveryLengthAndInPlace) {
    const std::vector<float> x = Random(5).normals(80);
    for (size_t n = 0; n <= 70; ++n) {
        std::vector<float> actual = x;
        std::vector<float> expected = x;
        table().gelu(actual.data() + 1, actual.data() + 1, n);
        scalar().gelu(expected.data() + 1, expected.data() + 1, n);
        EXPECT_NMSE_BELOW(actual, expected, 1e-12);
    }
}

BV_FOR_EVERY_ISA(Vision);

}  // namespace
}  // namespace belvedere::kernels
