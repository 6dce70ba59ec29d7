// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention of prompts in products of bf16: queries, keys, weights of the softmax and values are
// rounded to bf16, sums and the softmax are f32. The walk over the keys is that of
// tile_attention.h. Few tokens go the same way as many, so that a token's bits do not depend on the
// batch it came in.
//
// All is transposed, so that 16 rows (token, head of the group) stand in the lanes and the softmax
// needs no sums across them:
//
//     S [64 keys, 16 rows] = K [64, D] Q^T;    O [D, 16 rows] = O * 2^(old max - max) + V^T P
//
// The factors are tiles of 1,024 bytes. K and V^T are lines: [16 lines][32 elements]. Q^T and P are
// columns: [16 pairs of elements][16 columns][2]. S is in powers of 2: the factor log2(e) stands in
// Q.
//
// What multiplies tiles comes as Products from the instruction set that includes this:
//
//     /// sums [16 n, 16] = lines [n][n_steps] tiles times columns [n_steps] tiles (+ sums)
//     void multiply(const uint8_t* lines, const uint8_t* columns, size_t n_steps, float* sums,
//                   size_t n, bool add);
//
// For files compiled with AVX512_BF16: everything has internal linkage.

#include "kernels/avx512/attention_tile.h"
#include "kernels/avx512/avx512_kernels.h"
#include "kernels/avx512/bf16.h"
#include "kernels/avx512/exp.h"

