// SPDX-License-Identifier: Apache-2.0
#pragma once

// What attention and the index branch of MSA are made of: 64 keys of a page as f32, small products
// of f32 matrices, a softmax that is kept up to date. For files compiled with this instruction set
// only: everything has internal linkage.

#include <immintrin.h>

#include "kernels/avx512/exp.h"
#include "kernels/avx512/lanes.h"
#include "kernels/avx512/transpose.h"
#include "kernels/fetch_ahead.h"
#include "kernels/tile_attention.h"

namespace belvedere::kernels::avx512 {
namespace {

/// Vectors of a row of the product's accumulators: with kRows rows, 24 of the 32 registers.
constexpr size_t kVectors = 4;

/// Elements [i, i + 16) of a row of the cache as f32; lanes outside `mask` are 0 and their memory
/// is not read.
template <CacheType kType>
__m512 loadCache(const uint8_t* row, size_t i, size_t head_dim, __mmask16 mask) {
    if constexpr (kType == CacheType::F32) {
        return _mm512_maskz_loadu_ps(mask, reinterpret_cast<const float*>(row) + i);
    } else if constexpr (kType == CacheType::Q8_0) {
        // A mask of no lanes is a row that is not there: its scale may be no number.
        const __m512 numbers =
            _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, row + i)));
        const __m512 scale =
            _mm512_cvtph_ps(_mm256_set1_epi16(static_cast<short>(scaleBits(row, i, head_dim))));
        return _mm512_maskz_mul_ps(mask, numbers, scale);
    } else {
        const __m256i halves =
            _mm256_maskz_loadu_epi16(mask, reinterpret_cast<const uint16_t*>(row) + i);
        if constexpr (kType == CacheType::F16) {
            return _mm512_cvtph_ps(halves);
        } else {
            return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
        }
    }
}

/// n keys, head_dim apart, into [D, 64]; the rest is 0.
template <CacheType kType>
void loadKeys(const uint8_t* from, size_t n, size_t head_dim, float* to) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    for (size_t key = 0; key < kKeys; key += 16) {
        for (size_t i = 0; i < head_dim; i += 16) {
            __m512 rows[16];
            const __mmask16 mask = firstLanes(head_dim - i);
#pragma GCC unroll 16
            for (size_t k = 0; k < 16; ++k) {
                const bool valid = key + k < n;
                rows[k] = loadCache<kType>(valid ? from + (key + k) * vector_bytes : from, i,
                                           head_dim, valid ? mask : __mmask16{0});
            }
            transpose16(rows, to + i * kKeys + key, kKeys);
        }
    }
}

/// n values, head_dim apart, into [64, D]; the rest is 0.
template <CacheType kType>
void loadValues(const uint8_t* from, size_t n, size_t head_dim, float* to) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    const size_t dim = paddedDim(head_dim);
    for (size_t key = 0; key < kKeys; ++key) {
        for (size_t i = 0; i < dim; i += 16) {
            const __mmask16 mask = key < n ? firstLanes(head_dim - i) : __mmask16{0};
            _mm512_store_ps(to + key * dim + i,
                            loadCache<kType>(key < n ? from + key * vector_bytes : from,
                                             i < head_dim ? i : 0, head_dim, mask));
        }
    }
}

/// Of four vectors, lane l of each 128 bits of the result holds the sum of vector l's lanes there.
inline __m512 sumInLanes(__m512 a, __m512 b, __m512 c, __m512 d) {
    const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    return _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
}

/// Of four results of sumInLanes, the sums over their four parts, one behind the other.
inline __m512 sumOfLanes(__m512 a, __m512 b, __m512 c, __m512 d) {
    const __m512 ab =
        _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    const __m512 cd =
        _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
}

