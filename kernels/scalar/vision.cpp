// SPDX-License-Identifier: Apache-2.0
// What a vision tower needs beside the decoder's kernels. Formulas and shapes: kernels/table.h.

#include <cmath>

#include "kernels/scalar/scalar_kernels.h"

namespace belvedere::kernels::scalar {

void layerNorm(const float* x,
               size_t x_stride,
               const float* weight,
               const float* bias,
               float* out,
               size_t out_stride,
               size_t n_tokens,
               size_t dim,
               float eps) noexcept {
    const auto n = static_cast<double>(dim);
    for (size_t t = 0; t < n_tokens; ++t) {
        const float* row = x + t * x_stride;
        double mean = 0;
        for (size_t i = 0; i < dim; ++i) {
            mean += static_cast<double>(row[i]) / n;
        }
        double variance = 0;
        for (size_t i = 0; i < dim; ++i) {
            const double distance = static_cast<double>(row[i]) - mean;
            variance += distance * distance / n;
        }
        const double inverse = 1.0 / std::sqrt(variance + static_cast<double>(eps));
        for (size_t i = 0; i < dim; ++i) {
            const double normal = (static_cast<double>(row[i]) - mean) * inverse;
            out[t * out_stride + i] = static_cast<float>(normal * static_cast<double>(weight[i]) +
                                                         static_cast<double>(bias[i]));
        }
    }
}

void gelu(const float* x, float* out, size_t n) noexcept {
    for (size_t i = 0; i < n; ++i) {
        const double value = static_cast<double>(x[i]);
        // By erfc, which does not cancel on the negative side.
        out[i] = static_cast<float>(value / 2 * std::erfc(-value / std::sqrt(2.0)));
    }
}

}  // namespace belvedere::kernels::scalar
