// SPDX-License-Identifier: Apache-2.0
#pragma once

// What attention and the index branch of MSA are made of: 64 keys of a page as f32, small products
// of f32 matrices, a softmax that is kept up to date. For files compiled with this instruction set
// only: everything has internal linkage.

#include <immintrin.h>

#include "kernels/avx2/vectors.h"
#include "kernels/fetch_ahead.h"
#include "kernels/tile_attention.h"

namespace belvedere::kernels::avx2 {
namespace {

/// Vectors of a row of the product's accumulators: with kRows rows, 12 of the 16 registers.
constexpr size_t kVectors = 2;

/// Elements [i, i + 8) of a row of head_dim elements as f32; 0 behind its end, whose memory is not
/// read.
template <CacheType kType>
__m256 loadCache(const uint8_t* vector, size_t i, size_t head_dim) {
    if (i >= head_dim) {
        return _mm256_setzero_ps();
    }
    const size_t n = head_dim - i;
    if constexpr (kType == CacheType::F32) {
        return loadFirst(reinterpret_cast<const float*>(vector) + i, n);
    } else if constexpr (kType == CacheType::Q8_0) {
        int64_t eight = 0;
        if (n >= 8) {
            __builtin_memcpy(&eight, vector + i, 8);
        } else {
            __builtin_memcpy(&eight, vector + i, n);
        }
        const __m256 numbers = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(eight)));
        const __m256 scale =
            _mm256_cvtph_ps(_mm_set1_epi16(static_cast<short>(scaleBits(vector, i, head_dim))));
        return _mm256_mul_ps(numbers, scale);
    } else {
        uint16_t last[8] = {};
        const auto* from = reinterpret_cast<const uint16_t*>(vector) + i;
        if (n < 8) {
            __builtin_memcpy(last, from, 2 * n);
            from = last;
        }
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        if constexpr (kType == CacheType::F16) {
            return _mm256_cvtph_ps(halves);
        } else {
            return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
        }
    }
}

/// n keys, head_dim apart, into [D, 64]; the rest is 0.
template <CacheType kType>
void loadKeys(const uint8_t* from, size_t n, size_t head_dim, float* to) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    for (size_t key = 0; key < kKeys; key += 8) {
        for (size_t i = 0; i < head_dim; i += 8) {
            __m256 rows[8];
#pragma GCC unroll 8
            for (size_t k = 0; k < 8; ++k) {
                rows[k] = key + k < n
                              ? loadCache<kType>(from + (key + k) * vector_bytes, i, head_dim)
                              : _mm256_setzero_ps();
            }
            transpose8(rows, to + i * kKeys + key, kKeys);
        }
    }
}

/// n values, head_dim apart, into [64, D]; the rest is 0.
template <CacheType kType>
void loadValues(const uint8_t* from, size_t n, size_t head_dim, float* to) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    const size_t dim = paddedDim(head_dim);
    for (size_t key = 0; key < kKeys; ++key) {
        for (size_t i = 0; i < dim; i += 8) {
            const __m256 v = key < n ? loadCache<kType>(from + key * vector_bytes, i, head_dim)
                                     : _mm256_setzero_ps();
            _mm256_store_ps(to + key * dim + i, v);
        }
    }
}

/// The sums of the lanes of four vectors.
inline __m128 sumsOf(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    return _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
}

/// p [kR, n] = q [kR, head_dim] times n keys where they stand. Up to 3 elements of a row of p
/// behind the n-th are written too. Meanwhile as many rows of the cache are fetched from `ahead`.
template <CacheType kType, size_t kR>
void scoreRows(
    ConstRows q, const uint8_t* keys, const uint8_t* ahead, size_t n, size_t head_dim, float* p) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    for (size_t first = 0; first < n; first += 4) {
        const uint8_t* at[4];
        for (size_t k = 0; k < 4; ++k) {
            // The last key again in place of those that are not there.
            at[k] = keys + (first + k < n ? first + k : n - 1) * vector_bytes;
        }
        fetchAhead(ahead + first * vector_bytes, 4 * vector_bytes);
        // Of the 16 registers, eight for the sums: two rows at a time.
        for (size_t row = 0; row < kR; row += 2) {
            const float* a = q.data + row * q.stride;
            const float* b = row + 1 < kR ? a + q.stride : a;
            __m256 acc[2][4] = {};
            for (size_t i = 0; i < head_dim; i += 8) {
                const __m256 in_a = loadFirst(a + i, head_dim - i);
                const __m256 in_b = loadFirst(b + i, head_dim - i);
#pragma GCC unroll 4
                for (size_t k = 0; k < 4; ++k) {
                    const __m256 key = loadCache<kType>(at[k], i, head_dim);
                    acc[0][k] = _mm256_fmadd_ps(in_a, key, acc[0][k]);
                    acc[1][k] = _mm256_fmadd_ps(in_b, key, acc[1][k]);
                }
            }
            for (size_t r = row; r < kR && r < row + 2; ++r) {
                const __m256* of = acc[r - row];
                _mm_store_ps(p + r * kKeys + first, sumsOf(of[0], of[1], of[2], of[3]));
            }
        }
    }
}

