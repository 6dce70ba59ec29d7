// SPDX-License-Identifier: Apache-2.0
#pragma once

// e^x and 2^x for 16 floats, for files compiled with AVX-512 only. Any thread.

#include <immintrin.h>

namespace belvedere::kernels::avx512 {

/// e^x within 2 units in the last place; 0 below -104, infinity above 88.73, NaN for NaN.
///
///     e^x = 2^n e^r,  n = round(x / ln 2),  r = x - n ln 2 in two parts,  |r| <= ln 2 / 2
///
/// e^r by a polynomial of degree 6 (Taylor coefficients of the upper terms economised to the
/// interval); 2^n by scalef, which also makes 0 and infinity.
static inline __m512 exp(__m512 x) {
    // Infinities would give inf - inf below. A NaN in the second operand stays.
    x = _mm512_min_ps(_mm512_set1_ps(90.0F), _mm512_max_ps(_mm512_set1_ps(-105.0F), x));
    const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504F)),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375F), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4F), r);
    __m512 p = _mm512_set1_ps(1.0F / 720);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 120));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 24));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
    return _mm512_scalef_ps(p, n);
}

static constexpr float kLog2E = 1.44269504F;

/// 2^x for x <= 0 within 3e-6 of it; 0 below -150, NaN for NaN.
static inline __m512 powerOf2(__m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(-150.0F), x);  // a NaN in the second operand stays
    const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 r = _mm512_sub_ps(x, n);
    __m512 p = _mm512_set1_ps(1.33335581e-3F);  // ln(2)^k / k!, k = 5 to 0
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.61812911e-3F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.55041087e-2F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.240226507F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.693147181F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
    return _mm512_scalef_ps(p, n);
}

}  // namespace belvedere::kernels::avx512
