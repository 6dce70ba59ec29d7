// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small pieces that several AVX2 files need: loads and stores of the first n lanes, e^x, an 8 x 8
// transpose. For files compiled with AVX2 only. Any thread.

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace belvedere::kernels::avx2 {

/// All bits set in the first n of 8 lanes.
static inline __m256i firstLanes(size_t n) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < 8 ? static_cast<int>(n) : 8), index);
}

/// Lanes from n on are 0 and their memory is not read.
static inline __m256 loadFirst(const float* p, size_t n) {
    return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, firstLanes(n));
}

static inline void storeFirst(float* p, size_t n, __m256 v) {
    if (n >= 8) {
        _mm256_storeu_ps(p, v);
    } else {
        _mm256_maskstore_ps(p, firstLanes(n), v);
    }
}

static inline float sumOf(__m256 v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

static inline float largestOf(__m256 v) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/// e^x within 2 units in the last place; 0 below -104, infinity above 88.73, NaN for NaN. As
/// avx512/exp.h, but 2^n in two factors, because one would leave the range of exponents.
static inline __m256 exp(__m256 x) {
    // Infinities would give inf - inf below. A NaN in the second operand stays.
    x = _mm256_min_ps(_mm256_set1_ps(90.0F), _mm256_max_ps(_mm256_set1_ps(-105.0F), x));
    const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504F)),
                                     _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375F), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4F), r);
    __m256 p = _mm256_set1_ps(1.0F / 720);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 120));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 24));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
    const __m256i whole = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(a)), _mm256_castsi256_ps(b));
}

/// out[c * stride + r] = lane c of r[r], 8 x 8.
static inline void transpose8(const __m256* r, float* out, size_t stride) {
    __m256 s[8];
    // Fours of rows inside each 128-bit lane: s[4k + j] holds columns j and 4 + j of rows 4k..4k+3.
#pragma GCC unroll 2
    for (size_t k = 0; k < 2; ++k) {
        const __m256 low01 = _mm256_unpacklo_ps(r[4 * k], r[4 * k + 1]);
        const __m256 high01 = _mm256_unpackhi_ps(r[4 * k], r[4 * k + 1]);
        const __m256 low23 = _mm256_unpacklo_ps(r[4 * k + 2], r[4 * k + 3]);
        const __m256 high23 = _mm256_unpackhi_ps(r[4 * k + 2], r[4 * k + 3]);
        s[4 * k] = _mm256_shuffle_ps(low01, low23, 0x44);
        s[4 * k + 1] = _mm256_shuffle_ps(low01, low23, 0xee);
        s[4 * k + 2] = _mm256_shuffle_ps(high01, high23, 0x44);
        s[4 * k + 3] = _mm256_shuffle_ps(high01, high23, 0xee);
    }
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
        _mm256_storeu_ps(out + j * stride, _mm256_permute2f128_ps(s[j], s[4 + j], 0x20));
        _mm256_storeu_ps(out + (4 + j) * stride, _mm256_permute2f128_ps(s[j], s[4 + j], 0x31));
    }
}

}  // namespace belvedere::kernels::avx2
