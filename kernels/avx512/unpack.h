// SPDX-License-Identifier: Apache-2.0
#pragma once

// Blocks of packed weights (kernels/packed.h) as vectors of stored integers, and their scales. For
// files compiled with AVX-512 only: everything has internal linkage.

#include <immintrin.h>

#include "kernels/packed.h"

namespace belvedere::kernels::avx512 {
namespace {

inline __m512i loadBytes(const uint8_t* p) {
    return _mm512_loadu_si512(p);
}

inline __m512 loadHalves(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

inline __m512i loadU8Integers(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

inline __m512 loadU8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(loadU8Integers(p));
}

inline __m512 loadS8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

/// 2^(e - 128), subnormal for e = 0 and 1.
inline __m512 loadPowers(const uint8_t* p) {
    const __m512i e = loadU8Integers(p);
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    const __mmask16 small = _mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(small, normal, subnormal));
}

/// A constant made anew at each use: kept in a register over the whole loop it would push an
/// accumulator out.
[[gnu::always_inline]] inline __m512i constant(char value) {
    __m512i v = _mm512_set1_epi8(value);
    asm volatile("" : "+v"(v));
    return v;
}

[[gnu::always_inline]] inline void unpackNibbles(const uint8_t* p, __m512i* w) {
    const __m512i mask = constant(15);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
        const __m512i bytes = loadBytes(p + 64 * v);
        w[v] = _mm512_and_si512(bytes, mask);
        w[v + 4] = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask);
    }
}

[[gnu::always_inline]] inline void unpackBitPairs(const uint8_t* p, __m512i* w) {
    const __m512i mask = constant(3);
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
        const __m512i bytes = loadBytes(p + 64 * k);
        w[4 * k] = _mm512_and_si512(bytes, mask);
        w[4 * k + 1] = _mm512_and_si512(_mm512_srli_epi16(bytes, 2), mask);
        w[4 * k + 2] = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask);
        w[4 * k + 3] = _mm512_and_si512(_mm512_srli_epi16(bytes, 6), mask);
    }
}

/// Adds `value` where the mask bit is set; it was zero there.
[[gnu::always_inline]] inline void addBits(const uint8_t* masks, char value, __m512i* w) {
    const __m512i bit = constant(value);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
        const __mmask64 mask =
            _load_mask64(const_cast<__mmask64*>(reinterpret_cast<const __mmask64*>(masks + 8 * g)));
        w[g] = _mm512_mask_add_epi8(w[g], mask, w[g], bit);
    }
}

/// Vectors 0..7 of a block, stored integers.
template <WeightType kType>
[[gnu::always_inline]] inline void unpack(const uint8_t* p, __m512i* w) {
    constexpr Quants kQuants = packedFormat(kType).quants;
    if constexpr (kType == WeightType::MXFP4) {
        unpackNibbles(p, w);
        // Doubled values of the codes, plus 16.
        __m512i values = _mm512_broadcast_i32x4(
            _mm_setr_epi8(16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4));
        asm volatile("" : "+v"(values));
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            w[g] = _mm512_shuffle_epi8(values, w[g]);
        }
    } else if constexpr (kQuants == Quants::Four) {
        unpackNibbles(p, w);
    } else if constexpr (kQuants == Quants::Five) {
        unpackNibbles(p, w);
        addBits(p + 256, 16, w);
    } else if constexpr (kQuants == Quants::Six) {
        unpackNibbles(p, w);
        __m512i high[8];
        unpackBitPairs(p + 256, high);
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            w[g] = _mm512_or_si512(w[g], _mm512_slli_epi16(high[g], 4));
        }
    } else if constexpr (kQuants == Quants::Two) {
        unpackBitPairs(p, w);
    } else if constexpr (kQuants == Quants::Three) {
        unpackBitPairs(p, w);
        addBits(p + 128, 4, w);
    } else {
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            w[g] = loadBytes(p + 64 * g);
        }
    }
}

/// Factors of 16 rows in one block; where its halves have factors of their own, of one half.
///
/// Loaded where they are used and no sooner, also the super-block's: with 16 accumulators, 8
/// vectors of weights and 4 sums there are no registers to keep them in.
template <Scales kScales>
[[gnu::always_inline]] inline __m512 loadScale(const uint8_t* super, size_t b, size_t half) {
    if constexpr (kScales == Scales::Power) {
        return loadPowers(super);
    } else if constexpr (kScales == Scales::SuperPair) {
        return _mm512_mul_ps(loadHalves(super), loadU8(super + 64 + 32 * b));
    } else if constexpr (kScales == Scales::SuperHalves) {
        return _mm512_mul_ps(loadHalves(super), loadS8(super + 32 + 32 * b + 16 * half));
    } else if constexpr (kScales == Scales::SuperPairHalves) {
        const __m512i pair = loadU8Integers(super + 64 + 32 * b + 16 * half);
        const __m512i scale = _mm512_and_si512(pair, _mm512_set1_epi32(15));
        return _mm512_mul_ps(loadHalves(super), _mm512_cvtepi32_ps(scale));
    } else {
        return loadHalves(super);
    }
}

/// What is added per unit of the activations' sum.
template <Scales kScales>
[[gnu::always_inline]] inline __m512 loadMin(const uint8_t* super, size_t b, size_t half) {
    const __m512 m = loadHalves(super + 32);
    if constexpr (kScales == Scales::SuperPair) {
        const __m512 min = _mm512_mul_ps(m, loadU8(super + 64 + 32 * b + 16));
        return _mm512_sub_ps(_mm512_setzero_ps(), min);
    } else if constexpr (kScales == Scales::SuperPairHalves) {
        const __m512i pair = loadU8Integers(super + 64 + 32 * b + 16 * half);
        const __m512 min = _mm512_mul_ps(m, _mm512_cvtepi32_ps(_mm512_srli_epi32(pair, 4)));
        return _mm512_sub_ps(_mm512_setzero_ps(), min);
    } else {
        return m;
    }
}

}  // namespace
}  // namespace belvedere::kernels::avx512
