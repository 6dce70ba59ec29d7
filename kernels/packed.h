// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layouts that the AVX2 and AVX-512 versions of mat_mul_fast read. Both are private to
// kernels/: weights and activations are written and read by the same table. Plain data and pure
// functions, any thread.
//
// Weights, quantised types. 16 rows make a tile, lane r of a vector belongs to row r, so that no
// sum crosses lanes. Columns go in blocks of 32, a group g of 8 in a block is columns 4g..4g+3, and
// "vector g" is byte 4r + i = column 4g + i of row r: what a dot product of bytes takes against 4
// broadcast activations. Integers are stored unsigned, `offset` added.
//
//     tile = (n_blocks / blocksPerSuper) x super-block, padded to 64 bytes
//     super-block = scales, then blocksPerSuper x quants
//
// All that a row's sum needs stands in the order of its reading: generation reads one stream of
// memory, which the processor fetches ahead of it. With the scales of a tile behind its quants one
// thread got 10 GB/s of 23.
//
//     quants  bytes  of one block
//     Four    256    v = 0..3: vector v in the low nibbles, vector v + 4 in the high ones
//     Five    320    Four, then 8 masks of 64 bits: bit b of mask g is bit 4 of byte b of vector g
//     Six     384    Four, then k = 0, 1: 64 bytes with bits 4, 5 of vector 4k + j in bits 2j, 2j +
//     1 Two     128    k = 0, 1: 64 bytes with vector 4k + j in bits 2j, 2j + 1 Three   192    Two,
//     then masks as in Five with bit 2 Eight   512    vector 0..7
//
//     scales  bytes  of one super-block (1 block, or 8 for those with Super)
//     D       32     d[16] f16                                              y = d q
//     DMin    64     d[16], m[16] f16                                       y = d q + m
//     Power   16     e[16], d = 2^(e - 128)                                 y = d q
//     SuperPair    320  d[16], dmin[16] f16, 8 x (scale[16], min[16] u8)    y = d scale q - dmin
//     min SuperHalves  288  d[16] f16, 8 x 2 halves x scale[16] s8              y = d scale q
//     SuperPairHalves 320  d[16], dmin[16] f16, 8 x 2 halves x (scale | min << 4)[16]
//     A half is 16 columns.
//
// Weights, float types: tile = [n_cols][16 rows] in the stored type. MXFP8 is one of them: behind
// its columns stand, for each block of 32, the scales of the rows as in Power.
//
// Activations. Tokens go in chunks of 16, the rest in chunks of 8, 4, 2, 1, so that a kernel has a
// fixed number of accumulators.
//     quantised: chunk = n_blocks x ([T][32] s8, then kActivationFields x [T] of 4 bytes, see
//     ActivationField) float:     chunk = [n_cols][T] f32

#include <cstddef>
#include <cstdint>

#include "kernels/formats.h"