namespace belvedere::kernels::avx512::columns {
namespace {

constexpr size_t kLanes = 16;
/// What one tile sums over.
constexpr size_t kStep = 32;
constexpr size_t kTileBytes = 1024;
/// Of a line of either: 32 elements, or 16 pairs.
constexpr size_t kLineBytes = 64;
constexpr size_t kHalves = kKeys / kStep;

size_t roundUp(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

/// The parts of a worker's scratch. M: rows, in whole tiles; D: head_dim in whole tiles of 16 or
/// (elements of a sum) of 32.
struct Scratch {
    float* out;        ///< [M / 16][D, 16]
    float* largest;    ///< [M]
    float* sum;        ///< [M]
    int32_t* n_seen;   ///< [M], keys of the step
    float* scores;     ///< [64, 16]
    uint8_t* q;        ///< [M / 16][D / 32] tiles of columns
    uint8_t* keys;     ///< [64 / 16][D / 32] tiles of lines
    uint8_t* values;   ///< [D / 16][2] tiles of lines
    uint8_t* weights;  ///< [2] tiles of columns
};

struct Division {
    Scratch parts;
    size_t n_floats;
};

/// Without a scratch only the size counts.
Division divide(float* scratch, size_t group, size_t head_dim) {
    const size_t n_rows = roundUp(kWalkTokens * group, kLanes);
    const size_t sum_dim = roundUp(head_dim, kStep);
    size_t n_floats = 0;
    const auto take = [&](size_t n) {
        float* part = scratch == nullptr ? nullptr : scratch + n_floats;
        n_floats += roundUp(n, 16);
        return part;
    };
    Scratch s{};
    s.out = take(n_rows * paddedDim(head_dim));
    s.largest = take(n_rows);
    s.sum = take(n_rows);
    s.n_seen = reinterpret_cast<int32_t*>(take(n_rows));
    s.scores = take(kKeys * kLanes);
    s.q = reinterpret_cast<uint8_t*>(take(n_rows * sum_dim / 2));
    s.keys = reinterpret_cast<uint8_t*>(take(kKeys * sum_dim / 2));
    s.values = reinterpret_cast<uint8_t*>(take(kKeys * paddedDim(head_dim) / 2));
    s.weights = reinterpret_cast<uint8_t*>(take(kHalves * kTileBytes / sizeof(float)));
    return {s, n_floats};
}

/// Lanes [i, i + 16) of n.
__mmask16 lanesAt(size_t n, size_t i) {
    return firstLanes(n > i ? n - i : 0);
}

void beginRows(const Attend& args, const AttendItem& item, const Scratch& s) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t n_rows = item.n_tokens * group;
    const size_t sum_dim = roundUp(args.head_dim, kStep);
    const __m512 scale = _mm512_set1_ps(args.scale * kLog2E);
    for (size_t first = 0; first < n_rows; first += kLanes) {
        for (size_t i = 0; i < sum_dim; i += kStep) {
            __m512 rows[kLanes];
            for (size_t l = 0; l < kLanes; ++l) {
                const size_t m = first + l < n_rows ? first + l : n_rows - 1;
                const float* q = queryRow(args, item, m) + i;
                const __mmask16 high = lanesAt(args.head_dim, i + 16);
                const __m512 a = _mm512_maskz_loadu_ps(lanesAt(args.head_dim, i), q);
                const __m512 b = _mm512_maskz_loadu_ps(high, high == 0 ? q : q + 16);
                rows[l] = _mm512_castsi512_ps(
                    toBFloats(_mm512_mul_ps(a, scale), _mm512_mul_ps(b, scale)));
            }
            uint8_t* tile = s.q + (first * sum_dim + i * kLanes) * sizeof(uint16_t);
            transpose16(rows, reinterpret_cast<float*>(tile), 16);
        }
    }
    const size_t n_padded = roundUp(n_rows, kLanes);
    for (size_t i = 0; i < n_padded * paddedDim(args.head_dim); i += 16) {
        _mm512_store_ps(s.out + i, _mm512_setzero_ps());
    }
    for (size_t m = 0; m < n_padded; m += 16) {
        _mm512_store_ps(s.largest + m, _mm512_set1_ps(-__builtin_inff()));
        _mm512_store_ps(s.sum + m, _mm512_setzero_ps());
    }
}

/// n keys. Lines behind them hold anything.
template <CacheType kType>
void loadKeys(const uint8_t* from, size_t n, size_t head_dim, uint8_t* to) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    const size_t n_steps = roundUp(head_dim, kStep) / kStep;
    for (size_t key = 0; key < n; ++key) {
        const uint8_t* row = from + key * vector_bytes;
        uint8_t* line = to + key / 16 * n_steps * kTileBytes + key % 16 * kLineBytes;
        for (size_t step = 0; step < n_steps; ++step) {
            const size_t i = step * kStep;
            const __mmask16 high = lanesAt(head_dim, i + 16);
            const __m512 a = loadCache<kType>(row, i, head_dim, lanesAt(head_dim, i));
            const __m512 b = loadCache<kType>(row, high == 0 ? i : i + 16, head_dim, high);
            _mm512_store_si512(line + step * kTileBytes, toBFloats(a, b));
        }
    }
}

/// n values, 0 behind them.
template <CacheType kType>
void loadValues(const uint8_t* from, size_t n, size_t head_dim, uint8_t* to) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    for (size_t i = 0; i < head_dim; i += 16) {
        const __mmask16 mask = lanesAt(head_dim, i);
        for (size_t half = 0; half < kHalves; ++half) {
            const auto value = [&](size_t key) {
                return key < n ? loadCache<kType>(from + key * vector_bytes, i, head_dim, mask)
                               : _mm512_setzero_ps();
            };
            __m512 rows[16];
            for (size_t p = 0; p < kStep / 2; ++p) {
                const size_t key = half * kStep + 2 * p;
                rows[p] = _mm512_castsi512_ps(pairsOf(value(key), value(key + 1)));
            }
            uint8_t* tile = to + (i / 16 * kHalves + half) * kTileBytes;
            transpose16(rows, reinterpret_cast<float*>(tile), 16);
        }
    }
}

