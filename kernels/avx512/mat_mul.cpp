// SPDX-License-Identifier: Apache-2.0
// mat_mul_fast for the quantised types: bytes of weights times bytes of activations with vpdpbusd,
// 16 rows in the lanes, up to 16 tokens in the accumulators. Layouts: kernels/packed.h.
//
//     sum_i W[r, i] x[t, i] = sum over blocks of  d[r] scale[t] (start[t] + sum_i q[r, i] a[t, i])
//     (+ m[r] sum[t])
//
// where q is the stored, unsigned integer and start = -offset sum_i a. The integer part is exact.
// The order of the f32 sums is the same for every chunk size, so that a token's result does not
// depend on the batch it came in.

#include <immintrin.h>

#include "kernels/avx512/avx512_kernels.h"
#include "kernels/packed.h"

namespace belvedere::kernels::avx512 {
namespace {

__m512i loadBytes(const uint8_t* p) {
    return _mm512_loadu_si512(p);
}

__m512 loadHalves(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

__m512 loadU8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

__m512 loadS8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

/// 2^(e - 128), subnormal for e = 0 and 1.
__m512 loadPowers(const uint8_t* p) {
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    const __mmask16 small = _mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(small, normal, subnormal));
}

void unpackNibbles(const uint8_t* p, __m512i* w) {
    const __m512i mask = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
        const __m512i bytes = loadBytes(p + 64 * v);
        w[v] = _mm512_and_si512(bytes, mask);
        w[v + 4] = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask);
    }
}

void unpackBitPairs(const uint8_t* p, __m512i* w) {
    const __m512i mask = _mm512_set1_epi8(3);
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
        const __m512i bytes = loadBytes(p + 64 * k);
        w[4 * k] = _mm512_and_si512(bytes, mask);
        w[4 * k + 1] = _mm512_and_si512(_mm512_srli_epi16(bytes, 2), mask);
        w[4 * k + 2] = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask);
        w[4 * k + 3] = _mm512_and_si512(_mm512_srli_epi16(bytes, 6), mask);
    }
}

/// Adds `value` where the mask bit is set; it was zero there.
void addBits(const uint8_t* masks, char value, __m512i* w) {
    const __m512i bit = _mm512_set1_epi8(value);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
        const __mmask64 mask =
            _load_mask64(const_cast<__mmask64*>(reinterpret_cast<const __mmask64*>(masks + 8 * g)));
        w[g] = _mm512_mask_add_epi8(w[g], mask, w[g], bit);
    }
}

/// Vectors 0..7 of a block, stored integers.
template <WeightType kType>
void unpack(const uint8_t* p, __m512i* w) {
    constexpr Quants kQuants = packedFormat(kType).quants;
    if constexpr (kType == WeightType::MXFP4) {
        unpackNibbles(p, w);
        // Doubled values of the codes, plus 16.
        const __m512i values = _mm512_broadcast_i32x4(
            _mm_setr_epi8(16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4));
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            w[g] = _mm512_shuffle_epi8(values, w[g]);
        }
    } else if constexpr (kQuants == Quants::Four) {
        unpackNibbles(p, w);
    } else if constexpr (kQuants == Quants::Five) {
        unpackNibbles(p, w);
        addBits(p + 256, 16, w);
    } else if constexpr (kQuants == Quants::Six) {
        unpackNibbles(p, w);
        __m512i high[8];
        unpackBitPairs(p + 256, high);
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            w[g] = _mm512_or_si512(w[g], _mm512_slli_epi16(high[g], 4));
        }
    } else if constexpr (kQuants == Quants::Two) {
        unpackBitPairs(p, w);
    } else if constexpr (kQuants == Quants::Three) {
        unpackBitPairs(p, w);
        addBits(p + 128, 4, w);
    } else {
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            w[g] = loadBytes(p + 64 * g);
        }
    }
}

/// d and dmin of a super-block; for the simple types d and m of the block.
struct SuperScales {
    __m512 d;
    __m512 m;
};

/// Scales and mins of a block, of its halves where they differ. The min is added as it stands.
struct BlockScales {
    __m512 low;
    __m512 high;
    __m512 min_low;
    __m512 min_high;
};

template <Scales kScales>
SuperScales loadSuper(const uint8_t* p) {
    if constexpr (kScales == Scales::Power) {
        return {loadPowers(p), _mm512_setzero_ps()};
    } else if constexpr (hasMins(kScales)) {
        return {loadHalves(p), loadHalves(p + 32)};
    } else {
        return {loadHalves(p), _mm512_setzero_ps()};
    }
}

