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
#include "kernels/avx512/lanes.h"
#include "kernels/avx512/unpack.h"
#include "kernels/packed.h"

// Helpers are forced inline: one call in the loop would send every accumulator through memory.

namespace belvedere::kernels::avx512 {
namespace {

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
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
        acc[t] = _mm512_setzero_ps();
    }
    for (size_t s = 0; s < n_blocks / kSuperBlocks; ++s) {
        const uint8_t* super = tile;
        tile += scaleBytes(kFormat.scales);
        for (size_t b = 0; b < kSuperBlocks; ++b) {
            addBlock<kType, kTokens>(tile, super, b, activations, acc);
            tile += quantBytes(kFormat.quants);
            activations += kTokens * kActivationBlockBytes;
        }
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
        const __mmask16 mask = firstLanes(args.row_end - row);
        for (size_t t = 0; t < kTokens; ++t) {
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

}  // namespace

void matMulFast(const MatMulFast& args) noexcept {
    withWeightType(args.type, [&args](auto tag) {
        constexpr WeightType kType = decltype(tag)::kType;
        if constexpr (isFloatType(kType)) {
            matMulFloat(args);
        } else {
            multiply<kType>(args);
        }
    });
}

}  // namespace belvedere::kernels::avx512
