// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packed MXFP8 weights (kernels/packed.h), 16 rows in the lanes. Everything has internal linkage.

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "kernels/packed.h"

namespace belvedere::kernels::avx512 {
namespace {

/// What loadFloat8 leaves out.
constexpr float kFloat8Factor = 256.0F;

/// 16 numbers in E4M3, times 2^-8.
inline __m512 loadFloat8(const uint8_t* from) {
    // The bits of E4M3 as those of binary16, whose bias is 8 larger.
    const __m256i bytes =
        _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    const __m256i mask = _mm256_set1_epi16(static_cast<int16_t>(0xbf80));
    return _mm512_cvtph_ps(_mm256_and_si256(_mm256_slli_epi16(bytes, 7), mask));
}

/// Factors of the rows of a tile for a block of 32 columns.
inline __m512 loadFloat8Scales(const uint8_t* tile, size_t n_cols, size_t block) {
    // 2^(e - 127), subnormal for e = 0.
    const uint8_t* scales = tile + n_cols * kTileRows + block * kTileRows;
    const __m512i e =
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales)));
    const __m512i subnormal = _mm512_set1_epi32(0x00400000);
    return _mm512_castsi512_ps(
        _mm512_mask_mov_epi32(_mm512_slli_epi32(e, 23), _mm512_testn_epi32_mask(e, e), subnormal));
}

}  // namespace
}  // namespace belvedere::kernels::avx512