/// Block b of a super-block.
template <Scales kScales>
BlockScales loadBlock(const uint8_t* p, const SuperScales& super, size_t b) {
    const __m512 zero = _mm512_setzero_ps();
    if constexpr (kScales == Scales::SuperPair) {
        const uint8_t* pair = p + 64 + 32 * b;
        const __m512 min = _mm512_mul_ps(super.m, loadU8(pair + 16));
        return {_mm512_mul_ps(super.d, loadU8(pair)), zero, _mm512_sub_ps(zero, min), zero};
    } else if constexpr (kScales == Scales::SuperHalves) {
        const uint8_t* pair = p + 32 + 32 * b;
        return {_mm512_mul_ps(super.d, loadS8(pair)), _mm512_mul_ps(super.d, loadS8(pair + 16)),
                zero, zero};
    } else if constexpr (kScales == Scales::SuperPairHalves) {
        const uint8_t* pair = p + 64 + 32 * b;
        const __m512i low =
            _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pair)));
        const __m512i high =
            _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pair + 16)));
        const __m512i mask = _mm512_set1_epi32(15);
        const auto scale = [&](__m512i v) {
            return _mm512_mul_ps(super.d, _mm512_cvtepi32_ps(_mm512_and_si512(v, mask)));
        };
        const auto min = [&](__m512i v) {
            const __m512 m = _mm512_cvtepi32_ps(_mm512_srli_epi32(v, 4));
            return _mm512_sub_ps(zero, _mm512_mul_ps(super.m, m));
        };
        return {scale(low), scale(high), min(low), min(high)};
    } else {
        return {super.d, zero, super.m, zero};
    }
}

/// The field that starts the integer sum; kActivationFields for none.
template <int kOffset>
constexpr ActivationField startField(bool high) {
    if constexpr (kOffset == 4) {
        return high ? kStartHigh4 : kStartLow4;
    } else if constexpr (kOffset == 32) {
        return high ? kStartHigh32 : kStartLow32;
    } else if constexpr (kOffset == 8) {
        return kStart8;
    } else if constexpr (kOffset == 16) {
        return kStart16;
    } else if constexpr (kOffset == 128) {
        return kStart128;
    } else {
        return kActivationFields;
    }
}

template <size_t kTokens>
const void* field(const uint8_t* block, ActivationField which, size_t t) {
    return block + kTokens * kBlockCols + (which * kTokens + t) * 4;
}

template <size_t kTokens>
__m512 broadcast(const uint8_t* block, ActivationField which, size_t t) {
    return _mm512_set1_ps(*static_cast<const float*>(field<kTokens>(block, which, t)));
}

template <size_t kTokens, ActivationField kStart>
__m512i start(const uint8_t* block, size_t t) {
    if constexpr (kStart == kActivationFields) {
        return _mm512_setzero_si512();
    } else {
        return _mm512_set1_epi32(*static_cast<const int32_t*>(field<kTokens>(block, kStart, t)));
    }
}

/// sum + vectors [first, last) times their activations of one token.
__m512i dot(__m512i sum, const __m512i* w, const uint8_t* activations, int first, int last) {
    const auto* words = reinterpret_cast<const int32_t*>(activations);
#pragma GCC unroll 8
    for (int g = first; g < last; ++g) {
        sum = _mm512_dpbusd_epi32(sum, w[g], _mm512_set1_epi32(words[g]));
    }
    return sum;
}

