// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packed weights (kernels/packed.h) as tiles of bf16: 16 rows times 32 columns, columns in pairs.
// Everything has internal linkage.

#include "kernels/amx/tiles.h"
#include "kernels/avx512/float8.h"
#include "kernels/avx512/unpack.h"
#include "kernels/packed.h"

namespace belvedere::kernels::amx {
namespace {

/// Groups [kFirst, kLast) of a block: d q + m for the stored integers q.
template <int kFirst, int kLast>
inline void storeGroups(const __m512i* w, __m512 d, __m512 m, uint8_t* tile) {
    const __m512i byte = _mm512_set1_epi32(0xff);
#pragma GCC unroll 8
    for (int g = kFirst; g < kLast; ++g) {
        const auto value = [&](__m512i shifted) {
            return _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_and_si512(shifted, byte)), d, m);
        };
        const auto p = static_cast<size_t>(2 * g);
        storePair(tile, p, value(w[g]), value(_mm512_srli_epi32(w[g], 8)));
        storePair(tile, p + 1, value(_mm512_srli_epi32(w[g], 16)),
                  _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_srli_epi32(w[g], 24)), d, m));
    }
}

/// What is added to d q: the minimum, if there is one, less the offset that q carries.
template <WeightType kType>
inline __m512 addend(const uint8_t* super, size_t b, size_t half, __m512 d) {
    constexpr PackedFormat kFormat = packedFormat(kType);
    const __m512 offset = _mm512_set1_ps(-static_cast<float>(kFormat.offset));
    if constexpr (hasMins(kFormat.scales)) {
        return _mm512_fmadd_ps(d, offset, avx512::loadMin<kFormat.scales>(super, b, half));
    } else {
        return _mm512_mul_ps(d, offset);
    }
}

/// Block `block` of a tile of 16 rows of a quantised type.
template <WeightType kType>
void makeTile(const uint8_t* packed, size_t /*n_cols*/, size_t block, uint8_t* tile) {
    constexpr PackedFormat kFormat = packedFormat(kType);
    constexpr size_t kSuperBlocks = blocksPerSuper(kFormat.scales);
    const uint8_t* super = packed + block / kSuperBlocks * superBytes(kFormat);
    const size_t b = block % kSuperBlocks;
    const uint8_t* quants = super + scaleBytes(kFormat.scales) + b * quantBytes(kFormat.quants);
    __m512i w[8];
    avx512::unpack<kType>(quants, w);
    const __m512 d = avx512::loadScale<kFormat.scales>(super, b, 0);
    const __m512 m = addend<kType>(super, b, 0, d);
    if constexpr (hasHalves(kFormat.scales)) {
        storeGroups<0, 4>(w, d, m, tile);
        const __m512 high = avx512::loadScale<kFormat.scales>(super, b, 1);
        storeGroups<4, 8>(w, high, addend<kType>(super, b, 1, high), tile);
    } else {
        storeGroups<0, 8>(w, d, m, tile);
    }
}

/// The same of MXFP8, whose numbers bf16 holds exactly.
template <>
inline void makeTile<WeightType::MXFP8>(const uint8_t* packed,
                                        size_t n_cols,
                                        size_t block,
                                        uint8_t* tile) {
    const __m512 scale = avx512::loadFloat8Scales(packed, n_cols, block);
    const auto column = [&](size_t col) {
        const __m512 small = avx512::loadFloat8(packed + (block * kTileCols + col) * kTileRows);
        return _mm512_mul_ps(_mm512_mul_ps(small, _mm512_set1_ps(avx512::kFloat8Factor)), scale);
    };
    for (size_t p = 0; p < kTileCols / 2; ++p) {
        storePair(tile, p, column(2 * p), column(2 * p + 1));
    }
}

/// The same of BF16, whose columns need not be a multiple of 32: what is missing is 0.
template <>
inline void makeTile<WeightType::BF16>(const uint8_t* packed,
                                       size_t n_cols,
                                       size_t block,
                                       uint8_t* tile) {
    const auto column = [&](size_t col) {
        return col < n_cols ? _mm512_cvtepu16_epi32(_mm256_loadu_si256(
                                  reinterpret_cast<const __m256i*>(packed + col * 32)))
                            : _mm512_setzero_si512();
    };
    for (size_t p = 0; p < kTileCols / 2; ++p) {
        const size_t col = block * kTileCols + 2 * p;
        _mm512_store_si512(tile + 64 * p,
                           _mm512_or_si512(column(col), _mm512_slli_epi32(column(col + 1), 16)));
    }
}

}  // namespace
}  // namespace belvedere::kernels::amx
