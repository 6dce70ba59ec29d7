// SPDX-License-Identifier: Apache-2.0
// Norm, rotary embedding, SwiGLU, addition, conversion for the cache, arg max. Formulas and shapes:
// kernels/table.h.

#include <immintrin.h>

#include "kernels/avx2/avx2_kernels.h"
#include "kernels/avx2/vectors.h"

namespace belvedere::kernels::avx2 {
namespace {

/// sum_i x[i]^2, in four sums so that the additions overlap.
float sumSquares(const float* x, size_t n) {
    __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                      _mm256_setzero_ps()};
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; ++k) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * k);
            sums[k] = _mm256_fmadd_ps(v, v, sums[k]);
        }
    }
    for (; i < n; i += 8) {
        const __m256 v = loadFirst(x + i, n - i);
        sums[0] = _mm256_fmadd_ps(v, v, sums[0]);
    }
    return sumOf(_mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
}

void rotateAdjacent(float* head, const float* cos, const float* sin, size_t n_pairs) {
    // Each cosine twice; a cos - b sin in even lanes, b cos + a sin in odd ones.
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    for (size_t i = 0; i < n_pairs; i += 4) {
        const size_t n = n_pairs - i < 4 ? n_pairs - i : 4;
        const __m256 x = loadFirst(head + 2 * i, 2 * n);
        const __m256 c = _mm256_permutevar8x32_ps(loadFirst(cos + i, n), twice);
        const __m256 s = _mm256_permutevar8x32_ps(loadFirst(sin + i, n), twice);
        const __m256 swapped = _mm256_permute_ps(x, 0xb1);
        storeFirst(head + 2 * i, 2 * n, _mm256_fmaddsub_ps(x, c, _mm256_mul_ps(swapped, s)));
    }
}

void rotateHalves(float* head, const float* cos, const float* sin, size_t n_pairs) {
    for (size_t i = 0; i < n_pairs; i += 8) {
        const size_t n = n_pairs - i;
        const __m256 a = loadFirst(head + i, n);
        const __m256 b = loadFirst(head + n_pairs + i, n);
        const __m256 c = loadFirst(cos + i, n);
        const __m256 s = loadFirst(sin + i, n);
        storeFirst(head + i, n, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        storeFirst(head + n_pairs + i, n, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
    }
}

/// 8 elements in the type of the cache, round to nearest even; NaN becomes quiet.
__m128i toHalves(CacheType type, __m256 v) {
    if (type == CacheType::F16) {
        return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    }
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i words = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    const __m256i packed = _mm256_packus_epi32(words, words);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

/// A block of a Q8_0 row: n <= 32 elements and their scale.
void toQ8Block(const float* src, uint8_t* dst, uint8_t* scale_place, size_t n) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    __m256 v[4];
    __m256 largest = _mm256_setzero_ps();
    for (size_t k = 0; k < 4; ++k) {
        v[k] = 8 * k < n ? loadFirst(src + 8 * k, n - 8 * k) : _mm256_setzero_ps();
        // A NaN in the first operand gives the second.
        largest = _mm256_max_ps(_mm256_andnot_ps(sign, v[k]), largest);
    }
    const float step = largestOf(largest) / 127.0F;
    const __m128i scale =
        _mm_cvtps_ph(_mm_set1_ps(step < 65504.0F ? step : 65504.0F), _MM_FROUND_TO_NEAREST_INT);
    const auto bits = static_cast<uint16_t>(_mm_extract_epi16(scale, 0));
    const float inverse = bits == 0 ? 0.0F : 1.0F / _mm_cvtss_f32(_mm_cvtph_ps(scale));
    const __m256 low = _mm256_set1_ps(-127.0F);
    const __m256 high = _mm256_set1_ps(127.0F);
    uint8_t bytes[32];
    for (size_t k = 0; k < 4; ++k) {
        const __m256 scaled = _mm256_mul_ps(v[k], _mm256_set1_ps(inverse));
        const __m256i numbers = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(scaled, low), high));
        const __m128i words =
            _mm_packs_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(bytes + 8 * k), _mm_packs_epi16(words, words));
    }
    __builtin_memcpy(dst, bytes, n);
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
        const __m256 inverse = _mm256_set1_ps(1.0F / __builtin_sqrtf(mean + eps));
        for (size_t i = 0; i < dim; i += 8) {
            const __m256 v = _mm256_mul_ps(loadFirst(row + i, dim - i), inverse);
            storeFirst(to + i, dim - i, _mm256_mul_ps(v, loadFirst(weight + i, dim - i)));
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
    const __m256 one = _mm256_set1_ps(1.0F);
    for (size_t i = 0; i < n; i += 8) {
        const __m256 g = loadFirst(gate + i, n - i);
        const __m256 e = exp(_mm256_sub_ps(_mm256_setzero_ps(), g));
        const __m256 silu = _mm256_div_ps(g, _mm256_add_ps(one, e));
        storeFirst(out + i, n - i, _mm256_mul_ps(silu, loadFirst(up + i, n - i)));
    }
}