/// Products of kR rows with four keys, as sumInLanes leaves them.
template <CacheType kType, size_t kR>
void scoreFourKeys(ConstRows q, const uint8_t* const* keys, size_t head_dim, __m512* sums) {
    __m512 acc[kR][4] = {};
    for (size_t i = 0; i < head_dim; i += 16) {
        const __mmask16 mask = firstLanes(head_dim - i);
        __m512 key[4];
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; ++k) {
            key[k] = loadCache<kType>(keys[k], i, head_dim, mask);
        }
#pragma GCC unroll 4
        for (size_t r = 0; r < kR; ++r) {
            const __m512 row = _mm512_maskz_loadu_ps(mask, q.data + r * q.stride + i);
#pragma GCC unroll 4
            for (size_t k = 0; k < 4; ++k) {
                acc[r][k] = _mm512_fmadd_ps(row, key[k], acc[r][k]);
            }
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kR; ++r) {
        sums[r] = sumInLanes(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
    }
}

/// p [kR, n] = q [kR, head_dim] times n keys where they stand. Up to 15 elements of a row of p
/// behind the n-th are written too. Meanwhile as many rows of the cache are fetched from `ahead`.
template <CacheType kType, size_t kR>
void scoreRows(
    ConstRows q, const uint8_t* keys, const uint8_t* ahead, size_t n, size_t head_dim, float* p) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    for (size_t first = 0; first < n; first += 16) {
        __m512 sums[4][kR];
#pragma GCC unroll 4
        for (size_t four = 0; four < 4; ++four) {
            const uint8_t* at[4];
            for (size_t k = 0; k < 4; ++k) {
                // The last key again in place of those that are not there.
                const size_t key = first + 4 * four + k;
                at[k] = keys + (key < n ? key : n - 1) * vector_bytes;
            }
            fetchAhead(ahead + (first + 4 * four) * vector_bytes, 4 * vector_bytes);
            scoreFourKeys<kType, kR>(q, at, head_dim, sums[four]);
        }
#pragma GCC unroll 4
        for (size_t r = 0; r < kR; ++r) {
            _mm512_store_ps(p + r * kKeys + first,
                            sumOfLanes(sums[0][r], sums[1][r], sums[2][r], sums[3][r]));
        }
    }
}

/// out [kR, 16 kV] += p [kR, n] times elements [i, i + 16 kV) of n values where they stand.
template <CacheType kType, size_t kR, size_t kV>
void addValues(
    const float* p, const uint8_t* values, size_t n, size_t head_dim, size_t i, Rows out) {
    __m512 acc[kR][kV];
#pragma GCC unroll 4
    for (size_t r = 0; r < kR; ++r) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kV; ++v) {
            acc[r][v] = _mm512_load_ps(out.data + r * out.stride + i + 16 * v);
        }
    }
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    const __mmask16 last = firstLanes(head_dim - i - 16 * (kV - 1));
    for (size_t key = 0; key < n; ++key) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kV; ++v) {
            const __m512 value = loadCache<kType>(values + key * vector_bytes, i + 16 * v, head_dim,
                                                  v + 1 == kV ? last : __mmask16{0xffff});
#pragma GCC unroll 4
            for (size_t r = 0; r < kR; ++r) {
                acc[r][v] = _mm512_fmadd_ps(_mm512_set1_ps(p[r * kKeys + key]), value, acc[r][v]);
            }
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kR; ++r) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kV; ++v) {
            _mm512_store_ps(out.data + r * out.stride + i + 16 * v, acc[r][v]);
        }
    }
}

/// out [kR, D] += p [kR, n] times n values where they stand.
template <CacheType kType, size_t kR>
void addRows(const float* p, const uint8_t* values, size_t n, size_t head_dim, Rows out) {
    for (size_t i = 0; i < head_dim; i += 64) {
        switch (head_dim - i > 48 ? 4 : (head_dim - i + 15) / 16) {
            case 4:
                addValues<kType, kR, 4>(p, values, n, head_dim, i, out);
                break;
            case 3:
                addValues<kType, kR, 3>(p, values, n, head_dim, i, out);
                break;
            case 2:
                addValues<kType, kR, 2>(p, values, n, head_dim, i, out);
                break;
            default:
                addValues<kType, kR, 1>(p, values, n, head_dim, i, out);
                break;
        }
    }
}

