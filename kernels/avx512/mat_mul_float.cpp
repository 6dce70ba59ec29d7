// SPDX-License-Identifier: Apache-2.0
// Products in f32: mat_mul_fast for the float types, and the exact way for every type. 16 rows in
// the lanes, one column a step. Each sum runs over the columns in order, whatever the number of
// tokens.

#include <immintrin.h>

#include "kernels/avx512/avx512_kernels.h"
#include "kernels/avx512/float8.h"
#include "kernels/avx512/lanes.h"
#include "kernels/avx512/transpose.h"
#include "kernels/packed.h"
#include "kernels/scalar/scalar_kernels.h"

namespace belvedere::kernels::avx512 {
namespace {

/// Columns that the exact way decodes at a time: the largest block.
constexpr size_t kDecodeCols = 256;

/// Column `col` of a tile [n_cols][16].
template <WeightType kType>
__m512 loadColumn(const uint8_t* tile, size_t col) {
    if constexpr (kType == WeightType::F32) {
        return _mm512_loadu_ps(tile + col * 64);
    } else if constexpr (kType == WeightType::MXFP8) {
        return loadFloat8(tile + col * kTileRows);
    } else {
        const __m256i halves =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tile + col * 32));
        if constexpr (kType == WeightType::F16) {
            return _mm512_cvtph_ps(halves);
        } else {
            return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
        }
    }
}

/// Factors of 16 rows for the columns from `col` on; only MXFP8 has them.
template <WeightType kType>
__m512 loadScales(const uint8_t* tile, size_t n_cols, size_t col) {
    if constexpr (kType != WeightType::MXFP8) {
        return _mm512_set1_ps(1.0F);
    } else {
        return loadFloat8Scales(tile, n_cols, col / kBlockCols);
    }
}

template <WeightType kType, size_t kTokens>
void multiplyChunk(const MatMulFast& args, size_t token) {
    constexpr bool kScaled = kType == WeightType::MXFP8;
    const size_t step = kScaled ? kBlockCols : args.n_cols;
    const size_t tile_bytes = packedTileBytes(kType, args.n_cols);
    const float* x = static_cast<const float*>(args.activations) + token * args.n_cols;
    for (size_t row = args.row_begin; row < args.row_end; row += kTileRows) {
        const uint8_t* tile =
            static_cast<const uint8_t*>(args.packed) + row / kTileRows * tile_bytes;
        __m512 acc[kTokens];
        for (size_t t = 0; t < kTokens; ++t) {
            acc[t] = _mm512_setzero_ps();
        }
        for (size_t begin = 0; begin < args.n_cols; begin += step) {
            const __m512 scale = loadScales<kType>(tile, args.n_cols, begin);
            for (size_t col = begin; col < begin + step; ++col) {
                __m512 w = loadColumn<kType>(tile, col);
                if constexpr (kScaled) {
                    w = _mm512_mul_ps(w, scale);
                }
#pragma GCC unroll 16
                for (size_t t = 0; t < kTokens; ++t) {
                    acc[t] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[col * kTokens + t]), acc[t]);
                }
            }
        }
        const __mmask16 mask = firstLanes(args.row_end - row);
        for (size_t t = 0; t < kTokens; ++t) {
            if constexpr (kScaled) {
                acc[t] = _mm512_mul_ps(acc[t], _mm512_set1_ps(kFloat8Factor));
            }
            _mm512_mask_storeu_ps(args.out + (token + t) * args.out_stride + row, mask, acc[t]);
        }
    }
}

template <WeightType kType>
void multiply(const MatMulFast& args) {
    forEachChunk(args.n_tokens, [&args](size_t token, auto count) {
        multiplyChunk<kType, decltype(count)::kTokens>(args, token);
    });
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
    for (; c + 16 <= n; c += 16) {
        __m512 r[16];
#pragma GCC unroll 16
        for (size_t i = 0; i < 16; ++i) {
            r[i] = _mm512_load_ps(rows + i * kDecodeCols + c);
        }
        transpose16(r, tile + c * kTileRows, kTileRows);
    }
    for (; c < n; ++c) {
        for (size_t r = 0; r < kTileRows; ++r) {
            tile[c * kTileRows + r] = rows[r * kDecodeCols + c];
        }
    }
}

/// out[token + t, row..] += tile [n][16] times x[token + t, col..col+n], t < kTokens.
template <size_t kTokens>
void addTile(const MatMulF32& args,
             const float* tile,
             size_t n,
             size_t col,
             size_t row,
             size_t token,
             bool from_zero) {
    const __mmask16 mask = firstLanes(args.row_end - row);
    const float* x = args.x + token * args.x_stride + col;
    float* out = args.out + token * args.out_stride + row;
    __m512 acc[kTokens];
    for (size_t t = 0; t < kTokens; ++t) {
        acc[t] = from_zero ? _mm512_setzero_ps()
                           : _mm512_maskz_loadu_ps(mask, out + t * args.out_stride);
    }
    for (size_t c = 0; c < n; ++c) {
        const __m512 w = _mm512_load_ps(tile + c * kTileRows);
#pragma GCC unroll 8
        for (size_t t = 0; t < kTokens; ++t) {
            acc[t] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[t * args.x_stride + c]), acc[t]);
        }
    }
    for (size_t t = 0; t < kTokens; ++t) {
        _mm512_mask_storeu_ps(out + t * args.out_stride, mask, acc[t]);
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
            for (; token + 8 <= args.n_tokens; token += 8) {
                addTile<8>(args, tile, n, col, row, token, from_zero);
            }
            for (; token < args.n_tokens; ++token) {
                addTile<1>(args, tile, n, col, row, token, from_zero);
            }
        }
    }
}

}  // namespace belvedere::kernels::avx512
