// SPDX-License-Identifier: Apache-2.0
#pragma once

// KernelTable: one function pointer per kernel, with shapes and units. Callers include
// kernels/kernels.h; this part stands alone so that files compiled for one instruction set include
// nothing that could merge with baseline code. Plain data; the kernels may run on any thread, calls
// on disjoint outputs at once.

#include <cstddef>
#include <cstdint>

#include "kernels/formats.h"

namespace belvedere::kernels {

enum class Isa { Scalar, Avx2, Avx512, Amx };

/// Row slices of matrix products and packing start at multiples of this.
inline constexpr size_t kRowTile = 16;

/// Activation layouts keep this many tokens together: slices of tokens start at multiples of it.
inline constexpr size_t kTokenGrain = 16;

/// In calls of no more tokens than this, every kernel gives a token the very bits that it gives it
/// in a call of its own, whatever the other tokens are. Drafts are verified, and forks run, in such
/// calls: their output must not depend on what else is in the pass.
inline constexpr size_t kIndependentTokens = 16;

/// out[t, r] = sum_i W[r, i] * x[t, i]  (+ out[t, r] before, where `accumulate`)
/// Exact way: the weight is decoded to f32, products and sums are f32 (scalar version: sums in
/// f64). Shapes: w [n_rows, n_cols] in `type`; x [n_tokens, n_cols]; out [n_tokens, n_rows]. Rows
/// [row_begin, row_end) are computed.
struct MatMulF32 {
    WeightType type;
    const void* w;
    size_t n_rows;
    size_t n_cols;
    const float* x;
    size_t x_stride;
    float* out;
    size_t out_stride;
    size_t n_tokens;
    size_t row_begin;
    size_t row_end;
    bool accumulate = false;
};

/// The same product in the fast way: W packed by `pack`, x prepared by `quantize_activations`, both
/// in layouts private to the instruction set. Eight-bit or bf16 activations; f32 sums between
/// blocks.
struct MatMulFast {
    WeightType type;
    const void* packed;
    size_t n_rows;
    size_t n_cols;
    const void* activations;
    float* out;
    size_t out_stride;
    size_t n_tokens;
    size_t row_begin;  ///< multiple of kRowTile
    size_t row_end;    ///< multiple of kRowTile, or n_rows
};

/// Softmax attention of a run of queries over the paged cache, causal: query t sees positions
/// 0..first_pos + t, or of these only the ones in the blocks chosen for it.
///     out[t, h, :] = sum_j softmax_j(scale * q[t, h, :] . k[j, g, :]) v[j, g, :]
///     g = h / (n_heads / n_kv_heads)
/// A page holds kPageTokens positions of one layer: [n_kv_heads, kPageTokens] rows of head_dim in
/// `type`, K and V apart. Entries behind the last valid position are never read into a result,
/// whatever they hold.
struct Attend {
    CacheType type;
    const float* q;  ///< [n_tokens, n_heads, head_dim], rows q_stride apart
    size_t q_stride;
    const void* const* k_pages;  ///< [ceil((first_pos + n_tokens) / kPageTokens)]
    const void* const* v_pages;
    float* out;  ///< [n_tokens, n_heads, head_dim], rows out_stride apart
    size_t out_stride;
    size_t n_tokens;
    size_t first_pos;
    size_t n_heads;
    size_t n_kv_heads;
    size_t head_dim;
    float scale;
    bool exact;      ///< f32 throughout; else the kernel may round q, k and p to bf16
    float* scratch;  ///< attend_scratch_floats elements, one per worker
    // The slice: token tiles of attend_token_tile x key ranges x KV heads, numbered
    // (tile * n_splits + split) * n_kv_heads + kv_head.
    size_t item_begin;
    size_t item_end;
    /// Blocks of block_tokens positions that each query attends to, as select_blocks writes them:
    /// [n_tokens, n_kv_heads, top_k]. nullptr: every position. Some visible position must be there.
    const int32_t* blocks = nullptr;
    size_t top_k = 0;
    size_t block_tokens = 0;
    /// Ranges of split_keys keys, so that few heads keep many workers busy. With more than one
    /// nothing is written to `out`: merge_attend joins what stands in `partials`.
    size_t n_splits = 1;
    size_t split_keys = 0;  ///< multiple of 64, so that no 64 keys are torn apart
    /// Not 0: every query attends to positions [0, n_keys), whatever its own (bidirectional). Only
    /// without blocks and splits; pages cover them.
    size_t n_keys = 0;
    float* partials = nullptr;  ///< [n_splits, n_tokens, n_heads, head_dim + 2]
};

/// Of a head of attention, so that sums can stand on the stack.
inline constexpr size_t kMaxHeadDim = 1024;

/// One partial row of a split: head_dim sums of weights times values, then the largest score (with
/// scale) and the sum of the weights exp(score - largest); largest -inf and sum 0 where the range
/// holds no key.
inline constexpr size_t kPartialFacts = 2;

/// Keys [begin, end) of a range of attention; the last visible key may come sooner.
struct KeyRange {
    size_t begin;
    size_t end;
};

[[nodiscard]] static inline constexpr KeyRange keyRange(const Attend& args, size_t split) {
    if (args.n_splits == 1) {
        return {0, SIZE_MAX};
    }
    return {split * args.split_keys, (split + 1) * args.split_keys};
}

/// MSA's index branch: how well each block of keys answers each query.
///     scores[t, g, b] = max over positions j <= first_pos + t of block b of  q[t, g, :] . k[j, :]
/// Blocks are tiles of block_tokens positions; of two, block_tokens and kPageTokens, one divides
/// the other. A token's scores of blocks behind its own are not written. NaN products are left out
/// of the maximum. Entries behind a token's position are never read into its scores.
/// Source: MSA, arXiv:2606.13392, eq. 5-6; the factor 1 / sqrt(head_dim) orders nothing and is left
/// out.
struct ScoreBlocks {
    CacheType type;
    const float* q;  ///< [n_tokens, n_heads, head_dim], rows q_stride apart; n_heads: of the index
    size_t q_stride;
    const void* const* key_pages;  ///< [ceil((first_pos + n_tokens) / kPageTokens)] of
                                   ///< [kPageTokens] rows of head_dim
    float* scores;                 ///< [n_tokens, n_heads, n_blocks]
    size_t n_blocks;               ///< ceil((first_pos + n_tokens) / block_tokens), or more
    size_t n_tokens;
    size_t first_pos;
    size_t n_heads;
    size_t head_dim;
    size_t block_tokens;
    float* scratch;  ///< score_scratch_floats elements, one per worker
    // The slice: spans of max(block_tokens, kPageTokens) positions.
    size_t span_begin;
    size_t span_end;
};

/// The choice of MSA from scores of ScoreBlocks, for each token and index head: of the blocks that
/// the token sees, the first n_init and the last n_local (its own and those before it), and the
/// best others until top_k are chosen; higher score first, then lower id. All where no more than
/// top_k are visible. Ids ascending, -1 behind them. NaN scores come last. A banned block is chosen
/// only where it is the token's own.
/// Source: MSA, arXiv:2606.13392, eq. 7.
struct SelectBlocks {
    const float* scores;  ///< [n_tokens, n_heads, n_blocks]; not read where all blocks are chosen
    size_t n_blocks;
    size_t n_tokens;
    size_t first_pos;
    size_t n_heads;
    size_t block_tokens;
    size_t top_k;           ///< <= kMaxTopBlocks
    size_t n_init;          ///< n_init + n_local <= top_k
    size_t n_local;         ///< >= 1
    const uint8_t* banned;  ///< [n_blocks], not 0: banned; nullptr: none
    int32_t* ids;           ///< [n_tokens, n_heads, top_k]
    size_t token_begin;
    size_t token_end;
};

inline constexpr size_t kMaxTopBlocks = 256;

struct KernelTable {
    Isa isa;
    const char* description;  ///< what is in use, for people: "AVX-512 (VNNI, BF16)"

