// SPDX-License-Identifier: Apache-2.0
#pragma once

// Softmax attention over the paged cache, and MSA's block scores, in tiles; the arithmetic comes as
// a Tile from the instruction set that includes this.
//
// Attention: up to 64 keys at a time (KeyWalk says which), the softmax kept up to date as they come
// (Milakov & Gimelshein 2018, arXiv:1805.02867; in tiles as Dao et al. 2022, arXiv:2205.14135). The
// query heads that share a KV head are rows of one product, so each byte of the cache is read once
// for all of them and for all tokens of the tile.
//
//     rows m = (token, head of the group), M of them; D = head_dim rounded up to 16
//     S[m, j] = Q[m, :] . K[j, :]      product of [M, D] and K transposed [D, 64]
//     P = exp(S - max), 0 where j is behind the token
//     O[m, :] = O[m, :] exp(old max - max) + P[m, :] V    product of [M, 64] and [64, D]
//
// Scores: products of all index queries with 64 keys, then the largest of each block. Keys are
// loaded once for all tokens of the call.
//
// A transposed copy of the keys pays where many rows share it. Few tokens with few heads to a KV
// head, as in generation, read keys and values where they stand.
//
// All in f32: the exact way and the fast one are the same here. Only for files compiled for one
// instruction set: everything has internal linkage.

#include <cstddef>
#include <cstdint>

#include "kernels/key_walk.h"
#include "kernels/table.h"