/// out [kR, D] += p [kR, n] times n values where they stand.
template <CacheType kType, size_t kR>
void addRows(const float* p, const uint8_t* values, size_t n, size_t head_dim, Rows out) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    for (size_t i = 0; i < head_dim; i += 16) {
        __m256 acc[kR][2];
#pragma GCC unroll 4
        for (size_t r = 0; r < kR; ++r) {
            acc[r][0] = _mm256_load_ps(out.data + r * out.stride + i);
            acc[r][1] = _mm256_load_ps(out.data + r * out.stride + i + 8);
        }
        for (size_t key = 0; key < n; ++key) {
            const uint8_t* value = values + key * vector_bytes;
            const __m256 low = loadCache<kType>(value, i, head_dim);
            const __m256 high = loadCache<kType>(value, i + 8, head_dim);
#pragma GCC unroll 4
            for (size_t r = 0; r < kR; ++r) {
                const __m256 weight = _mm256_broadcast_ss(p + r * kKeys + key);
                acc[r][0] = _mm256_fmadd_ps(weight, low, acc[r][0]);
                acc[r][1] = _mm256_fmadd_ps(weight, high, acc[r][1]);
            }
        }
#pragma GCC unroll 4
        for (size_t r = 0; r < kR; ++r) {
            _mm256_store_ps(out.data + r * out.stride + i, acc[r][0]);
            _mm256_store_ps(out.data + r * out.stride + i + 8, acc[r][1]);
        }
    }
}

/// c [kR, 8 kV] = a [kR, n] b [n, 8 kV], added to what is there where `add`.
template <size_t kR, size_t kV>
void multiplyBlock(const float* a,
                   size_t a_stride,
                   const float* b,
                   size_t b_stride,
                   size_t n,
                   float* c,
                   size_t c_stride,
                   bool add) {
    __m256 acc[kR][kV];
#pragma GCC unroll 6
    for (size_t r = 0; r < kR; ++r) {
#pragma GCC unroll 2
        for (size_t v = 0; v < kV; ++v) {
            acc[r][v] = add ? _mm256_load_ps(c + r * c_stride + 8 * v) : _mm256_setzero_ps();
        }
    }
    for (size_t i = 0; i < n; ++i) {
        __m256 row[kV];
#pragma GCC unroll 2
        for (size_t v = 0; v < kV; ++v) {
            row[v] = _mm256_load_ps(b + i * b_stride + 8 * v);
        }
#pragma GCC unroll 6
        for (size_t r = 0; r < kR; ++r) {
            const __m256 factor = _mm256_broadcast_ss(a + r * a_stride + i);
#pragma GCC unroll 2
            for (size_t v = 0; v < kV; ++v) {
                acc[r][v] = _mm256_fmadd_ps(factor, row[v], acc[r][v]);
            }
        }
    }
#pragma GCC unroll 6
    for (size_t r = 0; r < kR; ++r) {
#pragma GCC unroll 2
        for (size_t v = 0; v < kV; ++v) {
            _mm256_store_ps(c + r * c_stride + 8 * v, acc[r][v]);
        }
    }
}

/// c [kR, n_cols] = a [kR, n] b [n, n_cols] (+ c).
template <size_t kR>
void multiplyRows(ConstRows a, ConstRows b, size_t n, Rows c, size_t n_cols, bool add) {
    for (size_t col = 0; col < n_cols; col += 8 * kVectors) {
        multiplyBlock<kR, kVectors>(a.data, a.stride, b.data + col, b.stride, n, c.data + col,
                                    c.stride, add);
    }
}

/// The largest of n > 0 floats; NaN are left out, -inf where all are.
inline float largestOfRow(const float* p, size_t n) {
    const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
    __m256 largest = lowest;
    for (size_t i = 0; i < n; i += 8) {
        const __m256 v = _mm256_blendv_ps(lowest, loadFirst(p + i, n - i),
                                          _mm256_castsi256_ps(firstLanes(n - i)));
        // Of a NaN and a number, max takes the second operand.
        largest = _mm256_max_ps(v, largest);
    }
    return largestOf(largest);
}

