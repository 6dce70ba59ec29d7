// SPDX-License-Identifier: Apache-2.0
#pragma once

// A 16 x 16 transpose of floats in registers, for files compiled with AVX-512 only. Any thread.

#include <cstddef>

#include <immintrin.h>

namespace belvedere::kernels::avx512 {

/// out[c * stride + r] = lane c of r[r], 16 x 16. `out` is aligned to 64 bytes, stride a multiple
/// of 16.
static inline void transpose16(const __m512* r, float* out, size_t stride) {
    __m512 s[16];
    // Pairs, then fours of rows inside each 128-bit lane: s[4k + j] holds columns 4l + j of rows
    // 4k..4k+3 in lane l.
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) {
        const __m512 low01 = _mm512_unpacklo_ps(r[4 * k], r[4 * k + 1]);
        const __m512 high01 = _mm512_unpackhi_ps(r[4 * k], r[4 * k + 1]);
        const __m512 low23 = _mm512_unpacklo_ps(r[4 * k + 2], r[4 * k + 3]);
        const __m512 high23 = _mm512_unpackhi_ps(r[4 * k + 2], r[4 * k + 3]);
        s[4 * k] = _mm512_shuffle_ps(low01, low23, 0x44);
        s[4 * k + 1] = _mm512_shuffle_ps(low01, low23, 0xee);
        s[4 * k + 2] = _mm512_shuffle_ps(high01, high23, 0x44);
        s[4 * k + 3] = _mm512_shuffle_ps(high01, high23, 0xee);
    }
    // Then the lanes: a 4 x 4 transpose of lanes over s[j], s[4 + j], s[8 + j], s[12 + j].
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
        const __m512 a = _mm512_shuffle_f32x4(s[j], s[4 + j], 0x44);
        const __m512 b = _mm512_shuffle_f32x4(s[8 + j], s[12 + j], 0x44);
        const __m512 c = _mm512_shuffle_f32x4(s[j], s[4 + j], 0xee);
        const __m512 d = _mm512_shuffle_f32x4(s[8 + j], s[12 + j], 0xee);
        _mm512_store_ps(out + j * stride, _mm512_shuffle_f32x4(a, b, 0x88));
        _mm512_store_ps(out + (4 + j) * stride, _mm512_shuffle_f32x4(a, b, 0xdd));
        _mm512_store_ps(out + (8 + j) * stride, _mm512_shuffle_f32x4(c, d, 0x88));
        _mm512_store_ps(out + (12 + j) * stride, _mm512_shuffle_f32x4(c, d, 0xdd));
    }
}

}  // namespace belvedere::kernels::avx512
