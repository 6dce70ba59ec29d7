// SPDX-License-Identifier: Apache-2.0
// Softmax attention over the paged cache: up to 64 keys at a time (KeyWalk says which), the softmax
// kept up to date as they come (Milakov & Gimelshein 2018, arXiv:1805.02867; in tiles as Dao et al.
// 2022, arXiv:2205.14135). The query heads that share a KV head are rows of one product, so each
// byte of the cache is read once for all of them and for all tokens of the tile.
//
//     rows m = (token, head of the group), M of them; D = head_dim rounded up to 16
//     S[m, j] = Q[m, :] . K[j, :]      product of [M, D] and K transposed [D, 64]
//     P = exp(S - max), 0 where j is behind the token
//     O[m, :] = O[m, :] exp(old max - max) + P[m, :] V    product of [M, 64] and [64, D]
//
// All in f32: the exact way and the fast one are the same here.

#include "kernels/avx512/attention_tile.h"
#include "kernels/avx512/avx512_kernels.h"

namespace belvedere::kernels::avx512 {
namespace {

/// One item: tokens of a tile, the query heads of one KV head, one range of keys.
struct Item {
    size_t t_begin;
    size_t n_tokens;
    size_t kv_head;
    size_t split;
};

/// Rows of the tile into the scratch.
void beginRows(const Attend& args, const Item& item, const Scratch& s) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t dim = paddedDim(args.head_dim);
    const __m512 scale = _mm512_set1_ps(args.scale);
    for (size_t m = 0; m < item.n_tokens * group; ++m) {
        const float* q = args.q + (item.t_begin + m / group) * args.q_stride +
                         (item.kv_head * group + m % group) * args.head_dim;
        for (size_t i = 0; i < dim; i += 16) {
            const __m512 v = _mm512_maskz_loadu_ps(firstLanes(args.head_dim - i), q + i);
            _mm512_store_ps(s.q + m * dim + i, _mm512_mul_ps(v, scale));
            _mm512_store_ps(s.out + m * dim + i, _mm512_setzero_ps());
        }
        s.largest[m] = -__builtin_inff();
        s.sum[m] = 0;
    }
}

/// The keys of one step with rows [begin, end) of the tile; row m is of a token that sees keys up
/// to n_valid(m).
void attendStep(const Attend& args,
                const Scratch& s,
                const KeyWalk& walk,
                size_t begin,
                size_t end,
                size_t first_pos) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t dim = paddedDim(args.head_dim);
    const Rows p{s.p + begin * kKeys, kKeys};
    multiply({s.q + begin * dim, dim}, {s.keys, kKeys}, args.head_dim, p, end - begin, kKeys,
             false);
    for (size_t m = begin; m < end; ++m) {
        const size_t n_seen = first_pos + m / group + 1 - walk.key;
        softmaxRow(s, m, dim, n_seen < walk.n_keys ? n_seen : walk.n_keys);
    }
    multiply({p.data, p.stride}, {s.values, dim}, walk.n_keys, {s.out + begin * dim, dim},
             end - begin, dim, true);
}

/// Rows of the tile to where they belong: divided by the sum of the weights, or as partials.
void endRows(const Attend& args, const Item& item, const Scratch& s) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const size_t dim = paddedDim(args.head_dim);
    for (size_t m = 0; m < item.n_tokens * group; ++m) {
        const size_t t = item.t_begin + m / group;
        const size_t head = item.kv_head * group + m % group;
        float* out = args.out + t * args.out_stride + head * args.head_dim;
        float multiplier = 1.0F / s.sum[m];
        if (args.n_splits > 1) {
            out = args.partials + ((item.split * args.n_tokens + t) * args.n_heads + head) *
                                      (args.head_dim + kPartialFacts);
            out[args.head_dim] = s.largest[m];
            out[args.head_dim + 1] = s.sum[m];
            multiplier = 1.0F;
        }
        const __m512 factor = _mm512_set1_ps(multiplier);
        for (size_t i = 0; i < args.head_dim; i += 16) {
            _mm512_mask_storeu_ps(out + i, firstLanes(args.head_dim - i),
                                  _mm512_mul_ps(_mm512_load_ps(s.out + m * dim + i), factor));
        }
    }
}

template <CacheType kType>
void attendItem(const Attend& args, const Item& item) {
    const size_t group = args.n_heads / args.n_kv_heads;
    const Scratch s = divide(args.scratch, kWalkTokens * group, paddedDim(args.head_dim));
    beginRows(args, item, s);
    const size_t n_split_keys = splitKeys(args.first_pos + args.n_tokens, args.n_splits);
    const size_t vector_bytes = args.head_dim * (kType == CacheType::F32 ? 4 : 2);
    KeyWalk walk(args, item.t_begin, item.n_tokens, item.kv_head, item.split * n_split_keys,
                 (item.split + 1) * n_split_keys);
    while (walk.next()) {
        const size_t page = walk.key / kPageTokens;
        const size_t offset = (item.kv_head * kPageTokens + walk.key % kPageTokens) * vector_bytes;
        loadKeys<kType>(static_cast<const uint8_t*>(args.k_pages[page]) + offset, walk.n_keys,
                        args.head_dim, s.keys);
        loadValues<kType>(static_cast<const uint8_t*>(args.v_pages[page]) + offset, walk.n_keys,
                          args.head_dim, s.values);
        for (size_t run = 0; run < walk.n_runs; ++run) {
            attendStep(args, s, walk, walk.runs[run].begin * group, walk.runs[run].end * group,
                       args.first_pos + item.t_begin);
        }
    }
    endRows(args, item, s);
}

}  // namespace

size_t attendTokenTile(size_t n_tokens) noexcept {
    return n_tokens < kWalkTokens ? n_tokens : kWalkTokens;
}

size_t attendScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept {
    const size_t n_rows = kWalkTokens * (n_heads / n_kv_heads);
    const size_t dim = paddedDim(head_dim);
    return 2 * n_rows * dim + n_rows * kKeys + 2 * dim * kKeys + 2 * (n_rows + 16) + 16;
}

void attend(const Attend& args) noexcept {
    const size_t tile = attendTokenTile(args.n_tokens);
    for (size_t i = args.item_begin; i < args.item_end; ++i) {
        const size_t t_begin = i / args.n_kv_heads / args.n_splits * tile;
        const size_t n_left = args.n_tokens - t_begin;
        const Item item{t_begin, n_left < tile ? n_left : tile, i % args.n_kv_heads,
                        i / args.n_kv_heads % args.n_splits};
        switch (args.type) {
            case CacheType::F32:
                attendItem<CacheType::F32>(args, item);
                break;
            case CacheType::F16:
                attendItem<CacheType::F16>(args, item);
                break;
            case CacheType::BF16:
                attendItem<CacheType::BF16>(args, item);
                break;
        }
    }
}

}  // namespace belvedere::kernels::avx512
