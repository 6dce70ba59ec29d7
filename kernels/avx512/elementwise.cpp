// SPDX-License-Identifier: Apache-2.0
// Norm, rotary embedding, SwiGLU, addition, conversion for the cache, arg max. Formulas and shapes:
// kernels/table.h.

#include <immintrin.h>

#include "kernels/avx512/avx512_kernels.h"
#include "kernels/avx512/exp.h"
#include "kernels/avx512/lanes.h"

namespace belvedere::kernels::avx512 {
namespace {

/// sum_i x[i]^2, in four sums so that the additions overlap.
float sumSquares(const float* x, size_t n) {
    __m512 sums[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                      _mm512_setzero_ps()};
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; ++k) {
            const __m512 v = _mm512_loadu_ps(x + i + 16 * k);
            sums[k] = _mm512_fmadd_ps(v, v, sums[k]);
        }
    }
    for (; i < n; i += 16) {
        const __m512 v = _mm512_maskz_loadu_ps(firstLanes(n - i), x + i);
        sums[0] = _mm512_fmadd_ps(v, v, sums[0]);
    }
    return _mm512_reduce_add_ps(
        _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

void rotateAdjacent(float* head, const float* cos, const float* sin, size_t n_pairs) {
    // Each cosine twice; the sine of an even lane with a minus: a cos - b sin in even lanes, b cos
    // + a sin in odd ones.
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    for (size_t i = 0; i < n_pairs; i += 8) {
        const __mmask16 pairs = firstLanes(n_pairs - i < 8 ? n_pairs - i : 8);
        const __mmask16 mask = firstLanes(2 * (n_pairs - i));
        const __m512 x = _mm512_maskz_loadu_ps(mask, head + 2 * i);
        const __m512 c = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(pairs, cos + i));
        const __m512 s = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(pairs, sin + i));
        const __m512 swapped = _mm512_permute_ps(x, 0xb1);
        _mm512_mask_storeu_ps(head + 2 * i, mask,
                              _mm512_fmaddsub_ps(x, c, _mm512_mul_ps(swapped, s)));
    }
}

void rotateHalves(float* head, const float* cos, const float* sin, size_t n_pairs) {
    for (size_t i = 0; i < n_pairs; i += 16) {
        const __mmask16 mask = firstLanes(n_pairs - i);
        const __m512 a = _mm512_maskz_loadu_ps(mask, head + i);
        const __m512 b = _mm512_maskz_loadu_ps(mask, head + n_pairs + i);
        const __m512 c = _mm512_maskz_loadu_ps(mask, cos + i);
        const __m512 s = _mm512_maskz_loadu_ps(mask, sin + i);
        _mm512_mask_storeu_ps(head + i, mask, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(head + n_pairs + i, mask, _mm512_fmadd_ps(b, c, _mm512_mul_ps(a, s)));
    }
}

/// Round to nearest even; NaN becomes quiet. By integers: the instruction for it would flush
/// subnormals.
__m256i toBf16(__m512 v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(
        _mm512_srli_epi32(_mm512_mask_blend_epi32(nan, rounded, quiet), 16));
}

/// A block of a Q8_0 row: n <= 32 elements and their scale.
void toQ8Block(const float* src, uint8_t* dst, uint8_t* scale_place, size_t n) {
    const __mmask16 masks[2] = {firstLanes(n), n > 16 ? firstLanes(n - 16) : __mmask16{0}};
    const __m512 v[2] = {_mm512_maskz_loadu_ps(masks[0], src),
                         _mm512_maskz_loadu_ps(masks[1], src + 16)};
    // A NaN in the first operand gives the second.
    const __m512 largest =
        _mm512_max_ps(_mm512_abs_ps(v[0]), _mm512_max_ps(_mm512_abs_ps(v[1]), _mm512_setzero_ps()));
    const float step = _mm512_reduce_max_ps(largest) / 127.0F;
    const __m128i scale =
        _mm_cvtps_ph(_mm_set1_ps(step < 65504.0F ? step : 65504.0F), _MM_FROUND_TO_NEAREST_INT);
    const auto bits = static_cast<uint16_t>(_mm_extract_epi16(scale, 0));
    const float inverse = bits == 0 ? 0.0F : 1.0F / _mm_cvtss_f32(_mm_cvtph_ps(scale));
    for (size_t k = 0; k < 2; ++k) {
        const __m512 scaled = _mm512_mul_ps(v[k], _mm512_set1_ps(inverse));
        const __m512 clamped =
            _mm512_min_ps(_mm512_max_ps(scaled, _mm512_set1_ps(-127.0F)), _mm512_set1_ps(127.0F));
        _mm_mask_storeu_epi8(dst + 16 * k, masks[k],
                             _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(clamped)));
    }
    __builtin_memcpy(scale_place, &bits, 2);
}

void toQ8Cache(const float* src, uint8_t* dst, size_t n) {
    uint8_t* scales = dst + cacheScalesBegin(n);
    for (size_t i = 0; i < n; i += kCacheBlock) {
        toQ8Block(src + i, dst + i, scales + i / kCacheBlock * 2,
                  n - i < kCacheBlock ? n - i : kCacheBlock);
    }
}

}  // namespace