/// c [kR, 16 kV] = a [kR, n] b [n, 16 kV], added to what is there where `add`.
template <size_t kR, size_t kV>
void multiplyBlock(const float* a,
                   size_t a_stride,
                   const float* b,
                   size_t b_stride,
                   size_t n,
                   float* c,
                   size_t c_stride,
                   bool add) {
    __m512 acc[kR][kV];
#pragma GCC unroll 6
    for (size_t r = 0; r < kR; ++r) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kV; ++v) {
            acc[r][v] = add ? _mm512_load_ps(c + r * c_stride + 16 * v) : _mm512_setzero_ps();
        }
    }
    for (size_t i = 0; i < n; ++i) {
        __m512 row[kV];
#pragma GCC unroll 4
        for (size_t v = 0; v < kV; ++v) {
            row[v] = _mm512_load_ps(b + i * b_stride + 16 * v);
        }
#pragma GCC unroll 6
        for (size_t r = 0; r < kR; ++r) {
            const __m512 factor = _mm512_set1_ps(a[r * a_stride + i]);
#pragma GCC unroll 4
            for (size_t v = 0; v < kV; ++v) {
                acc[r][v] = _mm512_fmadd_ps(factor, row[v], acc[r][v]);
            }
        }
    }
#pragma GCC unroll 6
    for (size_t r = 0; r < kR; ++r) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kV; ++v) {
            _mm512_store_ps(c + r * c_stride + 16 * v, acc[r][v]);
        }
    }
}

/// c [kR, n_cols] = a [kR, n] b [n, n_cols] (+ c).
template <size_t kR>
void multiplyRows(ConstRows a, ConstRows b, size_t n, Rows c, size_t n_cols, bool add) {
    for (size_t col = 0; col < n_cols; col += 16 * kVectors) {
        switch (n_cols - col >= 16 * kVectors ? kVectors : (n_cols - col) / 16) {
            case 4:
                multiplyBlock<kR, 4>(a.data, a.stride, b.data + col, b.stride, n, c.data + col,
                                     c.stride, add);
                break;
            case 3:
                multiplyBlock<kR, 3>(a.data, a.stride, b.data + col, b.stride, n, c.data + col,
                                     c.stride, add);
                break;
            case 2:
                multiplyBlock<kR, 2>(a.data, a.stride, b.data + col, b.stride, n, c.data + col,
                                     c.stride, add);
                break;
            default:
                multiplyBlock<kR, 1>(a.data, a.stride, b.data + col, b.stride, n, c.data + col,
                                     c.stride, add);
                break;
        }
    }
}

/// The largest of n > 0 floats; NaN are left out, -inf where all are.
inline float largestOfRow(const float* p, size_t n) {
    __m512 largest = _mm512_set1_ps(-__builtin_inff());
    for (size_t i = 0; i < n; i += 16) {
        // Of a NaN and a number, max takes the second operand.
        largest = _mm512_max_ps(_mm512_mask_loadu_ps(largest, firstLanes(n - i), p + i), largest);
    }
    return _mm512_reduce_max_ps(largest);
}

