// SPDX-License-Identifier: Apache-2.0
// mat_mul_fast for prompts with BF16 weights on CPUs whose bf16 products are as many a cycle as
// those of f32: activations are rounded to bf16, sums are f32. 16 rows in the lanes, two columns a
// step. Each sum runs over the columns in order, whatever the number of tokens. Other types go the
// way of mat_mul.cpp.
//
//     activations of BF16: chunk = [ceil(n_cols / 2)][T] pairs of bf16, 0 behind the last column

#include <immintrin.h>

#include "kernels/avx512/avx512_kernels.h"
#include "kernels/avx512/bf16.h"
#include "kernels/avx512/lanes.h"
#include "kernels/packed.h"

namespace belvedere::kernels::avx512 {
namespace {

size_t pairsIn(size_t n_cols) {
    return (n_cols + 1) / 2;
}

/// Of the tile [n_cols][16 rows] columns 2p and 2p + 1, those of a row side by side.
__m512i weightPairs(const uint8_t* tile, size_t p, size_t n_cols) {
    const __mmask32 mask = 2 * p + 1 < n_cols ? 0xffffffffU : 0xffffU;
    return interleave(_mm512_maskz_loadu_epi16(mask, tile + p * 2 * kTileRows * sizeof(uint16_t)));
}

template <size_t kTokens>
void multiplyChunk(const MatMulFast& args, size_t token) {
    const size_t n_pairs = pairsIn(args.n_cols);
    const size_t tile_bytes = packedTileBytes(WeightType::BF16, args.n_cols);
    const auto* x = static_cast<const int32_t*>(args.activations) + token * n_pairs;
    for (size_t row = args.row_begin; row < args.row_end; row += kTileRows) {
        const uint8_t* tile =
            static_cast<const uint8_t*>(args.packed) + row / kTileRows * tile_bytes;
        __m512 acc[kTokens];
#pragma GCC unroll 16
        for (size_t t = 0; t < kTokens; ++t) {
            acc[t] = _mm512_setzero_ps();
        }
        for (size_t p = 0; p < n_pairs; ++p) {
            const __m512i w = weightPairs(tile, p, args.n_cols);
#pragma GCC unroll 16
            for (size_t t = 0; t < kTokens; ++t) {
                const __m512i pair = _mm512_set1_epi32(x[p * kTokens + t]);
                acc[t] = _mm512_dpbf16_ps(acc[t], reinterpret_cast<const __m512bh&>(w),
                                          reinterpret_cast<const __m512bh&>(pair));
            }
        }
        const __mmask16 mask = firstLanes(args.row_end - row);
#pragma GCC unroll 16
        for (size_t t = 0; t < kTokens; ++t) {
            _mm512_mask_storeu_ps(args.out + (token + t) * args.out_stride + row, mask, acc[t]);
        }
    }
}

}  // namespace

bool sameActivationsBFloat(WeightType a, WeightType b) noexcept {
    return samePackedActivations(a, b) && (a == WeightType::BF16) == (b == WeightType::BF16);
}

size_t activationBytesBFloat(WeightType type, size_t n_tokens, size_t n_cols) noexcept {
    return type == WeightType::BF16 ? n_tokens * pairsIn(n_cols) * sizeof(int32_t)
                                    : packedActivationBytes(type, n_tokens, n_cols);
}

void quantizeActivationsBFloat(WeightType type,
                               const float* x,
                               size_t x_stride,
                               size_t n_tokens,
                               size_t n_cols,
                               void* activations,
                               size_t token_begin,
                               size_t token_end) noexcept {
    if (type != WeightType::BF16) {
        return quantizeActivations(type, x, x_stride, n_tokens, n_cols, activations, token_begin,
                                   token_end);
    }
    const size_t n_pairs = pairsIn(n_cols);
    for (size_t token = token_begin; token < token_end; ++token) {
        const TokenChunk chunk = chunkAt(n_tokens, token);
        const float* row = x + token * x_stride;
        int32_t* out =
            static_cast<int32_t*>(activations) + chunk.begin * n_pairs + (token - chunk.begin);
        for (size_t col = 0; col < n_cols; col += 16) {
            const __m256bh rounded =
                _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(firstLanes(n_cols - col), row + col));
            alignas(32) int32_t pairs[8];
            _mm256_store_si256(reinterpret_cast<__m256i*>(pairs),
                               reinterpret_cast<const __m256i&>(rounded));
            const size_t n_left = n_pairs - col / 2;
            for (size_t p = 0; p < (n_left < 8 ? n_left : 8); ++p) {
                out[(col / 2 + p) * chunk.n] = pairs[p];
            }
        }
    }
}

void matMulFastBFloat(const MatMulFast& args) noexcept {
    if (args.type != WeightType::BF16) {
        return matMulFast(args);
    }
    forEachChunk(args.n_tokens, [&args](size_t token, auto count) {
        multiplyChunk<decltype(count)::kTokens>(args, token);
    });
}

}  // namespace belvedere::kernels::avx512