void rmsNorm(const float* x,
             size_t x_stride,
             const float* weight,
             float* out,
             size_t out_stride,
             size_t n_tokens,
             size_t dim,
             float eps) noexcept {
    for (size_t t = 0; t < n_tokens; ++t) {
        const float* row = x + t * x_stride;
        float* to = out + t * out_stride;
        const float mean = sumSquares(row, dim) / static_cast<float>(dim);
        const __m512 inverse = _mm512_set1_ps(1.0F / __builtin_sqrtf(mean + eps));
        for (size_t i = 0; i < dim; i += 16) {
            const __mmask16 mask = firstLanes(dim - i);
            const __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, row + i), inverse);
            _mm512_mask_storeu_ps(to + i, mask,
                                  _mm512_mul_ps(v, _mm512_maskz_loadu_ps(mask, weight + i)));
        }
    }
}

void ropeAdjacent(float* x,
                  size_t stride,
                  const float* cos,
                  const float* sin,
                  size_t n_tokens,
                  size_t n_heads,
                  size_t head_dim,
                  size_t n_pairs) noexcept {
    for (size_t t = 0; t < n_tokens; ++t) {
        for (size_t h = 0; h < n_heads; ++h) {
            rotateAdjacent(x + t * stride + h * head_dim, cos + t * n_pairs, sin + t * n_pairs,
                           n_pairs);
        }
    }
}

void ropeHalfSplit(float* x,
                   size_t stride,
                   const float* cos,
                   const float* sin,
                   size_t n_tokens,
                   size_t n_heads,
                   size_t head_dim,
                   size_t n_pairs) noexcept {
    for (size_t t = 0; t < n_tokens; ++t) {
        for (size_t h = 0; h < n_heads; ++h) {
            rotateHalves(x + t * stride + h * head_dim, cos + t * n_pairs, sin + t * n_pairs,
                         n_pairs);
        }
    }
}

void swiglu(const float* gate, const float* up, float* out, size_t n) noexcept {
    const __m512 one = _mm512_set1_ps(1.0F);
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 mask = firstLanes(n - i);
        const __m512 g = _mm512_maskz_loadu_ps(mask, gate + i);
        const __m512 u = _mm512_maskz_loadu_ps(mask, up + i);
        const __m512 e = exp(_mm512_sub_ps(_mm512_setzero_ps(), g));
        const __m512 silu = _mm512_div_ps(g, _mm512_add_ps(one, e));
        _mm512_mask_storeu_ps(out + i, mask, _mm512_mul_ps(silu, u));
    }
}

void swigluOai(
    const float* gate, const float* up, float* out, size_t n, float alpha, float limit) noexcept {
    const __m512 one = _mm512_set1_ps(1.0F);
    const __m512 highest = _mm512_set1_ps(limit);
    const __m512 lowest = _mm512_set1_ps(-limit);
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 mask = firstLanes(n - i);
        // Of a NaN and a number, min and max take the second operand.
        const __m512 g = _mm512_min_ps(highest, _mm512_maskz_loadu_ps(mask, gate + i));
        const __m512 u =
            _mm512_max_ps(lowest, _mm512_min_ps(highest, _mm512_maskz_loadu_ps(mask, up + i)));
        const __m512 e = exp(_mm512_mul_ps(_mm512_set1_ps(-alpha), g));
        const __m512 swish = _mm512_div_ps(g, _mm512_add_ps(one, e));
        _mm512_mask_storeu_ps(out + i, mask, _mm512_mul_ps(_mm512_add_ps(u, one), swish));
    }
}

void add(float* dst, const float* src, size_t n) noexcept {
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 mask = firstLanes(n - i);
        _mm512_mask_storeu_ps(dst + i, mask,
                              _mm512_add_ps(_mm512_maskz_loadu_ps(mask, dst + i),
                                            _mm512_maskz_loadu_ps(mask, src + i)));
    }
}

void toCache(CacheType type, const float* src, void* dst, size_t n) noexcept {
    if (type == CacheType::F32) {
        __builtin_memcpy(dst, src, n * sizeof(float));
        return;
    }
    if (type == CacheType::Q8_0) {
        return toQ8Cache(src, static_cast<uint8_t*>(dst), n);
    }
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 mask = firstLanes(n - i);
        const __m512 v = _mm512_maskz_loadu_ps(mask, src + i);
        const __m256i halves =
            type == CacheType::F16 ? _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT) : toBf16(v);
        _mm256_mask_storeu_epi16(static_cast<uint16_t*>(dst) + i, mask, halves);
    }
}

size_t argMax(const float* x, size_t n) noexcept {
    const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
    __m512 largest = lowest;
    for (size_t i = 0; i < n; i += 16) {
        // A NaN in the first operand gives the second.
        largest = _mm512_max_ps(_mm512_mask_loadu_ps(lowest, firstLanes(n - i), x + i), largest);
    }
    const __m512 best = _mm512_set1_ps(_mm512_reduce_max_ps(largest));
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 equal = _mm512_mask_cmp_ps_mask(
            firstLanes(n - i), _mm512_maskz_loadu_ps(firstLanes(n - i), x + i), best, _CMP_EQ_OQ);
        if (equal != 0) {
            return i + static_cast<size_t>(__builtin_ctz(equal));
        }
    }
    return 0;  // all NaN
}

}  // namespace belvedere::kernels::avx512