/// Scores of one row into weights; its sum, its largest score and its output so far follow. Keys
/// from n_valid on do not count.
inline void softmaxRow(const Scratch& s, size_t m, size_t dim, size_t n_valid) {
    const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
    float* p = s.p + m * kKeys;
    __m512 scores[kKeys / 16];
    __m512 largest = lowest;
#pragma GCC unroll 4
    for (size_t v = 0; v < kKeys / 16; ++v) {
        const __mmask16 mask = firstLanes(n_valid > 16 * v ? n_valid - 16 * v : 0);
        scores[v] = _mm512_mask_loadu_ps(lowest, mask, p + 16 * v);
        largest = _mm512_max_ps(largest, scores[v]);
    }
    const float before = s.largest[m];
    const float block_largest = _mm512_reduce_max_ps(largest);
    const float now = block_largest > before ? block_largest : before;
    const __m512 subtract = _mm512_set1_ps(now);
    __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 4
    for (size_t v = 0; v < kKeys / 16; ++v) {
        const __mmask16 mask = firstLanes(n_valid > 16 * v ? n_valid - 16 * v : 0);
        const __m512 weight = _mm512_maskz_mov_ps(mask, exp(_mm512_sub_ps(scores[v], subtract)));
        _mm512_store_ps(p + 16 * v, weight);
        sum = _mm512_add_ps(sum, weight);
    }
    const float block_sum = _mm512_reduce_add_ps(sum);
    if (now == before) {
        s.sum[m] += block_sum;
        return;
    }
    const __m512 shrink = exp(_mm512_set1_ps(before - now));
    s.sum[m] = s.sum[m] * _mm512_cvtss_f32(shrink) + block_sum;
    s.largest[m] = now;
    for (size_t i = 0; i < dim; i += 16) {
        float* out = s.out + m * dim + i;
        _mm512_store_ps(out, _mm512_mul_ps(_mm512_load_ps(out), shrink));
    }
}

/// to[i] = from[i] * factor for n elements, then zeros up to n_padded.
inline void scaleInto(const float* from, size_t n, float factor, float* to, size_t n_padded) {
    const __m512 by = _mm512_set1_ps(factor);
    for (size_t i = 0; i < n_padded; i += 16) {
        const __m512 v = _mm512_maskz_loadu_ps(firstLanes(n > i ? n - i : 0), from + i);
        _mm512_store_ps(to + i, _mm512_mul_ps(v, by));
    }
}

/// to[i] = from[i] * factor for n elements; nothing behind them is written.
inline void scaleOut(const float* from, size_t n, float factor, float* to) {
    const __m512 by = _mm512_set1_ps(factor);
    for (size_t i = 0; i < n; i += 16) {
        _mm512_mask_storeu_ps(to + i, firstLanes(n - i),
                              _mm512_mul_ps(_mm512_load_ps(from + i), by));
    }
}

/// These pieces as tile_attention.h takes them.
struct Tile {
    template <CacheType kType>
    static void loadKeys(const uint8_t* from, size_t n, size_t head_dim, float* to) {
        avx512::loadKeys<kType>(from, n, head_dim, to);
    }

    template <CacheType kType>
    static void loadValues(const uint8_t* from, size_t n, size_t head_dim, float* to) {
        avx512::loadValues<kType>(from, n, head_dim, to);
    }

    template <size_t kR>
    static void multiplyRows(ConstRows a, ConstRows b, size_t n, Rows c, size_t n_cols, bool add) {
        avx512::multiplyRows<kR>(a, b, n, c, n_cols, add);
    }

    template <CacheType kType, size_t kR>
    static void scoreRows(ConstRows q,
                          const uint8_t* keys,
                          const uint8_t* ahead,
                          size_t n,
                          size_t head_dim,
                          float* p) {
        avx512::scoreRows<kType, kR>(q, keys, ahead, n, head_dim, p);
    }

    template <CacheType kType, size_t kR>
    static void addRows(
        const float* p, const uint8_t* values, size_t n, size_t head_dim, Rows out) {
        avx512::addRows<kType, kR>(p, values, n, head_dim, out);
    }

    static constexpr auto softmaxRow = avx512::softmaxRow;
    static constexpr auto largestOfRow = avx512::largestOfRow;
    static constexpr auto scaleInto = avx512::scaleInto;
    static constexpr auto scaleOut = avx512::scaleOut;
};

}  // namespace
}  // namespace belvedere::kernels::avx512
