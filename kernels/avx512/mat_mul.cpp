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

// Helpers are forced inline: one call in the loop would send every accumulator through memory.

namespace belvedere::kernels::avx512 {
namespace {

__m512i loadBytes(const uint8_t* p) {
    return _mm512_loadu_si512(p);
}

__m512 loadHalves(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

__m512i loadU8Integers(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

__m512 loadU8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(loadU8Integers(p));
}

__m512 loadS8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

/// 2^(e - 128), subnormal for e = 0 and 1.
__m512 loadPowers(const uint8_t* p) {
    const __m512i e = loadU8Integers(p);
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    const __mmask16 small = _mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(small, normal, subnormal));
}

/// A constant made anew at each use: kept in a register over the whole loop it would push an
/// accumulator out.
[[gnu::always_inline]] inline __m512i constant(char value) {
    __m512i v = _mm512_set1_epi8(value);
    asm volatile("" : "+v"(v));
    return v;
}

[[gnu::always_inline]] inline void unpackNibbles(const uint8_t* p, __m512i* w) {
    const __m512i mask = constant(15);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
        const __m512i bytes = loadBytes(p + 64 * v);
        w[v] = _mm512_and_si512(bytes, mask);
        w[v + 4] = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), mask);
    }
}

[[gnu::always_inline]] inline void unpackBitPairs(const uint8_t* p, __m512i* w) {
    const __m512i mask = constant(3);
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
[[gnu::always_inline]] inline void addBits(const uint8_t* masks, char value, __m512i* w) {
    const __m512i bit = constant(value);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
        const __mmask64 mask =
            _load_mask64(const_cast<__mmask64*>(reinterpret_cast<const __mmask64*>(masks + 8 * g)));
        w[g] = _mm512_mask_add_epi8(w[g], mask, w[g], bit);
    }
}