void swigluOai(
    const float* gate, const float* up, float* out, size_t n, float alpha, float limit) noexcept {
    const __m256 one = _mm256_set1_ps(1.0F);
    const __m256 highest = _mm256_set1_ps(limit);
    const __m256 lowest = _mm256_set1_ps(-limit);
    for (size_t i = 0; i < n; i += 8) {
        // Of a NaN and a number, min and max take the second operand.
        const __m256 g = _mm256_min_ps(highest, loadFirst(gate + i, n - i));
        const __m256 u = _mm256_max_ps(lowest, _mm256_min_ps(highest, loadFirst(up + i, n - i)));
        const __m256 e = exp(_mm256_mul_ps(_mm256_set1_ps(-alpha), g));
        const __m256 swish = _mm256_div_ps(g, _mm256_add_ps(one, e));
        storeFirst(out + i, n - i, _mm256_mul_ps(_mm256_add_ps(u, one), swish));
    }
}

void add(float* dst, const float* src, size_t n) noexcept {
    for (size_t i = 0; i < n; i += 8) {
        storeFirst(dst + i, n - i,
                   _mm256_add_ps(loadFirst(dst + i, n - i), loadFirst(src + i, n - i)));
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
    auto* to = static_cast<uint16_t*>(dst);
    for (size_t i = 0; i < n; i += 8) {
        const __m128i halves = toHalves(type, loadFirst(src + i, n - i));
        if (n - i >= 8) {
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
        } else {
            uint16_t last[8];
            _mm_storeu_si128(reinterpret_cast<__m128i*>(last), halves);
            __builtin_memcpy(to + i, last, 2 * (n - i));
        }
    }
}

size_t argMax(const float* x, size_t n) noexcept {
    const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
    __m256 largest = lowest;
    for (size_t i = 0; i < n; i += 8) {
        const __m256 lanes = _mm256_castsi256_ps(firstLanes(n - i));
        const __m256 v = _mm256_blendv_ps(lowest, loadFirst(x + i, n - i), lanes);
        largest = _mm256_max_ps(v, largest);  // a NaN in the first operand gives the second
    }
    const __m256 best = _mm256_set1_ps(largestOf(largest));
    for (size_t i = 0; i < n; i += 8) {
        const __m256 equal = _mm256_cmp_ps(loadFirst(x + i, n - i), best, _CMP_EQ_OQ);
        const __m256 lanes = _mm256_castsi256_ps(firstLanes(n - i));
        const int found = _mm256_movemask_ps(_mm256_and_ps(equal, lanes));
        if (found != 0) {
            return i + static_cast<size_t>(__builtin_ctz(static_cast<unsigned>(found)));
        }
    }
    return 0;  // all NaN
}

}  // namespace belvedere::kernels::avx2