/// Scores of one row into weights; its sum, its largest score and its output so far follow. Keys
/// from n_valid on do not count.
inline void softmaxRow(const Scratch& s, size_t m, size_t dim, size_t n_valid) {
    const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
    float* p = s.p + m * kKeys;
    __m256 largest = lowest;
    for (size_t i = 0; i < kKeys; i += 8) {
        const __m256 valid = _mm256_castsi256_ps(firstLanes(n_valid > i ? n_valid - i : 0));
        const __m256 scores = _mm256_blendv_ps(lowest, _mm256_load_ps(p + i), valid);
        _mm256_store_ps(p + i, scores);
        largest = _mm256_max_ps(largest, scores);
    }
    const float before = s.largest[m];
    const float block_largest = largestOf(largest);
    const float now = block_largest > before ? block_largest : before;
    const __m256 subtract = _mm256_set1_ps(now);
    __m256 sum = _mm256_setzero_ps();
    for (size_t i = 0; i < kKeys; i += 8) {
        const __m256 valid = _mm256_castsi256_ps(firstLanes(n_valid > i ? n_valid - i : 0));
        const __m256 weight =
            _mm256_and_ps(valid, exp(_mm256_sub_ps(_mm256_load_ps(p + i), subtract)));
        _mm256_store_ps(p + i, weight);
        sum = _mm256_add_ps(sum, weight);
    }
    const float block_sum = sumOf(sum);
    if (now == before) {
        s.sum[m] += block_sum;
        return;
    }
    const __m256 shrink = exp(_mm256_set1_ps(before - now));
    s.sum[m] = s.sum[m] * _mm256_cvtss_f32(shrink) + block_sum;
    s.largest[m] = now;
    for (size_t i = 0; i < dim; i += 8) {
        float* out = s.out + m * dim + i;
        _mm256_store_ps(out, _mm256_mul_ps(_mm256_load_ps(out), shrink));
    }
}

/// to[i] = from[i] * factor for n elements, then zeros up to n_padded.
inline void scaleInto(const float* from, size_t n, float factor, float* to, size_t n_padded) {
    const __m256 by = _mm256_set1_ps(factor);
    for (size_t i = 0; i < n_padded; i += 8) {
        _mm256_store_ps(to + i, _mm256_mul_ps(loadFirst(from + i, n > i ? n - i : 0), by));
    }
}

/// to[i] = from[i] * factor for n elements; nothing behind them is written.
inline void scaleOut(const float* from, size_t n, float factor, float* to) {
    const __m256 by = _mm256_set1_ps(factor);
    for (size_t i = 0; i < n; i += 8) {
        storeFirst(to + i, n - i, _mm256_mul_ps(_mm256_load_ps(from + i), by));
    }
}

/// These pieces as tile_attention.h takes them.
struct Tile {
    template <CacheType kType>
    static void loadKeys(const uint8_t* from, size_t n, size_t head_dim, float* to) {
        avx2::loadKeys<kType>(from, n, head_dim, to);
    }

    template <CacheType kType>
    static void loadValues(const uint8_t* from, size_t n, size_t head_dim, float* to) {
        avx2::loadValues<kType>(from, n, head_dim, to);
    }

    template <size_t kR>
    static void multiplyRows(ConstRows a, ConstRows b, size_t n, Rows c, size_t n_cols, bool add) {
        avx2::multiplyRows<kR>(a, b, n, c, n_cols, add);
    }

    template <CacheType kType, size_t kR>
    static void scoreRows(ConstRows q,
                          const uint8_t* keys,
                          const uint8_t* ahead,
                          size_t n,
                          size_t head_dim,
                          float* p) {
        avx2::scoreRows<kType, kR>(q, keys, ahead, n, head_dim, p);
    }

    template <CacheType kType, size_t kR>
    static void addRows(
        const float* p, const uint8_t* values, size_t n, size_t head_dim, Rows out) {
        avx2::addRows<kType, kR>(p, values, n, head_dim, out);
    }

    static constexpr auto softmaxRow = avx2::softmaxRow;
    static constexpr auto largestOfRow = avx2::largestOfRow;
    static constexpr auto scaleInto = avx2::scaleInto;
    static constexpr auto scaleOut = avx2::scaleOut;
};

}  // namespace
}  // namespace belvedere::kernels::avx2
