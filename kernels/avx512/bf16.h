// SPDX-License-Identifier: Apache-2.0
#pragma once

// From f32 to bf16, rounded to nearest even, for files compiled with AVX512_BF16 only. Any thread.

#include <immintrin.h>

namespace belvedere::kernels::avx512 {

/// Lanes of low, then those of high.
static inline __m512i toBFloats(__m512 low, __m512 high) {
    const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
    return reinterpret_cast<const __m512i&>(both);
}

/// Elements i and 16 + i as pair i.
static inline __m512i interleave(__m512i halves) {
    const __m512i order =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, halves);
}

/// Lanes of both as pairs: low in the lower halves.
static inline __m512i pairsOf(__m512 low, __m512 high) {
    return interleave(toBFloats(low, high));
}

}  // namespace belvedere::kernels::avx512