/// One tile of 16 rows times one chunk of kTokens tokens: acc[t] = out[t, tile].
template <WeightType kType, size_t kTokens>
void multiplyTile(const uint8_t* tile, const uint8_t* activations, size_t n_blocks, __m512* acc) {
    constexpr PackedFormat kFormat = packedFormat(kType);
    constexpr size_t kSuperBlocks = blocksPerSuper(kFormat.scales);
    constexpr bool kHalves = hasHalves(kFormat.scales);
    constexpr ActivationField kLow = startField<kFormat.offset>(false);
    constexpr ActivationField kHigh = startField<kFormat.offset>(true);
    const uint8_t* scales = tile + n_blocks * quantBytes(kFormat.quants);
    for (size_t t = 0; t < kTokens; ++t) {
        acc[t] = _mm512_setzero_ps();
    }
    for (size_t s = 0; s < n_blocks / kSuperBlocks; ++s) {
        const SuperScales super = loadSuper<kFormat.scales>(scales);
        for (size_t b = 0; b < kSuperBlocks; ++b) {
            __m512i w[8];
            unpack<kType>(tile, w);
            const BlockScales block = loadBlock<kFormat.scales>(scales, super, b);
#pragma GCC unroll 16
            for (size_t t = 0; t < kTokens; ++t) {
                const uint8_t* a = activations + t * kBlockCols;
                const __m512 scale = broadcast<kTokens>(activations, kScale, t);
                const __m512i low =
                    dot(start<kTokens, kLow>(activations, t), w, a, 0, kHalves ? 4 : 8);
                acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(low), _mm512_mul_ps(block.low, scale),
                                         acc[t]);
                if constexpr (kHalves) {
                    const __m512i high = dot(start<kTokens, kHigh>(activations, t), w, a, 4, 8);
                    acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high),
                                             _mm512_mul_ps(block.high, scale), acc[t]);
                }
                if constexpr (hasMins(kFormat.scales)) {
                    acc[t] = _mm512_fmadd_ps(
                        block.min_low, broadcast<kTokens>(activations, kHalves ? kSumLow : kSum, t),
                        acc[t]);
                    if constexpr (kHalves) {
                        acc[t] = _mm512_fmadd_ps(
                            block.min_high, broadcast<kTokens>(activations, kSumHigh, t), acc[t]);
                    }
                }
            }
            tile += quantBytes(kFormat.quants);
            activations += kTokens * kActivationBlockBytes;
        }
        scales += scaleBytes(kFormat.scales);
    }
}

/// The rows of the call times one chunk. Tokens outside, tiles inside: the chunk stays in the
/// first-level cache.
template <WeightType kType, size_t kTokens>
void multiplyChunk(const MatMulFast& args, size_t token) {
    const size_t n_blocks = args.n_cols / kBlockCols;
    const size_t tile_bytes = packedTileBytes(kType, args.n_cols);
    const uint8_t* activations =
        static_cast<const uint8_t*>(args.activations) + token * n_blocks * kActivationBlockBytes;
    for (size_t row = args.row_begin; row < args.row_end; row += kTileRows) {
        const uint8_t* tile =
            static_cast<const uint8_t*>(args.packed) + row / kTileRows * tile_bytes;
        __m512 acc[kTokens];
        multiplyTile<kType, kTokens>(tile, activations, n_blocks, acc);
        const size_t n = args.row_end - row;
        const auto mask = static_cast<__mmask16>(n >= kTileRows ? 0xffffU : (1U << n) - 1U);
        for (size_t t = 0; t < kTokens; ++t) {
            _mm512_mask_storeu_ps(args.out + (token + t) * args.out_stride + row, mask, acc[t]);
        }
    }
}

template <WeightType kType>
void multiply(const MatMulFast& args) {
    for (size_t token = 0; token < args.n_tokens;) {
        const size_t n = chunkAt(args.n_tokens, token).n;
        switch (n) {
            case 16:
                multiplyChunk<kType, 16>(args, token);
                break;
            case 8:
                multiplyChunk<kType, 8>(args, token);
                break;
            case 4:
                multiplyChunk<kType, 4>(args, token);
                break;
            case 2:
                multiplyChunk<kType, 2>(args, token);
                break;
            default:
                multiplyChunk<kType, 1>(args, token);
                break;
        }
        token += n;
    }
}

}  // namespace

void matMulFast(const MatMulFast& args) noexcept {
    switch (args.type) {
        case WeightType::Q4_0:
            return multiply<WeightType::Q4_0>(args);
        case WeightType::Q4_1:
            return multiply<WeightType::Q4_1>(args);
        case WeightType::Q5_0:
            return multiply<WeightType::Q5_0>(args);
        case WeightType::Q5_1:
            return multiply<WeightType::Q5_1>(args);
        case WeightType::Q8_0:
            return multiply<WeightType::Q8_0>(args);
        case WeightType::Q2_K:
            return multiply<WeightType::Q2_K>(args);
        case WeightType::Q3_K:
            return multiply<WeightType::Q3_K>(args);
        case WeightType::Q4_K:
            return multiply<WeightType::Q4_K>(args);
        case WeightType::Q5_K:
            return multiply<WeightType::Q5_K>(args);
        case WeightType::Q6_K:
            return multiply<WeightType::Q6_K>(args);
        case WeightType::MXFP4:
            return multiply<WeightType::MXFP4>(args);
        case WeightType::F32:
        case WeightType::F16:
        case WeightType::BF16:
            return matMulFloat(args);
    }
}

}  // namespace belvedere::kernels::avx512