/// How many keys of the step each row attends to.
void countSeen(const Attend& args, const AttendItem& item, const KeyWalk& walk, int32_t* n_seen) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t n_padded = roundUp(item.n_tokens * group, kLanes);
    for (size_t m = 0; m < n_padded; m += 16) {
        _mm512_store_si512(n_seen + m, _mm512_setzero_si512());
    }
    for (size_t run = 0; run < walk.n_runs; ++run) {
        for (size_t t = walk.runs[run].begin; t < walk.runs[run].end; ++t) {
            const size_t n = walk.seenBy(t) - walk.key;
            for (size_t m = t * group; m < (t + 1) * group; ++m) {
                n_seen[m] = static_cast<int32_t>(n < walk.n_keys ? n : walk.n_keys);
            }
        }
    }
}

/// Scores into weights; the largest score and the sum of each row follow. Returns by what the
/// output so far shrinks.
template <bool kAllSeen>
__m512 softmax(const Scratch& s, size_t first_row, __m512i n_seen) {
    const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
    const auto isSeen = [&](size_t key) {
        return _mm512_cmplt_epi32_mask(_mm512_set1_epi32(static_cast<int>(key)), n_seen);
    };
    const __m512 before = _mm512_load_ps(s.largest + first_row);
    __m512 largest[4] = {before, lowest, lowest, lowest};
    for (size_t key = 0; key < kKeys; key += 4) {
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; ++j) {
            __m512 score = _mm512_load_ps(s.scores + (key + j) * kLanes);
            if constexpr (!kAllSeen) {
                score = _mm512_mask_mov_ps(lowest, isSeen(key + j), score);
            }
            largest[j] = _mm512_max_ps(largest[j], score);
        }
    }
    const __m512 now =
        _mm512_max_ps(_mm512_max_ps(largest[0], largest[1]), _mm512_max_ps(largest[2], largest[3]));
    __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (size_t key = 0; key < kKeys; key += 2) {
        __m512 weights[2];
#pragma GCC unroll 2
        for (size_t j = 0; j < 2; ++j) {
            const __m512 score = _mm512_load_ps(s.scores + (key + j) * kLanes);
            weights[j] = powerOf2(_mm512_sub_ps(score, now));
            if constexpr (!kAllSeen) {
                weights[j] = _mm512_maskz_mov_ps(isSeen(key + j), weights[j]);
            }
            sums[j] = _mm512_add_ps(sums[j], weights[j]);
        }
        _mm512_store_si512(s.weights + key / 2 * kLineBytes, pairsOf(weights[0], weights[1]));
    }
    // Where nothing was seen yet, before - now is no number.
    const __mmask16 changed = _mm512_cmp_ps_mask(before, now, _CMP_NEQ_UQ);
    const __m512 shrink =
        _mm512_mask_mov_ps(_mm512_set1_ps(1.0F), changed, powerOf2(_mm512_sub_ps(before, now)));
    const __m512 sum = _mm512_load_ps(s.sum + first_row);
    _mm512_store_ps(s.sum + first_row,
                    _mm512_fmadd_ps(sum, shrink, _mm512_add_ps(sums[0], sums[1])));
    _mm512_store_ps(s.largest + first_row, now);
    return shrink;
}

void shrinkRows(float* out, size_t dim, __m512 shrink) {
    if (_mm512_cmp_ps_mask(shrink, _mm512_set1_ps(1.0F), _CMP_NEQ_UQ) == 0) {
        return;
    }
    for (size_t i = 0; i < dim; ++i) {
        _mm512_store_ps(out + i * kLanes, _mm512_mul_ps(_mm512_load_ps(out + i * kLanes), shrink));
    }
}

