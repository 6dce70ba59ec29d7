// SPDX-License-Identifier: Apache-2.0
// Products in f32: mat_mul_fast for the float types, and the exact way for every type. 16 rows in
// two vectors, one column a step, 4 tokens in the accumulators. Each sum runs over the columns in
// order, whatever the number of tokens.

#include <immintrin.h>

#include "kernels/avx2/avx2_kernels.h"
#include "kernels/avx2/vectors.h"
#include "kernels/packed.h"
#include "kernels/scalar/scalar_kernels.h"

namespace belvedere::kernels::avx2 {
namespace {

/// Columns that the exact way decodes at a time: the largest block.
constexpr size_t kDecodeCols = 256;
constexpr size_t kTokens = 4;
/// E4M3 is read as 2^-8 of its value; the sums make up for it.
constexpr float kFloat8Factor = 256.0F;

/// 8 rows from `first` of column `col` of a tile [n_cols][16].
template <WeightType kType>
__m256 loadColumn(const uint8_t* tile, size_t col, size_t first) {
    if constexpr (kType == WeightType::F32) {
        return _mm256_loadu_ps(reinterpret_cast<const float*>(tile) + col * kTileRows + first);
    } else if constexpr (kType == WeightType::MXFP8) {
        // The bits of E4M3 as those of binary16, whose bias is 8 larger: times 2^-8.
        const __m128i bytes = _mm_cvtepi8_epi16(
            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(tile + col * kTileRows + first)));
        const __m128i mask = _mm_set1_epi16(static_cast<int16_t>(0xbf80));
        return _mm256_cvtph_ps(_mm_and_si128(_mm_slli_epi16(bytes, 7), mask));
    } else {
        const __m128i halves =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(tile + 2 * (col * kTileRows + first)));
        if constexpr (kType == WeightType::F16) {
            return _mm256_cvtph_ps(halves);
        } else {
            return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
        }
    }
}

/// Activations of one product step: x of token t and column c stands at x[t * token_stride + c *
/// col_stride].
struct Activations {
    const float* x;
    size_t token_stride;
    size_t col_stride;
};

/// Factors of 8 rows from `first` for the columns of block b; MXFP8.
__m256 loadScales(const uint8_t* scales, size_t b, size_t first) {
    // 2^(e - 127), subnormal for e = 0.
    const __m256i e = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales + b * kTileRows + first)));
    const __m256i zero = _mm256_cmpeq_epi32(e, _mm256_setzero_si256());
    return _mm256_castsi256_ps(
        _mm256_blendv_epi8(_mm256_slli_epi32(e, 23), _mm256_set1_epi32(0x00400000), zero));
}

/// acc[t][h] += tile [n][16] times x, t < kT; h is the half of the rows.
template <WeightType kType, size_t kT>
void addColumns(const uint8_t* tile, size_t n, const Activations& a, __m256 (*acc)[2]) {
    for (size_t col = 0; col < n; ++col) {
        __m256 low = loadColumn<kType>(tile, col, 0);
        __m256 high = loadColumn<kType>(tile, col, 8);
        if constexpr (kType == WeightType::MXFP8) {
            const uint8_t* scales = tile + n * kTileRows;
            low = _mm256_mul_ps(low, loadScales(scales, col / kBlockCols, 0));
            high = _mm256_mul_ps(high, loadScales(scales, col / kBlockCols, 8));
        }
#pragma GCC unroll 4
        for (size_t t = 0; t < kT; ++t) {
            const __m256 x = _mm256_broadcast_ss(a.x + t * a.token_stride + col * a.col_stride);
            acc[t][0] = _mm256_fmadd_ps(low, x, acc[t][0]);
            acc[t][1] = _mm256_fmadd_ps(high, x, acc[t][1]);
        }
    }
}

void storeRows(float* out, size_t n_rows, const __m256* acc) {
    storeFirst(out, n_rows, acc[0]);
    if (n_rows > 8) {
        storeFirst(out + 8, n_rows - 8, acc[1]);
    }
}

template <WeightType kType, size_t kT>
void multiplyPart(const MatMulFast& args, TokenChunk chunk, size_t t) {
    const size_t tile_bytes = packedTileBytes(kType, args.n_cols);
    const float* x = static_cast<const float*>(args.activations) + chunk.begin * args.n_cols + t;
    for (size_t row = args.row_begin; row < args.row_end; row += kTileRows) {
        const uint8_t* tile =
            static_cast<const uint8_t*>(args.packed) + row / kTileRows * tile_bytes;
        __m256 acc[kT][2];
        for (size_t i = 0; i < kT; ++i) {
            acc[i][0] = acc[i][1] = _mm256_setzero_ps();
        }
        addColumns<kType, kT>(tile, args.n_cols, {x, 1, chunk.n}, acc);
        for (size_t i = 0; i < kT; ++i) {
            if constexpr (kType == WeightType::MXFP8) {
                acc[i][0] = _mm256_mul_ps(acc[i][0], _mm256_set1_ps(kFloat8Factor));
                acc[i][1] = _mm256_mul_ps(acc[i][1], _mm256_set1_ps(kFloat8Factor));
            }
            storeRows(args.out + (chunk.begin + t + i) * args.out_stride + row, args.row_end - row,
                      acc[i]);
        }
    }
}

