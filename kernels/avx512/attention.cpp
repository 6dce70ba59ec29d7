// SPDX-License-Identifier: Apache-2.0
// Softmax attention over the paged cache: 64 keys at a time, the softmax kept up to date as they
// come (Milakov & Gimelshein 2018, arXiv:1805.02867; in tiles as Dao et al. 2022,
// arXiv:2205.14135). The query heads that share a KV head are rows of one product, so each byte of
// the cache is read once for all of them and for all tokens of the tile.
//
//     rows m = (token, head of the group), M of them; D = head_dim rounded up to 16
//     S[m, j] = Q[m, :] . K[j, :]      product of [M, D] and K transposed [D, 64]
//     P = exp(S - max), 0 where j is behind the token
//     O[m, :] = O[m, :] exp(old max - max) + P[m, :] V    product of [M, 64] and [64, D]
//
// All in f32: the exact way and the fast one are the same here.

#include <immintrin.h>

#include "kernels/avx512/avx512_kernels.h"
#include "kernels/avx512/exp.h"
#include "kernels/avx512/transpose.h"

namespace belvedere::kernels::avx512 {
namespace {

constexpr size_t kTokenTile = 16;
/// Keys of one step; a page is two of them.
constexpr size_t kKeys = 64;
static_assert(kPageTokens % kKeys == 0);
/// Rows and vectors of the product's accumulators: 24 of the 32 registers.
constexpr size_t kRows = 6;
constexpr size_t kVectors = 4;

size_t paddedDim(size_t head_dim) {
    return (head_dim + 15) / 16 * 16;
}

__mmask16 firstLanes(size_t n) {
    return static_cast<__mmask16>(n >= 16 ? 0xffffU : (1U << n) - 1U);
}

/// The parts of a worker's scratch.
struct Scratch {
    float* q;        ///< [M, D], times the scale
    float* out;      ///< [M, D]
    float* p;        ///< [M, 64]: scores, then weights
    float* keys;     ///< [D, 64]
    float* values;   ///< [64, D]
    float* largest;  ///< [M]
    float* sum;      ///< [M]
};

Scratch divide(float* scratch, size_t n_rows, size_t dim) {
    const auto address = reinterpret_cast<uintptr_t>(scratch);
    float* next = scratch + (64 - address % 64) % 64 / sizeof(float);
    const auto take = [&next](size_t n) {
        float* part = next;
        next += (n + 15) / 16 * 16;
        return part;
    };
    Scratch s{};
    s.q = take(n_rows * dim);
    s.out = take(n_rows * dim);
    s.p = take(n_rows * kKeys);
    s.keys = take(dim * kKeys);
    s.values = take(kKeys * dim);
    s.largest = take(n_rows);
    s.sum = take(n_rows);
    return s;
}

/// Elements [i, i + 16) of a vector of the cache as f32; lanes outside `mask` are 0 and their
/// memory is not read.
template <CacheType kType>
__m512 loadCache(const void* vector, size_t i, __mmask16 mask) {
    if constexpr (kType == CacheType::F32) {
        return _mm512_maskz_loadu_ps(mask, static_cast<const float*>(vector) + i);
    } else {
        const __m256i halves =
            _mm256_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(vector) + i);
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
    const size_t vector_bytes = head_dim * (kType == CacheType::F32 ? 4 : 2);
    for (size_t key = 0; key < kKeys; key += 16) {
        for (size_t i = 0; i < head_dim; i += 16) {
            __m512 rows[16];
            const __mmask16 mask = firstLanes(head_dim - i);
#pragma GCC unroll 16
            for (size_t k = 0; k < 16; ++k) {
                const bool valid = key + k < n;
                rows[k] = loadCache<kType>(valid ? from + (key + k) * vector_bytes : from, i,
                                           valid ? mask : __mmask16{0});
            }
            transpose16(rows, to + i * kKeys + key, kKeys);
        }
    }
}

/// n values, head_dim apart, into [64, D]; the rest is 0.
template <CacheType kType>
void loadValues(const uint8_t* from, size_t n, size_t head_dim, float* to) {
    const size_t vector_bytes = head_dim * (kType == CacheType::F32 ? 4 : 2);
    const size_t dim = paddedDim(head_dim);
    for (size_t key = 0; key < kKeys; ++key) {
        for (size_t i = 0; i < dim; i += 16) {
            const __mmask16 mask = key < n ? firstLanes(head_dim - i) : __mmask16{0};
            _mm512_store_ps(to + key * dim + i,
                            loadCache<kType>(key < n ? from + key * vector_bytes : from, i, mask));
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

/// One matrix of rows, `n_cols` a multiple of 16.
struct Rows {
    float* data;
    size_t stride;
};

template <size_t kR>
void multiplyRows(Rows a, Rows b, size_t n, Rows c, size_t n_cols, bool add) {
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

/// c [n_rows, n_cols] = a [n_rows, n] b [n, n_cols] (+ c).
void multiply(Rows a, Rows b, size_t n, Rows c, size_t n_rows, size_t n_cols, bool add) {
    while (n_rows >= kRows) {
        multiplyRows<kRows>(a, b, n, c, n_cols, add);
        a.data += kRows * a.stride;
        c.data += kRows * c.stride;
        n_rows -= kRows;
    }
    switch (n_rows) {
        case 5:
            return multiplyRows<5>(a, b, n, c, n_cols, add);
        case 4:
            return multiplyRows<4>(a, b, n, c, n_cols, add);
        case 3:
            return multiplyRows<3>(a, b, n, c, n_cols, add);
        case 2:
            return multiplyRows<2>(a, b, n, c, n_cols, add);
        case 1:
            return multiplyRows<1>(a, b, n, c, n_cols, add);
        default:
            return;
    }
}

/// Scores of one row into weights; its sum, its largest score and its output so far follow. Keys
/// from n_valid on do not count.
void softmaxRow(const Scratch& s, size_t m, size_t dim, size_t n_valid) {
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

/// Tokens [t_begin, t_begin + n_tokens) and the query heads of one KV head.
template <CacheType kType>
void attendItem(const Attend& args, size_t t_begin, size_t n_tokens, size_t kv_head) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t n_rows = n_tokens * group;
    const size_t dim = paddedDim(args.head_dim);
    const Scratch s = divide(args.scratch, kTokenTile * group, dim);
    const __m512 scale = _mm512_set1_ps(args.scale);
    for (size_t m = 0; m < n_rows; ++m) {
        const float* q = args.q + (t_begin + m / group) * args.q_stride +
                         (kv_head * group + m % group) * args.head_dim;
        for (size_t i = 0; i < dim; i += 16) {
            const __m512 v = _mm512_maskz_loadu_ps(firstLanes(args.head_dim - i), q + i);
            _mm512_store_ps(s.q + m * dim + i, _mm512_mul_ps(v, scale));
            _mm512_store_ps(s.out + m * dim + i, _mm512_setzero_ps());
        }
        s.largest[m] = -__builtin_inff();
        s.sum[m] = 0;
    }
    const size_t vector_bytes = args.head_dim * (kType == CacheType::F32 ? 4 : 2);
    const size_t n_keys = args.first_pos + t_begin + n_tokens;
    for (size_t key = 0; key < n_keys; key += kKeys) {
        const size_t n = n_keys - key < kKeys ? n_keys - key : kKeys;
        const size_t offset = (kv_head * kPageTokens + key % kPageTokens) * vector_bytes;
        const size_t page = key / kPageTokens;
        loadKeys<kType>(static_cast<const uint8_t*>(args.k_pages[page]) + offset, n, args.head_dim,
                        s.keys);
        loadValues<kType>(static_cast<const uint8_t*>(args.v_pages[page]) + offset, n,
                          args.head_dim, s.values);
        // Tokens before `key` see none of these keys: their rows come first and are left out.
        const size_t past = args.first_pos + t_begin < key ? key - args.first_pos - t_begin : 0;
        const size_t first = past * group;
        const Rows p{s.p + first * kKeys, kKeys};
        multiply({s.q + first * dim, dim}, {s.keys, kKeys}, args.head_dim, p, n_rows - first, kKeys,
                 false);
        for (size_t m = first; m < n_rows; ++m) {
            const size_t n_valid = args.first_pos + t_begin + m / group + 1 - key;
            softmaxRow(s, m, dim, n_valid);
        }
        multiply(p, {s.values, dim}, n, {s.out + first * dim, dim}, n_rows - first, dim, true);
    }
    for (size_t m = 0; m < n_rows; ++m) {
        float* out = args.out + (t_begin + m / group) * args.out_stride +
                     (kv_head * group + m % group) * args.head_dim;
        const __m512 inverse = _mm512_set1_ps(1.0F / s.sum[m]);
        for (size_t i = 0; i < args.head_dim; i += 16) {
            _mm512_mask_storeu_ps(out + i, firstLanes(args.head_dim - i),
                                  _mm512_mul_ps(_mm512_load_ps(s.out + m * dim + i), inverse));
        }
    }
}

}  // namespace

size_t attendTokenTile(size_t n_tokens) noexcept {
    return n_tokens < kTokenTile ? n_tokens : kTokenTile;
}

size_t attendScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept {
    const size_t n_rows = kTokenTile * (n_heads / n_kv_heads);
    const size_t dim = paddedDim(head_dim);
    return 2 * n_rows * dim + n_rows * kKeys + 2 * dim * kKeys + 2 * (n_rows + 16) + 16;
}

void attend(const Attend& args) noexcept {
    const size_t tile = attendTokenTile(args.n_tokens);
    for (size_t item = args.item_begin; item < args.item_end; ++item) {
        const size_t kv_head = item % args.n_kv_heads;
        const size_t begin = item / args.n_kv_heads * tile;
        const size_t n = args.n_tokens - begin < tile ? args.n_tokens - begin : tile;
        switch (args.type) {
            case CacheType::F32:
                attendItem<CacheType::F32>(args, begin, n, kv_head);
                break;
            case CacheType::F16:
                attendItem<CacheType::F16>(args, begin, n, kv_head);
                break;
            case CacheType::BF16:
                attendItem<CacheType::BF16>(args, begin, n, kv_head);
                break;
        }
    }
}

}  // namespace belvedere::kernels::avx512