/// Vectors 0..7 of a block, stored integers.
template <WeightType kType>
[[gnu::always_inline]] inline void unpack(const uint8_t* p, __m512i* w) {
    constexpr Quants kQuants = packedFormat(kType).quants;
    if constexpr (kType == WeightType::MXFP4) {
        unpackNibbles(p, w);
        // Doubled values of the codes, plus 16.
        __m512i values = _mm512_broadcast_i32x4(
            _mm_setr_epi8(16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4));
        asm volatile("" : "+v"(values));
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

/// Factors of 16 rows in one block; where its halves have factors of their own, of one half.
///
/// Loaded where they are used and no sooner, also the super-block's: with 16 accumulators, 8
/// vectors of weights and 4 sums there are no registers to keep them in.
template <Scales kScales>
[[gnu::always_inline]] inline __m512 loadScale(const uint8_t* super, size_t b, size_t half) {
    if constexpr (kScales == Scales::Power) {
        return loadPowers(super);
    } else if constexpr (kScales == Scales::SuperPair) {
        return _mm512_mul_ps(loadHalves(super), loadU8(super + 64 + 32 * b));
    } else if constexpr (kScales == Scales::SuperHalves) {
        return _mm512_mul_ps(loadHalves(super), loadS8(super + 32 + 32 * b + 16 * half));
    } else if constexpr (kScales == Scales::SuperPairHalves) {
        const __m512i pair = loadU8Integers(super + 64 + 32 * b + 16 * half);
        const __m512i scale = _mm512_and_si512(pair, _mm512_set1_epi32(15));
        return _mm512_mul_ps(loadHalves(super), _mm512_cvtepi32_ps(scale));
    } else {
        return loadHalves(super);
    }
}

/// What is added per unit of the activations' sum.
template <Scales kScales>
[[gnu::always_inline]] inline __m512 loadMin(const uint8_t* super, size_t b, size_t half) {
    const __m512 m = loadHalves(super + 32);
    if constexpr (kScales == Scales::SuperPair) {
        const __m512 min = _mm512_mul_ps(m, loadU8(super + 64 + 32 * b + 16));
        return _mm512_sub_ps(_mm512_setzero_ps(), min);
    } else if constexpr (kScales == Scales::SuperPairHalves) {
        const __m512i pair = loadU8Integers(super + 64 + 32 * b + 16 * half);
        const __m512 min = _mm512_mul_ps(m, _mm512_cvtepi32_ps(_mm512_srli_epi32(pair, 4)));
        return _mm512_sub_ps(_mm512_setzero_ps(), min);
    } else {
        return m;
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

/// Tokens whose integer sums run side by side: one chain alone waits for the latency of vpdpbusd.
constexpr size_t kChains = 4;

/// sums[i] = start + vectors [kFirst, kLast) times the activations of token t + i.
template <size_t kTokens, size_t kN, ActivationField kStart, int kFirst, int kLast>
[[gnu::always_inline]] inline void dot(const __m512i* w,
                                       const uint8_t* activations,
                                       size_t t,
                                       __m512i* sums) {
    const auto* words = reinterpret_cast<const int32_t*>(activations + t * kBlockCols);
#pragma GCC unroll 4
    for (size_t i = 0; i < kN; ++i) {
        sums[i] = start<kTokens, kStart>(activations, t + i);
    }
#pragma GCC unroll 8
    for (int g = kFirst; g < kLast; ++g) {
#pragma GCC unroll 4
        for (size_t i = 0; i < kN; ++i) {
            const __m512i a =
                _mm512_set1_epi32(words[i * (kBlockCols / 4) + static_cast<size_t>(g)]);
            sums[i] = _mm512_dpbusd_epi32(sums[i], w[g], a);
        }
    }
}

/// acc[i] += integer sums times the scales of the rows and of token t + i.
template <size_t kTokens, size_t kN>
[[gnu::always_inline]] inline void addScaled(
    const __m512i* sums, __m512 row_scale, const uint8_t* activations, size_t t, __m512* acc) {
#pragma GCC unroll 4
    for (size_t i = 0; i < kN; ++i) {
        const __m512 scale = broadcast<kTokens>(activations, kScale, t + i);
        acc[i] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[i]), _mm512_mul_ps(row_scale, scale), acc[i]);
    }
}

/// acc[t] += vectors [kFirst, kLast) of a block with their scale times every token of the chunk.
template <size_t kTokens, ActivationField kStart, int kFirst, int kLast>
[[gnu::always_inline]] inline void addProducts(const __m512i* w,
                                               __m512 row_scale,
                                               const uint8_t* activations,
                                               __m512* acc) {
    constexpr size_t kN = kTokens < kChains ? kTokens : kChains;
#pragma GCC unroll 4
    for (size_t t = 0; t < kTokens; t += kN) {
        __m512i sums[kN];
        dot<kTokens, kN, kStart, kFirst, kLast>(w, activations, t, sums);
        addScaled<kTokens, kN>(sums, row_scale, activations, t, acc + t);
    }
}

template <size_t kTokens, ActivationField kField>
[[gnu::always_inline]] inline void addMins(__m512 min, const uint8_t* activations, __m512* acc) {
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
        acc[t] = _mm512_fmadd_ps(min, broadcast<kTokens>(activations, kField, t), acc[t]);
    }
}

/// Block b of a super-block of 16 rows times one chunk.
template <WeightType kType, size_t kTokens>
[[gnu::always_inline]] inline void addBlock(const uint8_t* quants,
                                            const uint8_t* super,
                                            size_t b,
                                            const uint8_t* activations,
                                            __m512* acc) {
    constexpr PackedFormat kFormat = packedFormat(kType);
    constexpr Scales kScales = kFormat.scales;
    constexpr ActivationField kLow = startField<kFormat.offset>(false);
    constexpr ActivationField kHigh = startField<kFormat.offset>(true);
    __m512i w[8];
    unpack<kType>(quants, w);
    if constexpr (hasHalves(kScales)) {
        const __m512 low = loadScale<kScales>(super, b, 0);
        addProducts<kTokens, kLow, 0, 4>(w, low, activations, acc);
        const __m512 high = loadScale<kScales>(super, b, 1);
        addProducts<kTokens, kHigh, 4, 8>(w, high, activations, acc);
    } else {
        const __m512 scale = loadScale<kScales>(super, b, 0);
        addProducts<kTokens, kLow, 0, 8>(w, scale, activations, acc);
    }
    if constexpr (hasMins(kScales) && hasHalves(kScales)) {
        addMins<kTokens, kSumLow>(loadMin<kScales>(super, b, 0), activations, acc);
        addMins<kTokens, kSumHigh>(loadMin<kScales>(super, b, 1), activations, acc);
    } else if constexpr (hasMins(kScales)) {
        addMins<kTokens, kSum>(loadMin<kScales>(super, b, 0), activations, acc);
    }
}

/// One tile of 16 rows times one chunk of kTokens tokens: acc[t] = out[t, tile].
template <WeightType kType, size_t kTokens>
[[gnu::always_inline]] inline void multiplyTile(const uint8_t* tile,
                                                const uint8_t* activations,
                                                size_t n_blocks,
                                                __m512* acc) {
    constexpr PackedFormat kFormat = packedFormat(kType);
    constexpr size_t kSuperBlocks = blocksPerSuper(kFormat.scales);
    const uint8_t* super = tile + n_blocks * quantBytes(kFormat.quants);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
        acc[t] = _mm512_setzero_ps();
    }
    for (size_t s = 0; s < n_blocks / kSuperBlocks; ++s) {
        for (size_t b = 0; b < kSuperBlocks; ++b) {
            addBlock<kType, kTokens>(tile, super, b, activations, acc);
            tile += quantBytes(kFormat.quants);
            activations += kTokens * kActivationBlockBytes;
        }
        super += scaleBytes(kFormat.scales);
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
        case WeightType::MXFP8:
            return matMulFloat(args);
    }
}

}  // namespace belvedere::kernels::avx512
