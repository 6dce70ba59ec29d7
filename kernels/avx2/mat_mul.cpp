// SPDX-License-Identifier: Apache-2.0
// mat_mul_fast for the quantised types: as avx512/mat_mul.cpp, with 8 rows in the lanes, 4 tokens
// in the accumulators, and vpmaddubsw instead of vpdpbusd. Its 16-bit sums saturate, so only as
// many are added as fit the type's integers:
//
//     2 * 15 * 127 * 8 = 30480,  2 * 31 * 127 * 4 = 31496,  2 * 63 * 127 * 2 = 32004,  2 * 128 *
//     127 = 32512  < 32768
//
// Eight-bit weights are taken as |w| times the activation with w's sign. The f32 sums have the
// order of the AVX-512 version.

#include <immintrin.h>

#include "kernels/avx2/avx2_kernels.h"
#include "kernels/avx2/vectors.h"
#include "kernels/packed.h"

// Helpers are forced inline: one call in the loop would send every accumulator through memory.

namespace belvedere::kernels::avx2 {
namespace {

constexpr size_t kHalfRows = kTileRows / 2;

__m256i loadBytes(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

/// 8 elements from `first` of an array of 16 binary16 numbers.
__m256 loadHalves(const uint8_t* p, size_t first) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 2 * first)));
}

__m256i loadU8(const uint8_t* p, size_t first) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + first)));
}

__m256 loadS8(const uint8_t* p, size_t first) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + first))));
}

/// 2^(e - 128), subnormal for e = 0 and 1.
__m256 loadPowers(const uint8_t* p, size_t first) {
    const __m256i e = loadU8(p, first);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, small));
}

/// In these, p points at the half of rows inside the first vector: vectors are 64 bytes apart.
[[gnu::always_inline]] inline void unpackNibbles(const uint8_t* p, __m256i* w) {
    const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
        const __m256i bytes = loadBytes(p + 64 * v);
        w[v] = _mm256_and_si256(bytes, mask);
        w[v + 4] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
    }
}

[[gnu::always_inline]] inline void unpackBitPairs(const uint8_t* p, __m256i* w) {
    const __m256i mask = _mm256_set1_epi8(3);
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
        const __m256i bytes = loadBytes(p + 64 * k);
        w[4 * k] = _mm256_and_si256(bytes, mask);
        w[4 * k + 1] = _mm256_and_si256(_mm256_srli_epi16(bytes, 2), mask);
        w[4 * k + 2] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
        w[4 * k + 3] = _mm256_and_si256(_mm256_srli_epi16(bytes, 6), mask);
    }
}

/// Adds `value` where the mask bit is set; it was zero there. Mask g stands at masks + 8 g; 32 of
/// its bits are ours.
[[gnu::always_inline]] inline void addBits(const uint8_t* masks, char value, __m256i* w) {
    // Byte b of the mask to bytes 8b..8b+7, then one bit each.
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                            2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bits = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201U));
    const __m256i bit = _mm256_set1_epi8(value);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
        int32_t mask = 0;
        __builtin_memcpy(&mask, masks + 8 * g, 4);
        const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(mask), spread);
        const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bits), bits);
        w[g] = _mm256_or_si256(w[g], _mm256_and_si256(set, bit));
    }
}

/// Vectors 0..7 of a block for rows [first, first + 8); unsigned, but for the eight-bit type
/// signed.
template <WeightType kType>
[[gnu::always_inline]] inline void unpack(const uint8_t* block, size_t first, __m256i* w) {
    constexpr Quants kQuants = packedFormat(kType).quants;
    const uint8_t* p = block + 4 * first;
    if constexpr (kType == WeightType::MXFP4) {
        unpackNibbles(p, w);
        // Doubled values of the codes, plus 16.
        const __m256i values = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4));
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            w[g] = _mm256_shuffle_epi8(values, w[g]);
        }
    } else if constexpr (kQuants == Quants::Four) {
        unpackNibbles(p, w);
    } else if constexpr (kQuants == Quants::Five) {
        unpackNibbles(p, w);
        addBits(block + 256 + first / 2, 16, w);
    } else if constexpr (kQuants == Quants::Six) {
        unpackNibbles(p, w);
        __m256i high[8];
        unpackBitPairs(p + 256, high);
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            w[g] = _mm256_or_si256(w[g], _mm256_slli_epi16(high[g], 4));
        }
    } else if constexpr (kQuants == Quants::Two) {
        unpackBitPairs(p, w);
    } else if constexpr (kQuants == Quants::Three) {
        unpackBitPairs(p, w);
        addBits(block + 128 + first / 2, 4, w);
    } else {
        const __m256i sign = _mm256_set1_epi8(-128);
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            w[g] = _mm256_xor_si256(loadBytes(p + 64 * g), sign);
        }
    }
}

/// How many 16-bit products of a type may be added; see the top.
template <WeightType kType>
constexpr int groupSize() {
    constexpr Quants kQuants = packedFormat(kType).quants;
    if constexpr (kQuants == Quants::Eight) {
        return 1;
    } else if constexpr (kQuants == Quants::Six) {
        return 2;
    } else if constexpr (kType == WeightType::MXFP4 || kQuants == Quants::Five) {
        return 4;
    } else {
        return 8;
    }
}

