// SPDX-License-Identifier: Apache-2.0
// MSA's index branch: products of all index queries with 64 keys at a time, then the largest of
// each block. Keys are loaded once for all tokens of the call.
//
// All in f32: the exact way and the fast one are the same here.

#include "kernels/avx512/attention_tile.h"
#include "kernels/avx512/avx512_kernels.h"

namespace belvedere::kernels::avx512 {
namespace {

/// Rows (token, head) of one product: their scores stay in the nearest cache.
constexpr size_t kStepRows = 48;

/// Scores p of keys [key, key + 64) for one row into the scores of their blocks. The row's token
/// sees n_seen of them.
inline void poolRow(const float* p, size_t key, size_t n_seen, size_t block_tokens, float* scores) {
    for (size_t begin = 0; begin < n_seen;) {
        const size_t in_block = (key + begin) % block_tokens;
        const size_t to_end = block_tokens - in_block;
        const size_t n = to_end < n_seen - begin ? to_end : n_seen - begin;
        const float largest = largestOfRow(p + begin, n);
        float& score = scores[(key + begin) / block_tokens];
        score = in_block == 0 || largest > score ? largest : score;
        begin += n;
    }
}

/// All rows with keys [key, key + n), which stand in `keys` [D, 64].
inline void scoreKeys(const ScoreBlocks& args, const float* keys, float* p, size_t key, size_t n) {
    // Rows of several tokens stand one after the other only without a gap between them.
    const bool has_gap = args.q_stride != args.n_heads * args.head_dim;
    const size_t step = has_gap || args.n_heads > kStepRows ? 1 : kStepRows / args.n_heads;
    // Tokens before `key` see none of these keys.
    size_t t = args.first_pos < key ? key - args.first_pos : 0;
    while (t < args.n_tokens) {
        const size_t n_tokens = args.n_tokens - t < step ? args.n_tokens - t : step;
        const size_t n_rows = n_tokens * args.n_heads;
        multiply({args.q + t * args.q_stride, args.head_dim}, {keys, kKeys}, args.head_dim,
                 {p, kKeys}, n_rows, kKeys, false);
        for (size_t row = 0; row < n_rows; ++row) {
            const size_t n_seen = args.first_pos + t + row / args.n_heads + 1 - key;
            poolRow(p + row * kKeys, key, n_seen < n ? n_seen : n, args.block_tokens,
                    args.scores + (t * args.n_heads + row) * args.n_blocks);
        }
        t += n_tokens;
    }
}

template <CacheType kType>
void scoreSpans(const ScoreBlocks& args) {
    const size_t span = args.block_tokens > kPageTokens ? args.block_tokens : kPageTokens;
    const size_t n_positions = args.first_pos + args.n_tokens;
    const size_t vector_bytes = args.head_dim * (kType == CacheType::F32 ? 4 : 2);
    const auto address = reinterpret_cast<uintptr_t>(args.scratch);
    float* keys = args.scratch + (64 - address % 64) % 64 / sizeof(float);
    float* p = keys + paddedDim(args.head_dim) * kKeys;
    const size_t end = args.span_end * span < n_positions ? args.span_end * span : n_positions;
    for (size_t key = args.span_begin * span; key < end; key += kKeys) {
        const size_t n = end - key < kKeys ? end - key : kKeys;
        const auto* page = static_cast<const uint8_t*>(args.key_pages[key / kPageTokens]);
        loadKeys<kType>(page + key % kPageTokens * vector_bytes, n, args.head_dim, keys);
        scoreKeys(args, keys, p, key, n);
    }
}

}  // namespace

size_t scoreScratchFloats(size_t /*n_tokens*/, size_t n_heads, size_t head_dim) noexcept {
    const size_t n_rows = n_heads < kStepRows ? kStepRows : n_heads;
    return (paddedDim(head_dim) + n_rows) * kKeys + 16;
}

void scoreBlocks(const ScoreBlocks& args) noexcept {
    switch (args.type) {
        case CacheType::F32:
            return scoreSpans<CacheType::F32>(args);
        case CacheType::F16:
            return scoreSpans<CacheType::F16>(args);
        case CacheType::BF16:
            return scoreSpans<CacheType::BF16>(args);
    }
}

}  // namespace belvedere::kernels::avx512
