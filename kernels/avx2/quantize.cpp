// SPDX-License-Identifier: Apache-2.0
// Activations for mat_mul_fast, in the layout of kernels/packed.h: bytes with one scale per 32, or
// f32 for float weights. A block with an infinity or a NaN gets the scale NaN, so that the damage
// shows in the result.

#include <immintrin.h>

#include "kernels/avx2/avx2_kernels.h"
#include "kernels/avx2/vectors.h"
#include "kernels/packed.h"

namespace belvedere::kernels::avx2 {
namespace {

/// Where the values of one token in one block go.
struct BlockTarget {
    int8_t* q;      ///< [32]
    float* fields;  ///< field f at fields[f * stride]
    size_t stride;
};

void storeField(const BlockTarget& target, ActivationField field, float value) {
    target.fields[field * target.stride] = value;
}

void storeStart(const BlockTarget& target, ActivationField field, int value) {
    reinterpret_cast<int32_t*>(target.fields)[field * target.stride] = value;
}

void storeSums(const BlockTarget& target, float scale, int low, int high) {
    const int sum = low + high;
    storeField(target, kScale, scale);
    storeField(target, kSum, scale * static_cast<float>(sum));
    storeField(target, kSumLow, scale * static_cast<float>(low));
    storeField(target, kSumHigh, scale * static_cast<float>(high));
    storeStart(target, kStart8, -8 * sum);
    storeStart(target, kStart16, -16 * sum);
    storeStart(target, kStart128, -128 * sum);
    storeStart(target, kStartLow4, -4 * low);
    storeStart(target, kStartHigh4, -4 * high);
    storeStart(target, kStartLow32, -32 * low);
    storeStart(target, kStartHigh32, -32 * high);
}

void quantizeBlock(const float* x, const BlockTarget& target) {
    const __m256 infinity = _mm256_set1_ps(__builtin_inff());
    const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    __m256 v[4];
    __m256 largest_of = _mm256_setzero_ps();
    __m256 all_finite = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
        v[i] = _mm256_loadu_ps(x + 8 * i);
        const __m256 magnitude = _mm256_and_ps(v[i], no_sign);
        largest_of = _mm256_max_ps(largest_of, magnitude);
        all_finite = _mm256_and_ps(all_finite, _mm256_cmp_ps(magnitude, infinity, _CMP_LT_OQ));
    }
    const bool finite = _mm256_movemask_ps(all_finite) == 0xff;
    const float largest = largestOf(largest_of);
    // 127 / largest overflows for a subnormal `largest`: such a block counts as zero.
    float inverse = largest > 0 ? 127.0F / largest : 0.0F;
    if (!finite || !(inverse < __builtin_inff())) {
        inverse = 0;
    }
    const __m256 factor = _mm256_set1_ps(inverse);
    __m256i q[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
        q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], factor));
    }
    // Packing works inside 128-bit lanes and leaves groups of four in the order 0 2 4 6 1 3 5 7.
    const __m256i packed = _mm256_permutevar8x32_epi32(
        _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3])),
        _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    const __m256i bytes = finite ? packed : _mm256_setzero_si256();
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target.q), bytes);
    // Sums of the two halves: pairs, fours, then across each half.
    __m256i sums =
        _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
    storeSums(target, finite ? largest / 127.0F : __builtin_nanf(""),
              _mm_cvtsi128_si32(_mm256_castsi256_si128(sums)),
              _mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1)));
}

}  // namespace

void quantizeActivations(WeightType type,
                         const float* x,
                         size_t x_stride,
                         size_t n_tokens,
                         size_t n_cols,
                         void* activations,
                         size_t token_begin,
                         size_t token_end) noexcept {
    const size_t n_blocks = n_cols / kBlockCols;
    for (size_t token = token_begin; token < token_end; ++token) {
        const TokenChunk chunk = chunkAt(n_tokens, token);
        const size_t t = token - chunk.begin;
        const float* row = x + token * x_stride;
        if (isFloatType(type)) {
            float* out = static_cast<float*>(activations) + chunk.begin * n_cols;
            for (size_t col = 0; col < n_cols; ++col) {
                out[col * chunk.n + t] = row[col];
            }
            continue;
        }
        uint8_t* out =
            static_cast<uint8_t*>(activations) + chunk.begin * n_blocks * kActivationBlockBytes;
        for (size_t b = 0; b < n_blocks; ++b) {
            uint8_t* block = out + b * chunk.n * kActivationBlockBytes;
            float* fields = reinterpret_cast<float*>(block + chunk.n * kBlockCols) + t;
            quantizeBlock(row + b * kBlockCols,
                          {reinterpret_cast<int8_t*>(block + t * kBlockCols), fields, chunk.n});
        }
    }
}

}  // namespace belvedere::kernels::avx2
