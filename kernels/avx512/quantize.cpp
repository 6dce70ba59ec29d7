// SPDX-License-Identifier: Apache-2.0
// Activations for mat_mul_fast, in the layout of kernels/packed.h: bytes with one scale per 32, or
// f32 for float weights. A block with an infinity or a NaN gets the scale NaN, so that the damage
// shows in the result.

#include <immintrin.h>

#include "kernels/avx512/avx512_kernels.h"
#include "kernels/packed.h"

namespace belvedere::kernels::avx512 {
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
    const __m512 a = _mm512_loadu_ps(x);
    const __m512 b = _mm512_loadu_ps(x + 16);
    const __m512 infinity = _mm512_set1_ps(__builtin_inff());
    const __m512 abs_a = _mm512_abs_ps(a);
    const __m512 abs_b = _mm512_abs_ps(b);
    const bool finite = (_mm512_cmp_ps_mask(abs_a, infinity, _CMP_LT_OQ) &
                         _mm512_cmp_ps_mask(abs_b, infinity, _CMP_LT_OQ)) == 0xffff;
    const float largest = _mm512_reduce_max_ps(_mm512_max_ps(abs_a, abs_b));
    // 127 / largest overflows for a subnormal `largest`: such a block counts as zero.
    float inverse = largest > 0 ? 127.0F / largest : 0.0F;
    if (!finite || !(inverse < __builtin_inff())) {
        inverse = 0;
    }
    const float scale = finite ? largest / 127.0F : __builtin_nanf("");
    const __m512 factor = _mm512_set1_ps(inverse);
    const auto bytes = [&](__m512 v) {
        return _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(v, factor)));
    };
    __m128i q_low = bytes(a);
    __m128i q_high = bytes(b);
    if (!finite) {
        q_low = _mm_setzero_si128();
        q_high = _mm_setzero_si128();
    }
    const __m256i q = _mm256_set_m128i(q_high, q_low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target.q), q);
    // Sums of the two halves: fours by the dot product with ones, then across each half.
    __m256i sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), q);
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
    storeSums(target, scale, _mm_cvtsi128_si32(_mm256_castsi256_si128(sums)),
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

}  // namespace belvedere::kernels::avx512