namespace belvedere::kernels {
namespace {

constexpr size_t kKeys = kWalkKeys;
/// Rows (token, index head) of one product of scores: they stay in the nearest cache.
constexpr size_t kScoreRows = 48;
/// Rows of a product that one call of Tile::multiplyRows takes, at most.
constexpr size_t kRows = 6;

/// A number of rows as a type.
template <size_t kN>
struct Count {
    static constexpr size_t kValue = kN;
};

/// The f16 scale of element i of a Q8_0 row, as its bits.
inline uint16_t scaleBits(const uint8_t* row, size_t i, size_t head_dim) {
    uint16_t bits;
    __builtin_memcpy(&bits, row + cacheScalesBegin(head_dim) + i / kCacheBlock * 2, 2);
    return bits;
}

/// Heads of a KV head, or of the index, up to which few tokens do without the copy.
constexpr size_t kDirectHeads = 8;
/// Rows of one call of Tile::scoreRows and Tile::addRows, at most.
constexpr size_t kDirectRows = 4;

/// By the number of tokens alone whether it counts as few: within kIndependentTokens a token's
/// result must not depend on the others.
inline bool isDirect(size_t n_tokens, size_t n_heads) {
    return n_tokens <= kIndependentTokens && n_heads <= kDirectHeads;
}

/// Calls work with (first row, constant of the number of rows) for at most kDirectRows rows at a
/// time.
template <class Work>
void forDirectRows(size_t begin, size_t end, Work&& work) {
    for (; end - begin >= kDirectRows; begin += kDirectRows) {
        work(begin, Count<kDirectRows>{});
    }
    switch (end - begin) {
        case 3:
            return work(begin, Count<3>{});
        case 2:
            return work(begin, Count<2>{});
        case 1:
            return work(begin, Count<1>{});
        default:
            return;
    }
}

inline size_t paddedDim(size_t head_dim) {
    return (head_dim + 15) / 16 * 16;
}

inline float* aligned(float* scratch) {
    const auto address = reinterpret_cast<uintptr_t>(scratch);
    return scratch + (64 - address % 64) % 64 / sizeof(float);
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

inline Scratch divide(float* scratch, size_t n_rows, size_t dim) {
    float* next = aligned(scratch);
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

/// One matrix of rows, `n_cols` a multiple of 16.
struct Rows {
    float* data;
    size_t stride;
};

/// The same, only read.
struct ConstRows {
    const float* data;
    size_t stride;
};

/// One item of attention: tokens of a tile, the query heads of one KV head, one range of keys.
struct AttendItem {
    size_t t_begin;
    size_t n_tokens;
    size_t kv_head;
    size_t split;
};

/// The query of row m = (token, head of the group) of an item.
inline const float* queryRow(const Attend& args, const AttendItem& item, size_t m) {
    const size_t group = args.n_heads / args.n_kv_heads;
    return args.q + (item.t_begin + m / group) * args.q_stride +
           (item.kv_head * group + m % group) * args.head_dim;
}

/// Where the sums of row m belong, and what they are multiplied by there.
struct OutputRow {
    float* at;
    float factor;
};

/// The output, divided by the sum of the weights; with splits a partial row, whose facts are
/// written here.
inline OutputRow outputRow(
    const Attend& args, const AttendItem& item, size_t m, float largest, float sum) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t t = item.t_begin + m / group;
    const size_t head = item.kv_head * group + m % group;
    if (args.n_splits == 1) {
        return {args.out + t * args.out_stride + head * args.head_dim, 1.0F / sum};
    }
    float* partial = args.partials + ((item.split * args.n_tokens + t) * args.n_heads + head) *
                                         (args.head_dim + kPartialFacts);
    partial[args.head_dim] = largest;
    partial[args.head_dim + 1] = sum;
    return {partial, 1.0F};
}

/// The first row of a step in pages of keys or of values.
inline const uint8_t* stepRows(const void* const* pages,
                               const AttendItem& item,
                               const KeyWalk& walk,
                               size_t row_bytes) {
    return static_cast<const uint8_t*>(pages[walk.key / kPageTokens]) +
           (item.kv_head * kPageTokens + walk.key % kPageTokens) * row_bytes;
}

/// Tokens of one item.
inline size_t tileTokens(size_t n_tokens) {
    return n_tokens < kWalkTokens ? n_tokens : kWalkTokens;
}

inline size_t tileScratchFloats(size_t group, size_t head_dim) {
    const size_t n_rows = kWalkTokens * group;
    const size_t dim = paddedDim(head_dim);
    return 2 * n_rows * dim + n_rows * kKeys + 2 * dim * kKeys + 2 * (n_rows + 16) + 16;
}

/// c [n_rows, n_cols] = a [n_rows, n] b [n, n_cols] (+ c).
template <class Tile>
void multiply(ConstRows a, ConstRows b, size_t n, Rows c, size_t n_rows, size_t n_cols, bool add) {
    for (; n_rows >= kRows; n_rows -= kRows) {
        Tile::template multiplyRows<kRows>(a, b, n, c, n_cols, add);
        a.data += kRows * a.stride;
        c.data += kRows * c.stride;
    }
    switch (n_rows) {
        case 5:
            return Tile::template multiplyRows<5>(a, b, n, c, n_cols, add);
        case 4:
            return Tile::template multiplyRows<4>(a, b, n, c, n_cols, add);
        case 3:
            return Tile::template multiplyRows<3>(a, b, n, c, n_cols, add);
        case 2:
            return Tile::template multiplyRows<2>(a, b, n, c, n_cols, add);
        case 1:
            return Tile::template multiplyRows<1>(a, b, n, c, n_cols, add);
        default:
            return;
    }
}

template <class Tile>
void beginRows(const Attend& args, const AttendItem& item, const Scratch& s) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t dim = paddedDim(args.head_dim);
    for (size_t m = 0; m < item.n_tokens * group; ++m) {
        const float* q = queryRow(args, item, m);
        Tile::scaleInto(q, args.head_dim, args.scale, s.q + m * dim, dim);
        Tile::scaleInto(q, 0, 0.0F, s.out + m * dim, dim);
        s.largest[m] = -__builtin_inff();
        s.sum[m] = 0;
    }
}

/// The keys of one step with rows [begin, end) of the tile.
template <class Tile>
void attendStep(
    const Attend& args, const Scratch& s, const KeyWalk& walk, size_t begin, size_t end) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t dim = paddedDim(args.head_dim);
    const size_t n_rows = end - begin;
    float* p = s.p + begin * kKeys;
    multiply<Tile>({s.q + begin * dim, dim}, {s.keys, kKeys}, args.head_dim, {p, kKeys}, n_rows,
                   kKeys, false);
    for (size_t m = begin; m < end; ++m) {
        const size_t n_seen = walk.seenBy(m / group) - walk.key;
        Tile::softmaxRow(s, m, dim, n_seen < walk.n_keys ? n_seen : walk.n_keys);
    }
    multiply<Tile>({p, kKeys}, {s.values, dim}, walk.n_keys, {s.out + begin * dim, dim}, n_rows,
                   dim, true);
}

/// The same where keys and values stand.
template <class Tile, CacheType kType>
void attendStepDirect(const Attend& args,
                      const AttendItem& item,
                      const Scratch& s,
                      const KeyWalk& walk,
                      size_t begin,
                      size_t end) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t dim = paddedDim(args.head_dim);
    const size_t row_bytes = cacheRowBytes(kType, args.head_dim);
    const uint8_t* keys = stepRows(args.k_pages, item, walk, row_bytes);
    const uint8_t* values = stepRows(args.v_pages, item, walk, row_bytes);
    forDirectRows(begin, end, [&](size_t m, auto rows) {
        Tile::template scoreRows<kType, decltype(rows)::kValue>(
            {s.q + m * dim, dim}, keys, values, walk.n_keys, args.head_dim, s.p + m * kKeys);
    });
    for (size_t m = begin; m < end; ++m) {
        const size_t n_seen = walk.seenBy(m / group) - walk.key;
        Tile::softmaxRow(s, m, dim, n_seen < walk.n_keys ? n_seen : walk.n_keys);
    }
    forDirectRows(begin, end, [&](size_t m, auto rows) {
        Tile::template addRows<kType, decltype(rows)::kValue>(
            s.p + m * kKeys, values, walk.n_keys, args.head_dim, {s.out + m * dim, dim});
    });
}