    /// dst[i] = value of element i; n a multiple of the block. Bit-exact on every instruction set.
    /// Source: GGUF v3 block formats, ggml; see scalar/dequantize.cpp.
    void (*dequantize)(WeightType type, const void* src, float* dst, size_t n) noexcept;

    void (*mat_mul_f32)(const MatMulF32& args) noexcept;

    /// Bytes that `pack` writes for a matrix; 0 where the kernel reads the stored layout as it is
    /// (then `packed` is w).
    size_t (*packed_bytes)(WeightType type, size_t n_rows, size_t n_cols) noexcept;
    /// Rows [row_begin, row_end) of w [n_rows, n_cols] into the layout that mat_mul_fast reads;
    /// kRowTile borders.
    void (*pack)(WeightType type,
                 const void* w,
                 size_t n_rows,
                 size_t n_cols,
                 void* packed,
                 size_t row_begin,
                 size_t row_end) noexcept;
    /// Bytes of prepared activations for [n_tokens, n_cols].
    size_t (*activation_bytes)(WeightType type, size_t n_tokens, size_t n_cols) noexcept;
    /// True where activations prepared for `a` serve weights of type `b` too (then q, k and v share
    /// one preparation).
    bool (*same_activations)(WeightType a, WeightType b) noexcept;
    /// Tokens [token_begin, token_end) of x [n_tokens, n_cols] into the layout that mat_mul_fast
    /// reads.
    void (*quantize_activations)(WeightType type,
                                 const float* x,
                                 size_t x_stride,
                                 size_t n_tokens,
                                 size_t n_cols,
                                 void* activations,
                                 size_t token_begin,
                                 size_t token_end) noexcept;
    void (*mat_mul_fast)(const MatMulFast& args) noexcept;

