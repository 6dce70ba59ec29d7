// SPDX-License-Identifier: Apache-2.0
// Decode rules of the weight types: GGUF v3 block formats as ggml defines them. d, m, dmin are
// binary16, little-endian; q is an unsigned integer element; one comment per type gives the byte
// layout of a block. Products of scales come first, then q, so that every bit equals the reference.

#include <bit>
#include <cstring>
#include <limits>

#include "kernels/scalar/float_formats.h"
#include "kernels/scalar/scalar_kernels.h"

namespace belvedere::kernels::scalar {
namespace {

float f16At(const uint8_t* bytes) {
    return fromF16(load<uint16_t>(bytes));
}

// d:2 q:16 (element i in the low nibble of byte i, element i + 16 in the high one).  y = (q - 8) d
void decodeQ4_0(const uint8_t* block, float* y) {
    const float d = f16At(block);
    for (size_t i = 0; i < 16; ++i) {
        y[i] = static_cast<float>((block[2 + i] & 15) - 8) * d;
        y[i + 16] = static_cast<float>((block[2 + i] >> 4) - 8) * d;
    }
}

// d:2 m:2 q:16.  y = q d + m
void decodeQ4_1(const uint8_t* block, float* y) {
    const float d = f16At(block);
    const float m = f16At(block + 2);
    for (size_t i = 0; i < 16; ++i) {
        y[i] = static_cast<float>(block[4 + i] & 15) * d + m;
        y[i + 16] = static_cast<float>(block[4 + i] >> 4) * d + m;
    }
}

/// Element i of 32 five-bit integers: nibbles as in Q4_0, fifth bit of element i in bit i of
/// `high`.
int fiveBits(const uint8_t* nibbles, uint32_t high, size_t i) {
    const int low = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
    return low | static_cast<int>((high >> i) & 1U) << 4;
}

// d:2 high:4 q:16.  y = (q - 16) d
void decodeQ5_0(const uint8_t* block, float* y) {
    const float d = f16At(block);
    const auto high = load<uint32_t>(block + 2);
    for (size_t i = 0; i < 32; ++i) {
        y[i] = static_cast<float>(fiveBits(block + 6, high, i) - 16) * d;
    }
}

// d:2 m:2 high:4 q:16.  y = q d + m
void decodeQ5_1(const uint8_t* block, float* y) {
    const float d = f16At(block);
    const float m = f16At(block + 2);
    const auto high = load<uint32_t>(block + 4);
    for (size_t i = 0; i < 32; ++i) {
        y[i] = static_cast<float>(fiveBits(block + 8, high, i)) * d + m;
    }
}

// d:2 q:32 signed.  y = q d
void decodeQ8_0(const uint8_t* block, float* y) {
    const float d = f16At(block);
    for (size_t i = 0; i < 32; ++i) {
        y[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
    }
}

// scales:16 (low nibble scale, high nibble min) q:64 d:2 dmin:2. Two halves of 128 elements on 32
// bytes each; pass p of a half takes bits 2p, 2p + 1.  y = d scale q - dmin min
void decodeQ2_K(const uint8_t* block, float* y) {
    const float d = f16At(block + 80);
    const float dmin = f16At(block + 82);
    for (size_t i = 0; i < 256; ++i) {
        const uint8_t scales = block[i / 16];
        const int q = block[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        y[i] = d * static_cast<float>(scales & 15) * static_cast<float>(q) -
               dmin * static_cast<float>(scales >> 4);
    }
}

/// Scale j of 16 six-bit scales in 12 bytes (Q3_K): low nibbles in bytes 0..7, high bit pairs in
/// bytes 8..11.
int scaleQ3K(const uint8_t* packed, size_t j) {
    const int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
    const int high = packed[8 + j % 4] >> (2 * (j / 4)) & 3;
    return (low | high << 4) - 32;
}

// mask:32 q:64 scales:12 d:2. Order of q as in Q2_K; pass p of half h has bit 4h + p of the mask; a
// clear bit subtracts 4. y = d (scale - 32) q
void decodeQ3_K(const uint8_t* block, float* y) {
    const float d = f16At(block + 108);
    for (size_t i = 0; i < 256; ++i) {
        const size_t pass = i / 32;
        const int low = block[32 + i / 128 * 32 + i % 32] >> (pass % 4 * 2) & 3;
        const int q = low - ((block[i % 32] >> pass & 1) != 0 ? 0 : 4);
        y[i] = d * static_cast<float>(scaleQ3K(block + 96, i / 16)) * static_cast<float>(q);
    }
}

struct ScaleMin {
    float scale;
    float min;
};

/// Group j of 8 pairs of six-bit scale and min in 12 bytes (Q4_K, Q5_K).
ScaleMin scaleMinK(const uint8_t* b, size_t j) {
    if (j < 4) {
        return {static_cast<float>(b[j] & 63), static_cast<float>(b[j + 4] & 63)};
    }
    return {static_cast<float>((b[j + 4] & 15) | (b[j - 4] >> 6) << 4),
            static_cast<float>(b[j + 4] >> 4 | (b[j] >> 6) << 4)};
}

// d:2 dmin:2 scales:12 q:128. 32 bytes of q hold group 2k in their low nibbles and 2k + 1 in the
// high ones. y = d scale q - dmin min
void decodeQ4_K(const uint8_t* block, float* y) {
    const float d = f16At(block);
    const float dmin = f16At(block + 2);
    for (size_t group = 0; group < 8; ++group) {
        const ScaleMin pair = scaleMinK(block + 4, group);
        const float scale = d * pair.scale;
        const float min = dmin * pair.min;
        for (size_t i = 0; i < 32; ++i) {
            const int q = block[16 + group / 2 * 32 + i] >> (group % 2 * 4) & 15;
            y[group * 32 + i] = scale * static_cast<float>(q) - min;
        }
    }
}

// d:2 dmin:2 scales:12 high:32 q:128. As Q4_K; group g has its fifth bits in bit g of `high`.
void decodeQ5_K(const uint8_t* block, float* y) {
    const float d = f16At(block);
    const float dmin = f16At(block + 2);
    for (size_t group = 0; group < 8; ++group) {
        const ScaleMin pair = scaleMinK(block + 4, group);
        const float scale = d * pair.scale;
        const float min = dmin * pair.min;
        for (size_t i = 0; i < 32; ++i) {
            const int low = block[48 + group / 2 * 32 + i] >> (group % 2 * 4) & 15;
            const int q = low | (block[16 + i] >> group & 1) << 4;
            y[group * 32 + i] = scale * static_cast<float>(q) - min;
        }
    }
}

// low:128 high:64 scales:16 signed d:2. Two halves of 128 elements on 64 + 32 bytes; quarter k of a
// half has its low bits in the low (k < 2) or high nibbles of bytes k % 2 * 32 + l, its two high
// bits in bits 2k, 2k + 1.  y = d scale (q - 32)
void decodeQ6_K(const uint8_t* block, float* y) {
    const float d = f16At(block + 208);
    for (size_t i = 0; i < 256; ++i) {
        const size_t half = i / 128;
        const size_t quarter = i % 128 / 32;
        const size_t l = i % 32;
        const int low = block[half * 64 + quarter % 2 * 32 + l] >> (quarter / 2 * 4) & 15;
        const int high = block[128 + half * 32 + l] >> (quarter * 2) & 3;
        const auto scale = static_cast<float>(static_cast<int8_t>(block[192 + i / 16]));
        y[i] = d * scale * static_cast<float>((low | high << 4) - 32);
    }
}

// e:1 q:16, order as in Q4_0. Doubled values, so that they are integers.  y = value 2^(e - 128)
void decodeMXFP4(const uint8_t* block, float* y) {
    constexpr float kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const float scale = halfPowerOfTwo(block[0]);
    for (size_t i = 0; i < 16; ++i) {
        y[i] = kDoubled[block[1 + i] & 15] * scale;
        y[i + 16] = kDoubled[block[1 + i] >> 4] * scale;
    }
}

/// Twice a number of 1 sign, 4 exponent and 3 mantissa bits, bias 7, no infinities (E4M3FN).
float doubledE4M3(uint8_t bits) {
    const uint32_t exponent = bits >> 3 & 15U;
    const uint32_t mantissa = bits & 7U;
    if (exponent == 15 && mantissa == 7) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    const float magnitude = exponent == 0
                                ? static_cast<float>(mantissa) * 0x1p-8F
                                : std::bit_cast<float>((exponent + 121) << 23 | mantissa << 20);
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

// e:1 q:32 of E4M3.  y = q 2^(e - 127). Source: OCP Microscaling Formats 1.0, whose scale 255 is
// NaN; loading refuses it.
void decodeMXFP8(const uint8_t* block, float* y) {
    const float scale = halfPowerOfTwo(block[0]);
    for (size_t i = 0; i < 32; ++i) {
        y[i] = doubledE4M3(block[1 + i]) * scale;
    }
}

template <size_t kElements, size_t kBytes, class Decode>
void decodeBlocks(const uint8_t* src, float* dst, size_t n, Decode decode) {
    for (size_t i = 0; i < n / kElements; ++i) {
        decode(src + i * kBytes, dst + i * kElements);
    }
}

}  // namespace

void dequantize(WeightType type, const void* src, float* dst, size_t n) noexcept {
    const auto* bytes = static_cast<const uint8_t*>(src);
    switch (type) {
        case WeightType::F32:
            std::memcpy(dst, src, n * sizeof(float));
            return;
        case WeightType::F16:
            for (size_t i = 0; i < n; ++i) {
                dst[i] = f16At(bytes + 2 * i);
            }
            return;
        case WeightType::BF16:
            for (size_t i = 0; i < n; ++i) {
                dst[i] = fromBf16(load<uint16_t>(bytes + 2 * i));
            }
            return;
        case WeightType::Q4_0:
            return decodeBlocks<32, 18>(bytes, dst, n, decodeQ4_0);
        case WeightType::Q4_1:
            return decodeBlocks<32, 20>(bytes, dst, n, decodeQ4_1);
        case WeightType::Q5_0:
            return decodeBlocks<32, 22>(bytes, dst, n, decodeQ5_0);
        case WeightType::Q5_1:
            return decodeBlocks<32, 24>(bytes, dst, n, decodeQ5_1);
        case WeightType::Q8_0:
            return decodeBlocks<32, 34>(bytes, dst, n, decodeQ8_0);
        case WeightType::Q2_K:
            return decodeBlocks<256, 84>(bytes, dst, n, decodeQ2_K);
        case WeightType::Q3_K:
            return decodeBlocks<256, 110>(bytes, dst, n, decodeQ3_K);
        case WeightType::Q4_K:
            return decodeBlocks<256, 144>(bytes, dst, n, decodeQ4_K);
        case WeightType::Q5_K:
            return decodeBlocks<256, 176>(bytes, dst, n, decodeQ5_K);
        case WeightType::Q6_K:
            return decodeBlocks<256, 210>(bytes, dst, n, decodeQ6_K);
        case WeightType::MXFP4:
            return decodeBlocks<32, 17>(bytes, dst, n, decodeMXFP4);
        case WeightType::MXFP8:
            return decodeBlocks<32, 33>(bytes, dst, n, decodeMXFP8);
    }
}

}  // namespace belvedere::kernels::scalar