/// Rows of the tile to where they belong: divided by the sum of the weights, or as partials.
template <class Tile>
void endRows(const Attend& args, const AttendItem& item, const Scratch& s) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t dim = paddedDim(args.head_dim);
    for (size_t m = 0; m < item.n_tokens * group; ++m) {
        const OutputRow out = outputRow(args, item, m, s.largest[m], s.sum[m]);
        Tile::scaleOut(s.out + m * dim, args.head_dim, out.factor, out.at);
    }
}

template <class Tile, CacheType kType>
void attendItem(const Attend& args, const AttendItem& item) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const Scratch s = divide(args.scratch, kWalkTokens * group, paddedDim(args.head_dim));
    beginRows<Tile>(args, item, s);
    const KeyRange keys = keyRange(args, item.split);
    const size_t row_bytes = cacheRowBytes(kType, args.head_dim);
    KeyWalk walk(args, item.t_begin, item.n_tokens, item.kv_head, keys.begin, keys.end);
    if (isDirect(args.n_tokens, group)) {
        while (walk.next()) {
            for (size_t run = 0; run < walk.n_runs; ++run) {
                attendStepDirect<Tile, kType>(args, item, s, walk, walk.runs[run].begin * group,
                                              walk.runs[run].end * group);
            }
        }
        return endRows<Tile>(args, item, s);
    }
    while (walk.next()) {
        Tile::template loadKeys<kType>(stepRows(args.k_pages, item, walk, row_bytes), walk.n_keys,
                                       args.head_dim, s.keys);
        Tile::template loadValues<kType>(stepRows(args.v_pages, item, walk, row_bytes), walk.n_keys,
                                         args.head_dim, s.values);
        for (size_t run = 0; run < walk.n_runs; ++run) {
            attendStep<Tile>(args, s, walk, walk.runs[run].begin * group,
                             walk.runs[run].end * group);
        }
    }
    endRows<Tile>(args, item, s);
}

/// A cache type as a type.
template <CacheType kNamed>
struct CacheTypeTag {
    static constexpr CacheType kType = kNamed;
};

/// Calls work with each item of the slice and the tag of the cache's type.
template <class Work>
void forEachItem(const Attend& args, Work&& work) {
    const size_t tile = tileTokens(args.n_tokens);
    for (size_t i = args.item_begin; i < args.item_end; ++i) {
        const size_t t_begin = i / args.n_kv_heads / args.n_splits * tile;
        const size_t n_left = args.n_tokens - t_begin;
        const AttendItem item{t_begin, n_left < tile ? n_left : tile, i % args.n_kv_heads,
                              i / args.n_kv_heads % args.n_splits};
        switch (args.type) {
            case CacheType::F32:
                work(item, CacheTypeTag<CacheType::F32>{});
                break;
            case CacheType::F16:
                work(item, CacheTypeTag<CacheType::F16>{});
                break;
            case CacheType::BF16:
                work(item, CacheTypeTag<CacheType::BF16>{});
                break;
            case CacheType::Q8_0:
                work(item, CacheTypeTag<CacheType::Q8_0>{});
                break;
        }
    }
}

template <class Tile>
void attendTiles(const Attend& args) {
    forEachItem(args, [&args](const AttendItem& item, auto type) {
        attendItem<Tile, decltype(type)::kType>(args, item);
    });
}

inline size_t scoreTileScratchFloats(size_t n_heads, size_t head_dim) {
    const size_t n_rows = n_heads < kScoreRows ? kScoreRows : n_heads;
    return (paddedDim(head_dim) + n_rows) * kKeys + 16;
}