/// The keys of one step with all rows of the item.
template <class Products>
void attendStep(const Attend& args,
                const AttendItem& item,
                const Scratch& s,
                const KeyWalk& walk,
                Products& products) {
    const size_t n_rows = item.n_tokens * (args.n_heads / args.n_kv_heads);
    const size_t dim = paddedDim(args.head_dim);
    const size_t n_steps = roundUp(args.head_dim, kStep) / kStep;
    const size_t n_key_tiles = roundUp(walk.n_keys, 16) / 16;
    countSeen(args, item, walk, s.n_seen);
    for (size_t first = 0; first < n_rows; first += kLanes) {
        const __m512i n_seen = _mm512_load_si512(s.n_seen + first);
        if (_mm512_test_epi32_mask(n_seen, n_seen) == 0) {
            continue;
        }
        products.multiply(s.keys, s.q + first / kLanes * n_steps * kTileBytes, n_steps, s.scores,
                          n_key_tiles, false);
        const bool all_seen =
            _mm512_cmplt_epi32_mask(n_seen, _mm512_set1_epi32(static_cast<int>(kKeys))) == 0;
        const __m512 shrink =
            all_seen ? softmax<true>(s, first, n_seen) : softmax<false>(s, first, n_seen);
        float* out = s.out + first * dim;
        shrinkRows(out, dim, shrink);
        products.multiply(s.values, s.weights, kHalves, out, dim / 16, true);
    }
}

/// Rows to where they belong: divided by the sum of the weights, or as partials.
void endRows(const Attend& args, const AttendItem& item, const Scratch& s) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t n_rows = item.n_tokens * group;
    const size_t dim = paddedDim(args.head_dim);
    for (size_t first = 0; first < n_rows; first += kLanes) {
        const size_t n_lanes = n_rows - first < kLanes ? n_rows - first : kLanes;
        float* to[kLanes];
        alignas(64) float factors[kLanes] = {};
        for (size_t l = 0; l < n_lanes; ++l) {
            const size_t m = first + l;
            const OutputRow out = outputRow(args, item, m, s.largest[m] / kLog2E, s.sum[m]);
            to[l] = out.at;
            factors[l] = out.factor;
        }
        const __m512 factor = _mm512_load_ps(factors);
        for (size_t i = 0; i < args.head_dim; i += 16) {
            __m512 columns[16];
            for (size_t j = 0; j < 16; ++j) {
                columns[j] =
                    _mm512_mul_ps(_mm512_load_ps(s.out + (first * dim) + (i + j) * kLanes), factor);
            }
            alignas(64) float rows[kLanes][16];
            transpose16(columns, rows[0], 16);
            for (size_t l = 0; l < n_lanes; ++l) {
                _mm512_mask_storeu_ps(to[l] + i, lanesAt(args.head_dim, i),
                                      _mm512_load_ps(rows[l]));
            }
        }
    }
}

template <CacheType kType, class Products>
void attendItem(const Attend& args, const AttendItem& item, Products& products) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const Scratch s = divide(aligned(args.scratch), group, args.head_dim).parts;
    beginRows(args, item, s);
    const KeyRange range = keyRange(args, item.split);
    const size_t row_bytes = cacheRowBytes(kType, args.head_dim);
    KeyWalk walk(args, item.t_begin, item.n_tokens, item.kv_head, range.begin, range.end);
    while (walk.next()) {
        loadKeys<kType>(stepRows(args.k_pages, item, walk, row_bytes), walk.n_keys, args.head_dim,
                        s.keys);
        loadValues<kType>(stepRows(args.v_pages, item, walk, row_bytes), walk.n_keys, args.head_dim,
                          s.values);
        attendStep(args, item, s, walk, products);
    }
    endRows(args, item, s);
}

/// The exact way is that in f32.
template <class Products>
void attend(const Attend& args) {
    if (args.exact) {
        return avx512::attend(args);
    }
    Products products;
    forEachItem(args, [&](const AttendItem& item, auto type) {
        attendItem<decltype(type)::kType>(args, item, products);
    });
}

/// Enough for both ways.
inline size_t scratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) {
    const size_t exact = avx512::attendScratchFloats(n_heads, n_kv_heads, head_dim);
    const size_t rounded = divide(nullptr, n_heads / n_kv_heads, head_dim).n_floats + 16;
    return exact > rounded ? exact : rounded;
}

}  // namespace
}  // namespace belvedere::kernels::avx512::columns
