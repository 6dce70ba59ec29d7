// SPDX-License-Identifier: Apache-2.0
// Attention in tiles of bf16: queries, keys, weights of the softmax and values are rounded to bf16,
// sums and the softmax are f32. The walk over the keys and the softmax are those of
// tile_attention.h. Few tokens go the same way as many, so that a token's bits do not depend on the
// batch it came in. The exact way is AVX-512's.
//
//     S [16 rows, 64 keys] = Q [16, D] K;    O [16, D] += P [16, 64] V
//     K as tiles [D / 32][4 of 16 keys], elements in pairs; V as tiles [2 of 32 keys][D / 16], keys
//     in pairs; what is missing is 0
//
// The last tile of a run of rows reaches over its end: the lines behind it are computed too, and
// dropped.

#include "kernels/amx/amx_kernels.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/attention_tile.h"
#include "kernels/avx512/avx512_kernels.h"

namespace belvedere::kernels::amx {
namespace {

using avx512::firstLanes;

constexpr size_t kLines = 16;  ///< of a tile

/// Elements of a head, in whole tiles of bf16.
size_t tiledDim(size_t head_dim) {
    return (head_dim + kTileCols - 1) / kTileCols * kTileCols;
}

/// The parts of a worker's scratch; those of rows have kLines more than there are.
struct TileScratch {
    Scratch floats;     ///< out, p, largest and sum
    uint16_t* q;        ///< [M, tiledDim] bf16, times the scale
    uint16_t* weights;  ///< [M, 64] bf16
    uint8_t* keys;
    uint8_t* values;
};

/// With no scratch only the size counts.
struct Division {
    TileScratch parts;
    size_t n_floats;
};

Division divideTiles(float* scratch, size_t group, size_t head_dim) {
    const size_t n_rows = kWalkTokens * group + kLines;
    const size_t dim = paddedDim(head_dim);
    size_t n_floats = 0;
    const auto take = [&](size_t n) {
        float* part = scratch == nullptr ? nullptr : scratch + n_floats;
        n_floats += (n + 15) / 16 * 16;
        return part;
    };
    TileScratch s{};
    s.floats.out = take(n_rows * dim);
    s.floats.p = take(n_rows * kKeys);
    s.floats.largest = take(n_rows);
    s.floats.sum = take(n_rows);
    s.q = reinterpret_cast<uint16_t*>(take(n_rows * tiledDim(head_dim) / 2));
    s.weights = reinterpret_cast<uint16_t*>(take(n_rows * kKeys / 2));
    s.keys = reinterpret_cast<uint8_t*>(take(kKeys * tiledDim(head_dim) / 2));
    s.values = reinterpret_cast<uint8_t*>(take(kKeys * dim / 2));
    return {s, n_floats};
}

/// Lanes [i, i + 16) of n.
__mmask16 lanesAt(size_t n, size_t i) {
    return firstLanes(n > i ? n - i : 0);
}

/// Elements [i, i + 32) of a row of the cache as bf16, 0 from `head_dim` on.
template <CacheType kType>
__m512i loadBFloats(const uint8_t* row, size_t i, size_t head_dim) {
    if constexpr (kType == CacheType::BF16) {
        const size_t n = head_dim - i;
        const auto mask = static_cast<__mmask32>(n >= 32 ? ~0U : (1U << n) - 1U);
        return _mm512_maskz_loadu_epi16(mask, row + 2 * i);
    } else {
        const __m512 low = avx512::loadCache<kType>(row, i, head_dim, lanesAt(head_dim, i));
        const __mmask16 rest = lanesAt(head_dim, i + 16);
        const __m512 high = avx512::loadCache<kType>(row, rest == 0 ? i : i + 16, head_dim, rest);
        const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
        return reinterpret_cast<const __m512i&>(both);
    }
}

/// n keys, 0 behind them.
template <CacheType kType>
void loadKeys(const uint8_t* from, size_t n, size_t head_dim, uint8_t* to) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    for (size_t i = 0; i < head_dim; i += kTileCols) {
        for (size_t first = 0; first < kKeys; first += 16) {
            __m512 rows[16];
            for (size_t k = 0; k < 16; ++k) {
                const size_t key = first + k;
                rows[k] = key < n ? _mm512_castsi512_ps(
                                        loadBFloats<kType>(from + key * vector_bytes, i, head_dim))
                                  : _mm512_setzero_ps();
            }
            uint8_t* tile = to + (i / kTileCols * 4 + first / 16) * kTileBytes;
            avx512::transpose16(rows, reinterpret_cast<float*>(tile), 16);
        }
    }
}

/// n values, 0 behind them.
template <CacheType kType>
void loadValues(const uint8_t* from, size_t n, size_t head_dim, uint8_t* to) {
    const size_t vector_bytes = cacheRowBytes(kType, head_dim);
    const size_t n_strips = paddedDim(head_dim) / 16;
    for (size_t key = 0; key < kKeys; key += 2) {
        for (size_t strip = 0; strip < n_strips; ++strip) {
            const size_t i = 16 * strip;
            const __mmask16 mask = lanesAt(head_dim, i);
            const auto value = [&](size_t k) {
                return k < n ? avx512::loadCache<kType>(from + k * vector_bytes, i, head_dim, mask)
                             : _mm512_setzero_ps();
            };
            uint8_t* tile = to + (key / kTileCols * n_strips + strip) * kTileBytes;
            storePair(tile, key % kTileCols / 2, value(key), value(key + 1));
        }
    }
}

/// 32 floats as bf16.
void storeBFloats(uint16_t* to, __m512 low, __m512 high) {
    const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
    _mm512_storeu_si512(to, reinterpret_cast<const __m512i&>(both));
}

void beginRows(const Attend& args, const AttendItem& item, const TileScratch& s) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t dim = paddedDim(args.head_dim);
    const size_t q_dim = tiledDim(args.head_dim);
    const __m512 scale = _mm512_set1_ps(args.scale);
    for (size_t m = 0; m < item.n_tokens * group; ++m) {
        const float* q = args.q + (item.t_begin + m / group) * args.q_stride +
                         (item.kv_head * group + m % group) * args.head_dim;
        for (size_t i = 0; i < q_dim; i += kTileCols) {
            const auto part = [&](size_t at) {
                const __mmask16 mask = lanesAt(args.head_dim, at);
                return _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, mask == 0 ? q : q + at), scale);
            };
            storeBFloats(s.q + m * q_dim + i, part(i), part(i + 16));
        }
        avx512::scaleInto(q, 0, 0.0F, s.floats.out + m * dim, dim);
        s.floats.largest[m] = -__builtin_inff();
        s.floats.sum[m] = 0;
    }
}

