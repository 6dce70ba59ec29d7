// SPDX-License-Identifier: Apache-2.0
// What a vision tower needs beside the decoder's kernels. Formulas and shapes: kernels/table.h.

#include <immintrin.h>

#include "kernels/avx512/avx512_kernels.h"
#include "kernels/avx512/exp.h"
#include "kernels/avx512/lanes.h"

namespace belvedere::kernels::avx512 {
namespace {

/// erfc(z) for z >= 0, within 2e-7.
/// Source: Abramowitz & Stegun, 7.1.26.
__m512 erfcOfPositive(__m512 z) {
    const __m512 one = _mm512_set1_ps(1.0F);
    const __m512 t = _mm512_div_ps(one, _mm512_fmadd_ps(_mm512_set1_ps(0.3275911F), z, one));
    __m512 p = _mm512_set1_ps(1.061405429F);
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-1.453152027F));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.421413741F));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-0.284496736F));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.254829592F));
    const __m512 decay = exp(_mm512_mul_ps(z, _mm512_sub_ps(_mm512_setzero_ps(), z)));
    return _mm512_mul_ps(_mm512_mul_ps(p, t), decay);
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
        __m512 sums = _mm512_setzero_ps();
        for (size_t i = 0; i < dim; i += 16) {
            sums = _mm512_add_ps(sums, _mm512_maskz_loadu_ps(firstLanes(dim - i), row + i));
        }
        const __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(sums) / n);
        __m512 squares = _mm512_setzero_ps();
        for (size_t i = 0; i < dim; i += 16) {
            const __mmask16 mask = firstLanes(dim - i);
            const __m512 distance =
                _mm512_maskz_sub_ps(mask, _mm512_maskz_loadu_ps(mask, row + i), mean);
            squares = _mm512_fmadd_ps(distance, distance, squares);
        }
        const float variance = _mm512_reduce_add_ps(squares) / n;
        const __m512 inverse = _mm512_set1_ps(1.0F / __builtin_sqrtf(variance + eps));
        for (size_t i = 0; i < dim; i += 16) {
            const __mmask16 mask = firstLanes(dim - i);
            const __m512 normal =
                _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, row + i), mean), inverse);
            _mm512_mask_storeu_ps(out + t * out_stride + i, mask,
                                  _mm512_fmadd_ps(normal, _mm512_maskz_loadu_ps(mask, weight + i),
                                                  _mm512_maskz_loadu_ps(mask, bias + i)));
        }
    }
}

void gelu(const float* x, float* out, size_t n) noexcept {
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 mask = firstLanes(n - i);
        const __m512 value = _mm512_maskz_loadu_ps(mask, x + i);
        const __m512 z = _mm512_mul_ps(_mm512_abs_ps(value), _mm512_set1_ps(0.70710678F));
        const __m512 tail = _mm512_mul_ps(erfcOfPositive(z), _mm512_set1_ps(0.5F));
        const __mmask16 is_negative = _mm512_cmp_ps_mask(value, _mm512_setzero_ps(), _CMP_LT_OQ);
        const __m512 share =
            _mm512_mask_mov_ps(_mm512_sub_ps(_mm512_set1_ps(1.0F), tail), is_negative, tail);
        _mm512_mask_storeu_ps(out + i, mask, _mm512_mul_ps(value, share));
    }
}

}  // namespace belvedere::kernels::avx512