    /// out[t, i] = x[t, i] * weight[i] / sqrt(mean_i(x[t, :]^2) + eps)
    /// Shapes: x, out [n_tokens, dim] with strides; weight [dim]. out may be x.
    /// Source: Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4; eps inside the root as Llama does.
    void (*rms_norm)(const float* x,
                     size_t x_stride,
                     const float* weight,
                     float* out,
                     size_t out_stride,
                     size_t n_tokens,
                     size_t dim,
                     float eps) noexcept;

    /// Rotates the first 2 * n_pairs elements of every head of every token in place; the rest pass
    /// through. Adjacent: (x[2i], x[2i+1]); half-split: (x[i], x[i + n_pairs]):  (a, b) -> (a cos -
    /// b sin, b cos + a sin) Shapes: x [n_tokens, n_heads, head_dim], rows stride apart; cos, sin
    /// [n_tokens, n_pairs]. Source: Su et al. 2021, arXiv:2104.09864; half-split as GPT-NeoX.
    void (*rope_adjacent)(float* x,
                          size_t stride,
                          const float* cos,
                          const float* sin,
                          size_t n_tokens,
                          size_t n_heads,
                          size_t head_dim,
                          size_t n_pairs) noexcept;
    void (*rope_half_split)(float* x,
                            size_t stride,
                            const float* cos,
                            const float* sin,
                            size_t n_tokens,
                            size_t n_heads,
                            size_t head_dim,
                            size_t n_pairs) noexcept;

    /// out[i] = gate[i] / (1 + exp(-gate[i])) * up[i], n elements; out may be gate.
    /// Source: Shazeer 2020, arXiv:2002.05202, SwiGLU.
    void (*swiglu)(const float* gate, const float* up, float* out, size_t n) noexcept;

    /// out[i] = (clamp(up[i], -limit, limit) + 1) * g / (1 + exp(-alpha * g)),
    ///     g = min(gate[i], limit); n elements; out may be gate.
    /// Source: the swigluoai activation of gpt-oss and MiniMax-M3.
    void (*swiglu_oai)(const float* gate,
                       const float* up,
                       float* out,
                       size_t n,
                       float alpha,
                       float limit) noexcept;

    /// out[t, i] = (x[t, i] - mean(x[t, :])) / sqrt(var(x[t, :]) + eps) * weight[i] + bias[i]
    /// Shapes: as rms_norm; bias [dim]. out may be x. The variance is that of all dim elements.
    /// Source: Ba et al. 2016, arXiv:1607.06450.
    void (*layer_norm)(const float* x,
                       size_t x_stride,
                       const float* weight,
                       const float* bias,
                       float* out,
                       size_t out_stride,
                       size_t n_tokens,
                       size_t dim,
                       float eps) noexcept;

    /// out[i] = x[i] / 2 * (1 + erf(x[i] / sqrt(2))), n elements; out may be x.
    /// Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, the exact form.
    /// Accuracy: within 5e-7 * (1 + |x|) of scalar/vision.cpp.
    void (*gelu)(const float* x, float* out, size_t n) noexcept;

    /// dst[i] += src[i], n elements.
    void (*add)(float* dst, const float* src, size_t n) noexcept;

    /// dst[i] = src[i] in the cache's element type (round to nearest even), a row of n elements.
    /// Q8_0: the scale is the largest magnitude of a block / 127, rounded to f16 (at most its
    /// largest number), an element is x / scale, NaN -127. Bit-exact on every instruction set.
    void (*to_cache)(CacheType type, const float* src, void* dst, size_t n) noexcept;

    /// Query rows of one attention item; item count = ceil(n_tokens / tile) * n_splits *
    /// n_kv_heads.
    size_t (*attend_token_tile)(size_t n_tokens) noexcept;
    size_t (*attend_scratch_floats)(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept;
    void (*attend)(const Attend& args) noexcept;
    /// Joins the partials of all splits into out, for rows [row_begin, row_end) of n_tokens *
    /// n_heads.
    void (*merge_attend)(const Attend& args, size_t row_begin, size_t row_end) noexcept;

    size_t (*score_scratch_floats)(size_t n_heads, size_t head_dim) noexcept;
    void (*score_blocks)(const ScoreBlocks& args) noexcept;
    void (*select_blocks)(const SelectBlocks& args) noexcept;

    /// Index of the largest element, the lowest index on a tie; n > 0. NaN never wins.
    size_t (*arg_max)(const float* x, size_t n) noexcept;
};

}  // namespace belvedere::kernels
