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

#include "kernels/avx2/avx2_kernels.h"
#include "kernels/avx2/vectors.h"

namespace belvedere::kernels::avx2 {
namespace {

constexpr size_t kTokenTile = 16;
/// Keys of one step; a page is two of them.
constexpr size_t kKeys = 64;
static_assert(kPageTokens % kKeys == 0);
/// Rows and vectors of the product's accumulators: 12 of the 16 registers.
constexpr size_t kRows = 6;
constexpr size_t kVectors = 2;

size_t paddedDim(size_t head_dim) {
    return (head_dim + 15) / 16 * 16;
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

/// Elements [i, i + 8) of a vector of head_dim elements as f32; 0 behind its end, whose memory is
/// not read.
template <CacheType kType>
__m256 loadCache(const uint8_t* vector, size_t i, size_t head_dim) {
    if (i >= head_dim) {
        return _mm256_setzero_ps();
    }
    const size_t n = head_dim - i;
    if constexpr (kType == CacheType::F32) {
        return loadFirst(reinterpret_cast<const float*>(vector) + i, n);
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
    const size_t vector_bytes = head_dim * (kType == CacheType::F32 ? 4 : 2);
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
    const size_t vector_bytes = head_dim * (kType == CacheType::F32 ? 4 : 2);
    const size_t dim = paddedDim(head_dim);
    for (size_t key = 0; key < kKeys; ++key) {
        for (size_t i = 0; i < dim; i += 8) {
            const __m256 v = key < n ? loadCache<kType>(from + key * vector_bytes, i, head_dim)
                                     : _mm256_setzero_ps();
            _mm256_store_ps(to + key * dim + i, v);
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

/// One matrix of rows, `n_cols` a multiple of 16.
struct Rows {
    float* data;
    size_t stride;
};

template <size_t kR>
void multiplyRows(Rows a, Rows b, size_t n, Rows c, size_t n_cols, bool add) {
    for (size_t col = 0; col < n_cols; col += 8 * kVectors) {
        multiplyBlock<kR, kVectors>(a.data, a.stride, b.data + col, b.stride, n, c.data + col,
                                    c.stride, add);
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

/// Tokens [t_begin, t_begin + n_tokens) and the query heads of one KV head.
template <CacheType kType>
void attendItem(const Attend& args, size_t t_begin, size_t n_tokens, size_t kv_head) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t n_rows = n_tokens * group;
    const size_t dim = paddedDim(args.head_dim);
    const Scratch s = divide(args.scratch, kTokenTile * group, dim);
    const __m256 scale = _mm256_set1_ps(args.scale);
    for (size_t m = 0; m < n_rows; ++m) {
        const float* q = args.q + (t_begin + m / group) * args.q_stride +
                         (kv_head * group + m % group) * args.head_dim;
        for (size_t i = 0; i < dim; i += 8) {
            const __m256 v = loadFirst(q + i, args.head_dim > i ? args.head_dim - i : 0);
            _mm256_store_ps(s.q + m * dim + i, _mm256_mul_ps(v, scale));
            _mm256_store_ps(s.out + m * dim + i, _mm256_setzero_ps());
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
        const __m256 inverse = _mm256_set1_ps(1.0F / s.sum[m]);
        for (size_t i = 0; i < args.head_dim; i += 8) {
            storeFirst(out + i, args.head_dim - i,
                       _mm256_mul_ps(_mm256_load_ps(s.out + m * dim + i), inverse));
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

}  // namespace belvedere::kernels::avx2
