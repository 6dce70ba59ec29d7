// SPDX-License-Identifier: Apache-2.0
#pragma once

// Masks of the lanes of a vector, for files compiled with AVX-512 only. Any thread.

#include <cstddef>

#include <immintrin.h>

namespace belvedere::kernels::avx512 {

/// The first n of 16 lanes; all where there are more.
static inline __mmask16 firstLanes(size_t n) {
    return static_cast<__mmask16>(n >= 16 ? 0xffffU : (1U << n) - 1U);
}

}  // namespace belvedere::kernels::avx512