template <WeightType kType>
void multiply(const MatMulFast& args) {
    for (size_t token = 0; token < args.n_tokens;) {
        const TokenChunk chunk = chunkAt(args.n_tokens, token);
        if (chunk.n >= kTokens) {
            for (size_t t = 0; t < chunk.n; t += kTokens) {
                multiplyPart<kType, kTokens>(args, chunk, t);
            }
        } else if (chunk.n == 2) {
            multiplyPart<kType, 2>(args, chunk, 0);
        } else {
            multiplyPart<kType, 1>(args, chunk, 0);
        }
        token += chunk.n;
    }
}

/// Columns [col, col + n) of up to 16 rows as f32 [n][16]; rows beyond are zero.
void decodeTile(
    const MatMulF32& args, size_t row, size_t n_rows, size_t col, size_t n, float* tile) {
    alignas(64) float rows[kTileRows * kDecodeCols];
    for (size_t r = 0; r < kTileRows; ++r) {
        if (r < n_rows) {
            const void* from = scalar::weightAt(args.type, args.w, args.n_cols, row + r, col);
            scalar::dequantize(args.type, from, rows + r * kDecodeCols, n);
        } else {
            __builtin_memset(rows + r * kDecodeCols, 0, n * sizeof(float));
        }
    }
    size_t c = 0;
    for (; c + 8 <= n; c += 8) {
        for (size_t half = 0; half < kTileRows; half += 8) {
            __m256 r[8];
#pragma GCC unroll 8
            for (size_t i = 0; i < 8; ++i) {
                r[i] = _mm256_load_ps(rows + (half + i) * kDecodeCols + c);
            }
            transpose8(r, tile + c * kTileRows + half, kTileRows);
        }
    }
    for (; c < n; ++c) {
        for (size_t r = 0; r < kTileRows; ++r) {
            tile[c * kTileRows + r] = rows[r * kDecodeCols + c];
        }
    }
}

/// out[token + t, row..] += tile [n][16] times x[token + t, col..col+n], t < kT.
template <size_t kT>
void addTile(const MatMulF32& args,
             const float* tile,
             size_t n,
             size_t col,
             size_t row,
             size_t token,
             bool from_zero) {
    const size_t n_rows = args.row_end - row;
    float* out = args.out + token * args.out_stride + row;
    __m256 acc[kT][2];
    for (size_t t = 0; t < kT; ++t) {
        const float* before = out + t * args.out_stride;
        acc[t][0] = from_zero ? _mm256_setzero_ps() : loadFirst(before, n_rows);
        acc[t][1] =
            from_zero || n_rows <= 8 ? _mm256_setzero_ps() : loadFirst(before + 8, n_rows - 8);
    }
    addColumns<WeightType::F32, kT>(reinterpret_cast<const uint8_t*>(tile), n,
                                    {args.x + token * args.x_stride + col, args.x_stride, 1}, acc);
    for (size_t t = 0; t < kT; ++t) {
        storeRows(out + t * args.out_stride, n_rows, acc[t]);
    }
}

}  // namespace

void matMulFloat(const MatMulFast& args) noexcept {
    switch (args.type) {
        case WeightType::F32:
            return multiply<WeightType::F32>(args);
        case WeightType::F16:
            return multiply<WeightType::F16>(args);
        case WeightType::MXFP8:
            return multiply<WeightType::MXFP8>(args);
        default:
            return multiply<WeightType::BF16>(args);
    }
}

void matMulF32(const MatMulF32& args) noexcept {
    alignas(64) float tile[kDecodeCols * kTileRows];
    for (size_t row = args.row_begin; row < args.row_end; row += kTileRows) {
        const size_t n_rows = args.row_end - row < kTileRows ? args.row_end - row : kTileRows;
        for (size_t col = 0; col < args.n_cols; col += kDecodeCols) {
            const size_t n = args.n_cols - col < kDecodeCols ? args.n_cols - col : kDecodeCols;
            decodeTile(args, row, n_rows, col, n, tile);
            const bool from_zero = col == 0 && !args.accumulate;
            size_t token = 0;
            for (; token + kTokens <= args.n_tokens; token += kTokens) {
                addTile<kTokens>(args, tile, n, col, row, token, from_zero);
            }
            for (; token < args.n_tokens; ++token) {
                addTile<1>(args, tile, n, col, row, token, from_zero);
            }
        }
    }
}

}  // namespace belvedere::kernels::avx2
