// SPDX-License-Identifier: Apache-2.0
// What a vision tower needs beside the decoder's kernels. Formulas and shapes: kernels/table.h.

#include <immintrin.h>

#include "kernels/avx2/avx2_kernels.h"
#include "kernels/avx2/vectors.h"

namespace belvedere::kernels::avx2 {
namespace {

/// avx512/vision.cpp has the source.
__m256 erfcOfPositive(__m256 z) {
    const __m256 one = _mm256_set1_ps(1.0F);
    const __m256 t = _mm256_div_ps(one, _mm256_fmadd_ps(_mm256_set1_ps(0.3275911F), z, one));
    __m256 p = _mm256_set1_ps(1.061405429F);
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(-1.453152027F));
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(1.421413741F));
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(-0.284496736F));
    p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(0.254829592F));
    const __m256 decay = exp(_mm256_mul_ps(z, _mm256_sub_ps(_mm256_setzero_ps(), z)));
    return _mm256_mul_ps(_mm256_mul_ps(p, t), decay);
}

/// sum_i (x[i] - shift), or of its squares.
template <bool kSquare>
float sumOfShifted(const float* x, size_t n, float shift) {
    __m256 sums = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_sub_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(shift));
        sums = kSquare ? _mm256_fmadd_ps(v, v, sums) : _mm256_add_ps(sums, v);
    }
    float sum = sumOf(sums);
    for (; i < n; ++i) {
        const float v = x[i] - shift;
        sum += kSquare ? v * v : v;
    }
    return sum;
}

}  // namespace

void layerNorm(const float* x,
               size_t x_stride,
               const float* weight,
               const float* bias,
               float* out,
               size_t out_stride,
               size_t n_tokens,
               size_t dim,
               float eps) noexcept {
    const float n = static_cast<float>(dim);
    for (size_t t = 0; t < n_tokens; ++t) {
        const float* row = x + t * x_stride;
        const float mean = sumOfShifted<false>(row, dim, 0.0F) / n;
        const float variance = sumOfShifted<true>(row, dim, mean) / n;
        const __m256 inverse = _mm256_set1_ps(1.0F / __builtin_sqrtf(variance + eps));
        for (size_t i = 0; i < dim; i += 8) {
            const __m256 normal = _mm256_mul_ps(
                _mm256_sub_ps(loadFirst(row + i, dim - i), _mm256_set1_ps(mean)), inverse);
            storeFirst(out + t * out_stride + i, dim - i,
                       _mm256_fmadd_ps(normal, loadFirst(weight + i, dim - i),
                                       loadFirst(bias + i, dim - i)));
        }
    }
}

void gelu(const float* x, float* out, size_t n) noexcept {
    for (size_t i = 0; i < n; i += 8) {
        const __m256 value = loadFirst(x + i, n - i);
        const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), value);
        const __m256 tail = _mm256_mul_ps(
            erfcOfPositive(_mm256_mul_ps(size, _mm256_set1_ps(0.70710678F))), _mm256_set1_ps(0.5F));
        // The sign bit of the value chooses.
        const __m256 share =
            _mm256_blendv_ps(_mm256_sub_ps(_mm256_set1_ps(1.0F), tail), tail, value);
        storeFirst(out + i, n - i, _mm256_mul_ps(value, share));
    }
}

}  // namespace belvedere::kernels::avx2