/// sum + vectors [kFirst, kLast) times their activations of one token.
template <WeightType kType, int kFirst, int kLast>
[[gnu::always_inline]] inline __m256i dot(__m256i sum,
                                          const __m256i* w,
                                          const uint8_t* activations) {
    constexpr int kGroup =
        groupSize<kType>() < kLast - kFirst ? groupSize<kType>() : kLast - kFirst;
    const __m256i ones = _mm256_set1_epi16(1);
    const auto product = [&](int g) {
        int32_t word = 0;
        __builtin_memcpy(&word, activations + 4 * g, 4);
        const __m256i a = _mm256_set1_epi32(word);
        if constexpr (packedFormat(kType).quants == Quants::Eight) {
            return _mm256_maddubs_epi16(_mm256_abs_epi8(w[g]), _mm256_sign_epi8(a, w[g]));
        } else {
            return _mm256_maddubs_epi16(w[g], a);
        }
    };
#pragma GCC unroll 8
    for (int g = kFirst; g < kLast; g += kGroup) {
        __m256i pairs = product(g);
#pragma GCC unroll 8
        for (int k = 1; k < kGroup; ++k) {
            pairs = _mm256_add_epi16(pairs, product(g + k));
        }
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
    return sum;
}

/// d and dmin of a super-block; for the simple types d and m of the block.
struct SuperScales {
    __m256 d;
    __m256 m;
};

/// Scales and mins of a block, of its halves where they differ. The min is added as it stands.
struct BlockScales {
    __m256 low;
    __m256 high;
    __m256 min_low;
    __m256 min_high;
};

template <Scales kScales>
[[gnu::always_inline]] inline SuperScales loadSuper(const uint8_t* p, size_t first) {
    if constexpr (kScales == Scales::Power) {
        return {loadPowers(p, first), _mm256_setzero_ps()};
    } else if constexpr (hasMins(kScales)) {
        return {loadHalves(p, first), loadHalves(p + 32, first)};
    } else {
        return {loadHalves(p, first), _mm256_setzero_ps()};
    }
}

/// Block b of a super-block.
template <Scales kScales>
[[gnu::always_inline]] inline BlockScales loadBlock(const uint8_t* p,
                                                    size_t first,
                                                    const SuperScales& super,
                                                    size_t b) {
    const __m256 zero = _mm256_setzero_ps();
    if constexpr (kScales == Scales::SuperPair) {
        const uint8_t* pair = p + 64 + 32 * b;
        const __m256 scale = _mm256_cvtepi32_ps(loadU8(pair, first));
        const __m256 min = _mm256_cvtepi32_ps(loadU8(pair + 16, first));
        return {_mm256_mul_ps(super.d, scale), zero,
                _mm256_sub_ps(zero, _mm256_mul_ps(super.m, min)), zero};
    } else if constexpr (kScales == Scales::SuperHalves) {
        const uint8_t* pair = p + 32 + 32 * b;
        return {_mm256_mul_ps(super.d, loadS8(pair, first)),
                _mm256_mul_ps(super.d, loadS8(pair + 16, first)), zero, zero};
    } else if constexpr (kScales == Scales::SuperPairHalves) {
        const uint8_t* pair = p + 64 + 32 * b;
        const __m256i low = loadU8(pair, first);
        const __m256i high = loadU8(pair + 16, first);
        const __m256i mask = _mm256_set1_epi32(15);
        const auto scale = [&](__m256i v) {
            return _mm256_mul_ps(super.d, _mm256_cvtepi32_ps(_mm256_and_si256(v, mask)));
        };
        const auto min = [&](__m256i v) {
            const __m256 m = _mm256_cvtepi32_ps(_mm256_srli_epi32(v, 4));
            return _mm256_sub_ps(zero, _mm256_mul_ps(super.m, m));
        };
        return {scale(low), scale(high), min(low), min(high)};
    } else {
        return {super.d, zero, super.m, zero};
    }
}

/// The field that starts the integer sum; kActivationFields for none.
template <WeightType kType>
constexpr ActivationField startField(bool high) {
    switch (packedFormat(kType).offset) {
        case 4:
            return high ? kStartHigh4 : kStartLow4;
        case 32:
            return high ? kStartHigh32 : kStartLow32;
        case 8:
            return kStart8;
        case 16:
            return kStart16;
        default:
            return kActivationFields;  // none, or eight-bit weights, which are signed here
    }
}

/// Tokens [t, t + 4) of a chunk of n.
struct ChunkPart {
    const uint8_t* block;
    size_t n;
    size_t t;

    [[nodiscard]] const uint8_t* quants(size_t i) const { return block + (t + i) * kBlockCols; }

    [[nodiscard]] const uint8_t* field(ActivationField which, size_t i) const {
        return block + n * kBlockCols + (which * n + t + i) * 4;
    }
};

__m256 broadcast(const ChunkPart& part, ActivationField which, size_t i) {
    return _mm256_broadcast_ss(reinterpret_cast<const float*>(part.field(which, i)));
}

template <ActivationField kStart>
__m256i start(const ChunkPart& part, size_t i) {
    if constexpr (kStart == kActivationFields) {
        return _mm256_setzero_si256();
    } else {
        int32_t value = 0;
        __builtin_memcpy(&value, part.field(kStart, i), 4);
        return _mm256_set1_epi32(value);
    }
}

/// acc[i] += rows [first, first + 8) of one block times token i of the part.
template <WeightType kType, size_t kTokens>
[[gnu::always_inline]] inline void addBlock(const __m256i* w,
                                            const BlockScales& block,
                                            const ChunkPart& part,
                                            __m256* acc) {
    constexpr Scales kScales = packedFormat(kType).scales;
    constexpr bool kHalves = hasHalves(kScales);
#pragma GCC unroll 4
    for (size_t i = 0; i < kTokens; ++i) {
        const __m256 scale = broadcast(part, kScale, i);
        const uint8_t* a = part.quants(i);
        const __m256i low =
            dot<kType, 0, kHalves ? 4 : 8>(start<startField<kType>(false)>(part, i), w, a);
        acc[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(low), _mm256_mul_ps(block.low, scale), acc[i]);
        if constexpr (kHalves) {
            const __m256i high = dot<kType, 4, 8>(start<startField<kType>(true)>(part, i), w, a);
            acc[i] =
                _mm256_fmadd_ps(_mm256_cvtepi32_ps(high), _mm256_mul_ps(block.high, scale), acc[i]);
        }
        if constexpr (hasMins(kScales)) {
            const ActivationField low_sum = kHalves ? kSumLow : kSum;
            acc[i] = _mm256_fmadd_ps(block.min_low, broadcast(part, low_sum, i), acc[i]);
            if constexpr (kHalves) {
                acc[i] = _mm256_fmadd_ps(block.min_high, broadcast(part, kSumHigh, i), acc[i]);
            }
        }
    }
}

/// Rows [first, first + 8) of a tile times tokens [t, t + kTokens) of a chunk of n.
template <WeightType kType, size_t kTokens>
[[gnu::always_inline]] inline void multiplyTile(const uint8_t* tile,
                                                size_t first,
                                                const uint8_t* activations,
                                                size_t n,
                                                size_t t,
                                                size_t n_blocks,
                                                __m256* acc) {
    constexpr PackedFormat kFormat = packedFormat(kType);
    constexpr size_t kSuperBlocks = blocksPerSuper(kFormat.scales);
    for (size_t i = 0; i < kTokens; ++i) {
        acc[i] = _mm256_setzero_ps();
    }
    for (size_t s = 0; s < n_blocks / kSuperBlocks; ++s) {
        const uint8_t* scales = tile;
        const SuperScales super = loadSuper<kFormat.scales>(scales, first);
        tile += scaleBytes(kFormat.scales);
        for (size_t b = 0; b < kSuperBlocks; ++b) {
            __m256i w[8];
            unpack<kType>(tile, first, w);
            addBlock<kType, kTokens>(w, loadBlock<kFormat.scales>(scales, first, super, b),
                                     {activations, n, t}, acc);
            tile += quantBytes(kFormat.quants);
            activations += n * kActivationBlockBytes;
        }
    }
}

/// The rows of the call times kTokens tokens from t on of the chunk that begins at `token`.
template <WeightType kType, size_t kTokens>
void multiplyPart(const MatMulFast& args, TokenChunk chunk, size_t t) {
    const size_t n_blocks = args.n_cols / kBlockCols;
    const size_t tile_bytes = packedTileBytes(kType, args.n_cols);
    const uint8_t* activations = static_cast<const uint8_t*>(args.activations) +
                                 chunk.begin * n_blocks * kActivationBlockBytes;
    for (size_t row = args.row_begin; row < args.row_end; row += kHalfRows) {
        const uint8_t* tile =
            static_cast<const uint8_t*>(args.packed) + row / kTileRows * tile_bytes;
        __m256 acc[kTokens];
        multiplyTile<kType, kTokens>(tile, row % kTileRows, activations, chunk.n, t, n_blocks, acc);
        for (size_t i = 0; i < kTokens; ++i) {
            float* out = args.out + (chunk.begin + t + i) * args.out_stride + row;
            storeFirst(out, args.row_end - row, acc[i]);
        }
    }
}

template <WeightType kType>
void multiply(const MatMulFast& args) {
    for (size_t token = 0; token < args.n_tokens;) {
        const TokenChunk chunk = chunkAt(args.n_tokens, token);
        if (chunk.n >= 4) {
            for (size_t t = 0; t < chunk.n; t += 4) {
                multiplyPart<kType, 4>(args, chunk, t);
            }
        } else if (chunk.n == 2) {
            multiplyPart<kType, 2>(args, chunk, 0);
        } else {
            multiplyPart<kType, 1>(args, chunk, 0);
        }
        token += chunk.n;
    }
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

}  // namespace belvedere::kernels::avx2