namespace belvedere::kernels {

inline constexpr size_t kTileRows = 16;
inline constexpr size_t kBlockCols = 32;
inline constexpr size_t kMaxChunkTokens = 16;

enum class Quants { Four, Five, Six, Two, Three, Eight, Float, Float8 };
enum class Scales { D, DMin, Power, SuperPair, SuperHalves, SuperPairHalves, None };

struct PackedFormat {
    Quants quants;
    Scales scales;
    int offset;  ///< stored integer = offset + the integer of the formula
};

// Functions here are static: an inline function of baseline code could be merged with the copy of
// an AVX-512 file.

static inline constexpr PackedFormat packedFormat(WeightType type) {
    switch (type) {
        case WeightType::Q4_0:
            return {Quants::Four, Scales::D, 8};
        case WeightType::Q4_1:
            return {Quants::Four, Scales::DMin, 0};
        case WeightType::Q5_0:
            return {Quants::Five, Scales::D, 16};
        case WeightType::Q5_1:
            return {Quants::Five, Scales::DMin, 0};
        case WeightType::Q8_0:
            return {Quants::Eight, Scales::D, 128};
        case WeightType::Q2_K:
            return {Quants::Two, Scales::SuperPairHalves, 0};
        case WeightType::Q3_K:
            return {Quants::Three, Scales::SuperHalves, 4};
        case WeightType::Q4_K:
            return {Quants::Four, Scales::SuperPair, 0};
        case WeightType::Q5_K:
            return {Quants::Five, Scales::SuperPair, 0};
        case WeightType::Q6_K:
            return {Quants::Six, Scales::SuperHalves, 32};
        case WeightType::MXFP4:
            return {Quants::Four, Scales::Power, 16};  // codes; the kernel looks the integers up
        case WeightType::MXFP8:
            return {Quants::Float8, Scales::Power, 0};
        case WeightType::F32:
        case WeightType::F16:
        case WeightType::BF16:
            break;
    }
    return {Quants::Float, Scales::None, 0};
}

/// A weight type as a type.
template <WeightType kNamed>
struct WeightTypeTag {
    static constexpr WeightType kType = kNamed;
};

/// Calls work with the tag of a type.
template <class Work>
static inline void withWeightType(WeightType type, Work&& work) {
    switch (type) {
        case WeightType::F32:
            return work(WeightTypeTag<WeightType::F32>());
        case WeightType::F16:
            return work(WeightTypeTag<WeightType::F16>());
        case WeightType::BF16:
            return work(WeightTypeTag<WeightType::BF16>());
        case WeightType::Q4_0:
            return work(WeightTypeTag<WeightType::Q4_0>());
        case WeightType::Q4_1:
            return work(WeightTypeTag<WeightType::Q4_1>());
        case WeightType::Q5_0:
            return work(WeightTypeTag<WeightType::Q5_0>());
        case WeightType::Q5_1:
            return work(WeightTypeTag<WeightType::Q5_1>());
        case WeightType::Q8_0:
            return work(WeightTypeTag<WeightType::Q8_0>());
        case WeightType::Q2_K:
            return work(WeightTypeTag<WeightType::Q2_K>());
        case WeightType::Q3_K:
            return work(WeightTypeTag<WeightType::Q3_K>());
        case WeightType::Q4_K:
            return work(WeightTypeTag<WeightType::Q4_K>());
        case WeightType::Q5_K:
            return work(WeightTypeTag<WeightType::Q5_K>());
        case WeightType::Q6_K:
            return work(WeightTypeTag<WeightType::Q6_K>());
        case WeightType::MXFP4:
            return work(WeightTypeTag<WeightType::MXFP4>());
        case WeightType::MXFP8:
            return work(WeightTypeTag<WeightType::MXFP8>());
    }
}

/// Whether activations stay f32.
static inline constexpr bool isFloatType(WeightType type) {
    return packedFormat(type).quants >= Quants::Float;
}

/// Bytes of an element of a float type.
static inline constexpr size_t floatBytes(WeightType type) {
    return type == WeightType::F32 ? 4 : 2;
}

/// Bytes of the quants of 16 rows x 32 columns.
static inline constexpr size_t quantBytes(Quants quants) {
    constexpr size_t kBytes[] = {256, 320, 384, 128, 192, 512, 0, 512};
    return kBytes[static_cast<size_t>(quants)];
}

/// Bytes of the scales of 16 rows x one super-block.
static inline constexpr size_t scaleBytes(Scales scales) {
    constexpr size_t kBytes[] = {32, 64, 16, 320, 288, 320, 0};
    return kBytes[static_cast<size_t>(scales)];
}

static inline constexpr size_t blocksPerSuper(Scales scales) {
    return scales == Scales::SuperPair || scales == Scales::SuperHalves ||
                   scales == Scales::SuperPairHalves
               ? 8
               : 1;
}

/// Whether the two halves of a block have scales of their own.
static inline constexpr bool hasHalves(Scales scales) {
    return scales == Scales::SuperHalves || scales == Scales::SuperPairHalves;
}

static inline constexpr bool hasMins(Scales scales) {
    return scales == Scales::DMin || scales == Scales::SuperPair ||
           scales == Scales::SuperPairHalves;
}

/// Bytes of 16 rows x one super-block.
static inline constexpr size_t superBytes(const PackedFormat& format) {
    return scaleBytes(format.scales) + blocksPerSuper(format.scales) * quantBytes(format.quants);
}

/// Bytes of one tile of 16 rows.
static inline constexpr size_t packedTileBytes(WeightType type, size_t n_cols) {
    const PackedFormat format = packedFormat(type);
    const size_t n_blocks = n_cols / kBlockCols;
    const size_t bytes = format.quants == Quants::Float
                             ? n_cols * kTileRows * floatBytes(type)
                             : n_blocks / blocksPerSuper(format.scales) * superBytes(format);
    return (bytes + 63) / 64 * 64;
}

/// Four-byte values that stand beside the quantised activations of a block, [T] each. x = scale q.
/// A sum of q times -offset starts the integer sum of a type with that offset, so that the kernel
/// need not correct for it.
enum ActivationField : size_t {
    kScale,    ///< f32
    kSum,      ///< f32: scale times the sum of q
    kSumLow,   ///< f32: the same over the first 16 columns
    kSumHigh,  ///< f32: over the last 16
    kStart8,   ///< s32: -8 times the sum of q
    kStart16,
    kStart128,
    kStartLow4,  ///< s32: -4 times the sum over the first 16 columns
    kStartHigh4,
    kStartLow32,
    kStartHigh32,
    kActivationFields
};

/// Bytes of one token's share of one block.
inline constexpr size_t kActivationBlockBytes = kBlockCols + 4 * kActivationFields;

/// Tokens [begin, begin + n) that stand together.
struct TokenChunk {
    size_t begin;
    size_t n;  ///< 16, 8, 4, 2 or 1
};

/// The chunk that holds `token` of n_tokens.
static inline constexpr TokenChunk chunkAt(size_t n_tokens, size_t token) {
    size_t begin = token / kMaxChunkTokens * kMaxChunkTokens;
    size_t n_left = n_tokens - begin;
    for (size_t n = kMaxChunkTokens; n > 1; n /= 2) {
        if (n_left >= n) {
            if (token < begin + n) {
                return {begin, n};
            }
            begin += n;
            n_left -= n;
        }
    }
    return {begin, 1};
}

/// A number of tokens as a type.
template <size_t kNumber>
struct TokenCount {
    static constexpr size_t kTokens = kNumber;
};

/// Calls work(first token, TokenCount of the chunk) for each chunk of n_tokens.
template <class Work>
static inline void forEachChunk(size_t n_tokens, Work&& work) {
    for (size_t token = 0; token < n_tokens;) {
        const size_t n = chunkAt(n_tokens, token).n;
        switch (n) {
            case 16:
                work(token, TokenCount<16>());
                break;
            case 8:
                work(token, TokenCount<8>());
                break;
            case 4:
                work(token, TokenCount<4>());
                break;
            case 2:
                work(token, TokenCount<2>());
                break;
            default:
                work(token, TokenCount<1>());
                break;
        }
        token += n;
    }
}

// The table's fields, for both instruction sets.

size_t packedBytes(WeightType type, size_t n_rows, size_t n_cols) noexcept;
void packRows(WeightType type,
              const void* w,
              size_t n_rows,
              size_t n_cols,
              void* packed,
              size_t row_begin,
              size_t row_end) noexcept;
size_t packedActivationBytes(WeightType type, size_t n_tokens, size_t n_cols) noexcept;
bool samePackedActivations(WeightType a, WeightType b) noexcept;

}  // namespace belvedere::kernels