/// p = scores of rows [m, m + 16) with the keys.
void scoreRows(const TileScratch& s, size_t m, size_t head_dim, StripTiles& tiles) {
    const size_t q_dim = tiledDim(head_dim);
    tiles.zero();
    for (size_t i = 0; i < q_dim; i += kTileCols) {
        tiles.multiply(s.q + m * q_dim + i, q_dim * sizeof(uint16_t),
                       s.keys + i / kTileCols * 4 * kTileBytes, kTileBytes, 4);
    }
    tiles.store(s.floats.p + m * kKeys, kKeys, 4);
}

/// out += weights times values for rows [m, m + n), n <= 16.
void addValues(const TileScratch& s, size_t m, size_t n, size_t head_dim, StripTiles& tiles) {
    const size_t dim = paddedDim(head_dim);
    const size_t n_strips = dim / 16;
    alignas(64) float spare[kLines][64];
    for (size_t strip = 0; strip < n_strips; strip += 4) {
        const size_t n_wide = n_strips - strip < 4 ? n_strips - strip : 4;
        float* out = s.floats.out + m * dim + 16 * strip;
        tiles.load(out, dim, n_wide);
        for (size_t half = 0; half < kKeys / kTileCols; ++half) {
            tiles.multiply(s.weights + m * kKeys + half * kTileCols, kKeys * sizeof(uint16_t),
                           s.values + (half * n_strips + strip) * kTileBytes, kTileBytes, n_wide);
        }
        if (n == kLines) {
            tiles.store(out, dim, n_wide);
            continue;
        }
        tiles.store(spare[0], 64, n_wide);
        for (size_t line = 0; line < n; ++line) {
            __builtin_memcpy(out + line * dim, spare[line], n_wide * 64);
        }
    }
}

/// The keys of one step with rows [begin, end) of the tile.
void attendStep(const Attend& args,
                const TileScratch& s,
                const KeyWalk& walk,
                size_t begin,
                size_t end,
                StripTiles& tiles) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t dim = paddedDim(args.head_dim);
    for (size_t m = begin; m < end; m += kLines) {
        scoreRows(s, m, args.head_dim, tiles);
    }
    for (size_t m = begin; m < end; ++m) {
        const size_t n_seen = walk.seenBy(m / group) - walk.key;
        avx512::softmaxRow(s.floats, m, dim, n_seen < walk.n_keys ? n_seen : walk.n_keys);
        const float* p = s.floats.p + m * kKeys;
        for (size_t i = 0; i < kKeys; i += kTileCols) {
            storeBFloats(s.weights + m * kKeys + i, _mm512_load_ps(p + i),
                         _mm512_load_ps(p + i + 16));
        }
    }
    for (size_t m = begin; m < end; m += kLines) {
        addValues(s, m, end - m < kLines ? end - m : kLines, args.head_dim, tiles);
    }
}

template <CacheType kType>
void attendItem(const Attend& args, const AttendItem& item, StripTiles& tiles) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const TileScratch s = divideTiles(aligned(args.scratch), group, args.head_dim).parts;
    beginRows(args, item, s);
    const KeyRange keys = keyRange(args, item.split);
    const size_t vector_bytes = cacheRowBytes(kType, args.head_dim);
    KeyWalk walk(args, item.t_begin, item.n_tokens, item.kv_head, keys.begin, keys.end);
    while (walk.next()) {
        const size_t page = walk.key / kPageTokens;
        const size_t offset = (item.kv_head * kPageTokens + walk.key % kPageTokens) * vector_bytes;
        loadKeys<kType>(static_cast<const uint8_t*>(args.k_pages[page]) + offset, walk.n_keys,
                        args.head_dim, s.keys);
        loadValues<kType>(static_cast<const uint8_t*>(args.v_pages[page]) + offset, walk.n_keys,
                          args.head_dim, s.values);
        for (size_t run = 0; run < walk.n_runs; ++run) {
            attendStep(args, s, walk, walk.runs[run].begin * group, walk.runs[run].end * group,
                       tiles);
        }
    }
    endRows<avx512::Tile>(args, item, s.floats);
}

}  // namespace

size_t attendScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept {
    const size_t exact = avx512::attendScratchFloats(n_heads, n_kv_heads, head_dim);
    const size_t tiled = divideTiles(nullptr, n_heads / n_kv_heads, head_dim).n_floats + 16;
    return exact > tiled ? exact : tiled;
}

void attend(const Attend& args) noexcept {
    if (args.exact) {
        return avx512::attend(args);
    }
    StripTiles tiles;
    forEachItem(args, [&](const AttendItem& item, auto type) {
        attendItem<decltype(type)::kType>(args, item, tiles);
    });
}

}  // namespace belvedere::kernels::amx
