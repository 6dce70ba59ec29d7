// SPDX-License-Identifier: Apache-2.0
// From the stored block formats (scalar/dequantize.cpp lists them) to the tiles of packed.h.

#include "kernels/packed.h"

#include <algorithm>
#include <cstring>

#include "kernels/scalar/float_formats.h"

namespace belvedere::kernels {
namespace {

using scalar::load;

/// The stored integers of 32 columns of one row, offset added, and where their scales stand in the
/// block.
struct RowBlock {
    uint8_t q[kBlockCols];
};

void nibbles(const uint8_t* bytes, RowBlock& out) {
    for (size_t i = 0; i < 16; ++i) {
        out.q[i] = bytes[i] & 15;
        out.q[i + 16] = bytes[i] >> 4;
    }
}

void addFifthBits(uint32_t bits, RowBlock& out) {
    for (size_t i = 0; i < kBlockCols; ++i) {
        out.q[i] = static_cast<uint8_t>(out.q[i] | (bits >> i & 1U) << 4);
    }
}

/// Integers of block `b` of 8 in a super-block of 256 (b = 0 for the simple types).
RowBlock readQuants(WeightType type, const uint8_t* block, size_t b) {
    RowBlock out;
    switch (type) {
        case WeightType::Q4_0:
            nibbles(block + 2, out);
            break;
        case WeightType::Q4_1:
            nibbles(block + 4, out);
            break;
        case WeightType::MXFP4:
            nibbles(block + 1, out);
            break;
        case WeightType::Q5_0:
            nibbles(block + 6, out);
            addFifthBits(load<uint32_t>(block + 2), out);
            break;
        case WeightType::Q5_1:
            nibbles(block + 8, out);
            addFifthBits(load<uint32_t>(block + 4), out);
            break;
        case WeightType::Q8_0:
            for (size_t i = 0; i < kBlockCols; ++i) {
                out.q[i] = block[2 + i] ^ 0x80;
            }
            break;
        case WeightType::Q2_K:
            for (size_t i = 0; i < kBlockCols; ++i) {
                out.q[i] = block[16 + b / 4 * 32 + i] >> (b % 4 * 2) & 3;
            }
            break;
        case WeightType::Q3_K:
            for (size_t i = 0; i < kBlockCols; ++i) {
                const int low = block[32 + b / 4 * 32 + i] >> (b % 4 * 2) & 3;
                out.q[i] = static_cast<uint8_t>(low | (block[i] >> b & 1) << 2);
            }
            break;
        case WeightType::Q4_K:
            for (size_t i = 0; i < kBlockCols; ++i) {
                out.q[i] = block[16 + b / 2 * 32 + i] >> (b % 2 * 4) & 15;
            }
            break;
        case WeightType::Q5_K:
            for (size_t i = 0; i < kBlockCols; ++i) {
                const int low = block[48 + b / 2 * 32 + i] >> (b % 2 * 4) & 15;
                out.q[i] = static_cast<uint8_t>(low | (block[16 + i] >> b & 1) << 4);
            }
            break;
        case WeightType::Q6_K:
            for (size_t i = 0; i < kBlockCols; ++i) {
                const int low = block[b / 4 * 64 + b % 2 * 32 + i] >> (b % 4 / 2 * 4) & 15;
                const int high = block[128 + b / 4 * 32 + i] >> (b % 4 * 2) & 3;
                out.q[i] = static_cast<uint8_t>(low | high << 4);
            }
            break;
        case WeightType::F32:
        case WeightType::F16:
        case WeightType::BF16:
        case WeightType::MXFP8:
            break;
    }
    return out;
}

/// Columns 4g..4g+3 as one word, the unit of all layouts.
uint32_t wordAt(const RowBlock& block, size_t g) {
    return load<uint32_t>(block.q + 4 * g);
}

void storeWord(uint8_t* vectors, size_t vector, size_t row, uint32_t word) {
    std::memcpy(vectors + vector * 64 + 4 * row, &word, 4);
}

void putNibbles(const RowBlock& block, uint8_t* out, size_t row) {
    for (size_t v = 0; v < 4; ++v) {
        const uint32_t low = wordAt(block, v) & 0x0f0f0f0fU;
        const uint32_t high = wordAt(block, v + 4) & 0x0f0f0f0fU;
        storeWord(out, v, row, low | high << 4);
    }
}

/// Bits `shift`, `shift` + 1 of each integer.
void putBitPairs(const RowBlock& block, unsigned shift, uint8_t* out, size_t row) {
    for (size_t k = 0; k < 2; ++k) {
        uint32_t word = 0;
        for (size_t j = 0; j < 4; ++j) {
            word |= (wordAt(block, 4 * k + j) >> shift & 0x03030303U) << 2 * j;
        }
        storeWord(out, k, row, word);
    }
}

/// Bit `shift` of each integer into 8 masks of 64 bits, which were zero.
void putBits(const RowBlock& block, unsigned shift, uint8_t* out, size_t row) {
    for (size_t g = 0; g < 8; ++g) {
        const uint32_t bits = wordAt(block, g) >> shift & 0x01010101U;
        const uint32_t four = (bits | bits >> 7 | bits >> 14 | bits >> 21) & 15U;
        uint8_t& byte = out[8 * g + row / 2];
        byte = static_cast<uint8_t>(byte | four << (row % 2 * 4));
    }
}

void putQuants(Quants quants, const RowBlock& block, uint8_t* out, size_t row) {
    switch (quants) {
        case Quants::Four:
            putNibbles(block, out, row);
            break;
        case Quants::Five:
            putNibbles(block, out, row);
            putBits(block, 4, out + 256, row);
            break;
        case Quants::Six:
            putNibbles(block, out, row);
            putBitPairs(block, 4, out + 256, row);
            break;
        case Quants::Two:
            putBitPairs(block, 0, out, row);
            break;
        case Quants::Three:
            putBitPairs(block, 0, out, row);
            putBits(block, 2, out + 128, row);
            break;
        case Quants::Eight:
            for (size_t g = 0; g < 8; ++g) {
                storeWord(out, g, row, wordAt(block, g));
            }
            break;
        case Quants::Float:
        case Quants::Float8:
            break;
    }
}

void copyHalf(const uint8_t* from, uint8_t* array, size_t row) {
    std::memcpy(array + 2 * row, from, 2);
}

/// Scale j of the 16 of Q3_K, see scalar/dequantize.cpp.
uint8_t scaleQ3K(const uint8_t* packed, size_t j) {
    const int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
    const int high = packed[8 + j % 4] >> (2 * (j / 4)) & 3;
    return static_cast<uint8_t>((low | high << 4) - 32);
}

/// The 8 pairs of Q4_K and Q5_K.
void putPairs(const uint8_t* b, uint8_t* out, size_t row) {
    for (size_t j = 0; j < 8; ++j) {
        const int scale = j < 4 ? b[j] & 63 : (b[j + 4] & 15) | (b[j - 4] >> 6) << 4;
        const int min = j < 4 ? b[j + 4] & 63 : b[j + 4] >> 4 | (b[j] >> 6) << 4;
        out[32 * j + row] = static_cast<uint8_t>(scale);
        out[32 * j + 16 + row] = static_cast<uint8_t>(min);
    }
}

void putScales(WeightType type, const uint8_t* block, uint8_t* out, size_t row) {
    switch (type) {
        case WeightType::Q4_0:
        case WeightType::Q5_0:
        case WeightType::Q8_0:
            copyHalf(block, out, row);
            break;
        case WeightType::Q4_1:
        case WeightType::Q5_1:
            copyHalf(block, out, row);
            copyHalf(block + 2, out + 32, row);
            break;
        case WeightType::MXFP4:
            out[row] = block[0];
            break;
        case WeightType::Q4_K:
        case WeightType::Q5_K:
            copyHalf(block, out, row);
            copyHalf(block + 2, out + 32, row);
            putPairs(block + 4, out + 64, row);
            break;
        case WeightType::Q2_K:
            copyHalf(block + 80, out, row);
            copyHalf(block + 82, out + 32, row);
            for (size_t j = 0; j < 16; ++j) {
                out[64 + 16 * j + row] = block[j];
            }
            break;
        case WeightType::Q3_K:
            copyHalf(block + 108, out, row);
            for (size_t j = 0; j < 16; ++j) {
                out[32 + 16 * j + row] = scaleQ3K(block + 96, j);
            }
            break;
        case WeightType::Q6_K:
            copyHalf(block + 208, out, row);
            for (size_t j = 0; j < 16; ++j) {
                out[32 + 16 * j + row] = block[192 + j];
            }
            break;
        case WeightType::F32:
        case WeightType::F16:
        case WeightType::BF16:
        case WeightType::MXFP8:
            break;
    }
}

void packQuantRow(
    WeightType type, const uint8_t* row_bytes, size_t n_cols, uint8_t* tile, size_t row) {
    const PackedFormat format = packedFormat(type);
    const size_t super_blocks = blocksPerSuper(format.scales);
    const size_t n_supers = n_cols / kBlockCols / super_blocks;
    const size_t stored_bytes = rowBytes(type, n_cols) / n_supers;
    for (size_t s = 0; s < n_supers; ++s) {
        const uint8_t* block = row_bytes + s * stored_bytes;
        uint8_t* scales = tile + s * superBytes(format);
        uint8_t* quants = scales + scaleBytes(format.scales);
        putScales(type, block, scales, row);
        for (size_t b = 0; b < super_blocks; ++b) {
            putQuants(format.quants, readQuants(type, block, b),
                      quants + b * quantBytes(format.quants), row);
        }
    }
}

template <size_t kBytes>
void packFloatRow(const uint8_t* row_bytes, size_t n_cols, uint8_t* tile, size_t row) {
    for (size_t col = 0; col < n_cols; ++col) {
        std::memcpy(tile + (col * kTileRows + row) * kBytes, row_bytes + col * kBytes, kBytes);
    }
}

void packFloat8Row(const uint8_t* row_bytes, size_t n_cols, uint8_t* tile, size_t row) {
    constexpr size_t kStoredBytes = kBlockCols + 1;
    uint8_t* scales = tile + n_cols * kTileRows;
    for (size_t b = 0; b < n_cols / kBlockCols; ++b) {
        const uint8_t* block = row_bytes + b * kStoredBytes;
        scales[b * kTileRows + row] = block[0];
        for (size_t i = 0; i < kBlockCols; ++i) {
            tile[(b * kBlockCols + i) * kTileRows + row] = block[1 + i];
        }
    }
}

}  // namespace

size_t packedBytes(WeightType type, size_t n_rows, size_t n_cols) noexcept {
    return (n_rows + kTileRows - 1) / kTileRows * packedTileBytes(type, n_cols);
}

void packRows(WeightType type,
              const void* w,
              size_t /*n_rows*/,
              size_t n_cols,
              void* packed,
              size_t row_begin,
              size_t row_end) noexcept {
    const size_t tile_bytes = packedTileBytes(type, n_cols);
    const size_t row_bytes = rowBytes(type, n_cols);
    for (size_t first = row_begin; first < row_end; first += kTileRows) {
        uint8_t* tile = static_cast<uint8_t*>(packed) + first / kTileRows * tile_bytes;
        std::memset(tile, 0, tile_bytes);
        for (size_t row = first; row < std::min(first + kTileRows, row_end); ++row) {
            const uint8_t* bytes = static_cast<const uint8_t*>(w) + row * row_bytes;
            if (type == WeightType::MXFP8) {
                packFloat8Row(bytes, n_cols, tile, row - first);
            } else if (!isFloatType(type)) {
                packQuantRow(type, bytes, n_cols, tile, row - first);
            } else if (floatBytes(type) == 2) {
                packFloatRow<2>(bytes, n_cols, tile, row - first);
            } else {
                packFloatRow<4>(bytes, n_cols, tile, row - first);
            }
        }
    }
}

size_t packedActivationBytes(WeightType type, size_t n_tokens, size_t n_cols) noexcept {
    return isFloatType(type) ? n_tokens * n_cols * sizeof(float)
                             : n_tokens * (n_cols / kBlockCols) * kActivationBlockBytes;
}

bool samePackedActivations(WeightType a, WeightType b) noexcept {
    return isFloatType(a) == isFloatType(b);
}

}  // namespace belvedere::kernels