/// Scores p of keys from `key` on for one row into the scores of their blocks. The row's token sees
/// n_seen of them.
template <class Tile>
void poolRow(const float* p, size_t key, size_t n_seen, size_t block_tokens, float* scores) {
    for (size_t begin = 0; begin < n_seen;) {
        const size_t in_block = (key + begin) % block_tokens;
        const size_t to_end = block_tokens - in_block;
        const size_t n = to_end < n_seen - begin ? to_end : n_seen - begin;
        const float largest = Tile::largestOfRow(p + begin, n);
        float& score = scores[(key + begin) / block_tokens];
        score = in_block == 0 || largest > score ? largest : score;
        begin += n;
    }
}

/// All rows with keys [key, key + n), which stand in `keys` [D, 64].
template <class Tile>
void scoreKeys(const ScoreBlocks& args, const float* keys, float* p, size_t key, size_t n) {
    // Rows of several tokens stand one after the other only without a gap between them.
    const bool has_gap = args.q_stride != args.n_heads * args.head_dim;
    const size_t step = has_gap || args.n_heads > kScoreRows ? 1 : kScoreRows / args.n_heads;
    // Tokens before `key` see none of these keys.
    size_t t = args.first_pos < key ? key - args.first_pos : 0;
    while (t < args.n_tokens) {
        const size_t n_tokens = args.n_tokens - t < step ? args.n_tokens - t : step;
        const size_t n_rows = n_tokens * args.n_heads;
        multiply<Tile>({args.q + t * args.q_stride, args.head_dim}, {keys, kKeys}, args.head_dim,
                       {p, kKeys}, n_rows, kKeys, false);
        for (size_t row = 0; row < n_rows; ++row) {
            const size_t n_seen = args.first_pos + t + row / args.n_heads + 1 - key;
            poolRow<Tile>(p + row * kKeys, key, n_seen < n ? n_seen : n, args.block_tokens,
                          args.scores + (t * args.n_heads + row) * args.n_blocks);
        }
        t += n_tokens;
    }
}

/// The same where the keys stand; `next` are those that come after them.
template <class Tile, CacheType kType>
void scoreKeysDirect(const ScoreBlocks& args,
                     const uint8_t* keys,
                     const uint8_t* next,
                     float* p,
                     size_t key,
                     size_t n) {
    for (size_t t = args.first_pos < key ? key - args.first_pos : 0; t < args.n_tokens; ++t) {
        const size_t n_seen = args.first_pos + t + 1 - key;
        forDirectRows(0, args.n_heads, [&](size_t head, auto rows) {
            Tile::template scoreRows<kType, decltype(rows)::kValue>(
                {args.q + t * args.q_stride + head * args.head_dim, args.head_dim}, keys, next, n,
                args.head_dim, p + head * kKeys);
        });
        for (size_t head = 0; head < args.n_heads; ++head) {
            poolRow<Tile>(p + head * kKeys, key, n_seen < n ? n_seen : n, args.block_tokens,
                          args.scores + (t * args.n_heads + head) * args.n_blocks);
        }
    }
}

template <class Tile, CacheType kType>
void scoreSpans(const ScoreBlocks& args) {
    const size_t span = args.block_tokens > kPageTokens ? args.block_tokens : kPageTokens;
    const size_t n_positions = args.first_pos + args.n_tokens;
    const size_t vector_bytes = cacheRowBytes(kType, args.head_dim);
    float* keys = aligned(args.scratch);
    float* p = keys + paddedDim(args.head_dim) * kKeys;
    const size_t end = args.span_end * span < n_positions ? args.span_end * span : n_positions;
    const auto keysFrom = [&](size_t key) {
        return static_cast<const uint8_t*>(args.key_pages[key / kPageTokens]) +
               key % kPageTokens * vector_bytes;
    };
    for (size_t key = args.span_begin * span; key < end; key += kKeys) {
        const size_t n = end - key < kKeys ? end - key : kKeys;
        if (isDirect(args.n_tokens, args.n_heads)) {
            const uint8_t* next = keysFrom(key + kKeys < end ? key + kKeys : key);
            scoreKeysDirect<Tile, kType>(args, keysFrom(key), next, p, key, n);
            continue;
        }
        Tile::template loadKeys<kType>(keysFrom(key), n, args.head_dim, keys);
        scoreKeys<Tile>(args, keys, p, key, n);
    }
}

template <class Tile>
void scoreTiles(const ScoreBlocks& args) {
    switch (args.type) {
        case CacheType::F32:
            return scoreSpans<Tile, CacheType::F32>(args);
        case CacheType::F16:
            return scoreSpans<Tile, CacheType::F16>(args);
        case CacheType::BF16:
            return scoreSpans<Tile, CacheType::BF16>(args);
        case CacheType::Q8_0:
            return scoreSpans<Tile, CacheType::Q8_0>(args);
    }
}

}  // namespace
}  // namespace belvedere::kernels
