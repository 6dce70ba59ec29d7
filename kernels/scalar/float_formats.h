// SPDX-License-Identifier: Apache-2.0
#pragma once

// IEEE binary16 and bfloat16 to and from f32, bit for bit what the processor's own instructions
// give (NaNs become quiet, values round to nearest even). Not for files compiled for one
// instruction set. Any thread.

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/formats.h"

namespace belvedere::kernels::scalar {

/// Little-endian loads from unaligned bytes.
template <class T>
T load(const uint8_t* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
}

inline float fromF16(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000U) << 16;
    const uint32_t exponent = (h >> 10) & 31U;
    const uint32_t mantissa = h & 0x3ffU;
    if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24 is exact
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
        return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    if (exponent == 31) {
        const uint32_t quiet = mantissa != 0 ? 0x400000U : 0U;
        return std::bit_cast<float>(sign | 0x7f800000U | quiet | mantissa << 13);
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

inline uint16_t toF16(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 16) & 0x8000U;
    const uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) {
        return static_cast<uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
    }
    if (magnitude >= 0x47800000U) {  // 65536 and above, infinity
        return static_cast<uint16_t>(sign | 0x7c00U);
    }
    if (magnitude < 0x38800000U) {
        // Below 2^-14: adding 0.5 leaves the value in units of 2^-24 in the mantissa, rounded to
        // nearest even.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000U));
    }
    // Round to nearest even at bit 13; a carry moves into the exponent, at the top into infinity.
    const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U) - (112U << 23);
    return static_cast<uint16_t>(sign | rounded >> 13);
}

inline float fromBf16(uint16_t b) {
    return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}

inline uint16_t toBf16(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return static_cast<uint16_t>(bits >> 16 | 0x40U);
    }
    return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// Element i of a row of n elements of a cache in `type`.
inline double cacheElement(CacheType type, const uint8_t* row, size_t n, size_t i) {
    switch (type) {
        case CacheType::F32:
            return static_cast<double>(load<float>(row + 4 * i));
        case CacheType::F16:
            return static_cast<double>(fromF16(load<uint16_t>(row + 2 * i)));
        case CacheType::BF16:
            return static_cast<double>(fromBf16(load<uint16_t>(row + 2 * i)));
        case CacheType::Q8_0: {
            const uint8_t* scale = row + cacheScalesBegin(n) + 2 * (i / kCacheBlock);
            // The product in f32, as fast versions have it.
            return static_cast<double>(static_cast<float>(load<int8_t>(row + i)) *
                                       fromF16(load<uint16_t>(scale)));
        }
    }
    return 0;
}

/// 2^(e - 128), the scale of MXFP4 for doubled element values. e = 0 and 1 are subnormal; 255 is a
/// number like any other.
inline float halfPowerOfTwo(uint8_t e) {
    return std::bit_cast<float>(e < 2 ? 0x00200000U << e : static_cast<uint32_t>(e - 1) << 23);
}

}  // namespace belvedere::kernels::scalar
