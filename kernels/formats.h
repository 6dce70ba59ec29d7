// SPDX-License-Identifier: Apache-2.0
#pragma once

// Element and block types of weights and caches: ids, sizes, names, byte layouts. Layouts are those
// of ggml (GGUF v3), but for MXFP8, which is ours; the decode rules are in
// kernels/scalar/dequantize.cpp. Plain data, any thread.

#include <cstddef>
#include <cstdint>

namespace belvedere::kernels {

/// Numbers are GGUF's tensor type ids, so that a reader needs no table.
enum class WeightType : uint32_t {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    BF16 = 30,
    MXFP4 = 39,
    MXFP8 = 1000,  ///< no GGUF has it
};

/// One row of a matrix is n_cols / block_elements blocks of block_bytes.
struct WeightTypeInfo {
    WeightType type;
    const char* name;  ///< as GGUF spells it: "Q4_1"
    uint32_t block_elements;
    uint32_t block_bytes;
};

/// Every supported type, in order of id.
inline constexpr WeightTypeInfo kWeightTypes[] = {
    {WeightType::F32, "F32", 1, 4},       {WeightType::F16, "F16", 1, 2},
    {WeightType::Q4_0, "Q4_0", 32, 18},   {WeightType::Q4_1, "Q4_1", 32, 20},
    {WeightType::Q5_0, "Q5_0", 32, 22},   {WeightType::Q5_1, "Q5_1", 32, 24},
    {WeightType::Q8_0, "Q8_0", 32, 34},   {WeightType::Q2_K, "Q2_K", 256, 84},
    {WeightType::Q3_K, "Q3_K", 256, 110}, {WeightType::Q4_K, "Q4_K", 256, 144},
    {WeightType::Q5_K, "Q5_K", 256, 176}, {WeightType::Q6_K, "Q6_K", 256, 210},
    {WeightType::BF16, "BF16", 1, 2},     {WeightType::MXFP4, "MXFP4", 32, 17},
    {WeightType::MXFP8, "MXFP8", 32, 33},
};

/// nullptr where the id is none of ours.
[[nodiscard]] constexpr const WeightTypeInfo* findWeightType(uint32_t id) {
    for (const WeightTypeInfo& info : kWeightTypes) {
        if (static_cast<uint32_t>(info.type) == id) {
            return &info;
        }
    }
    return nullptr;
}

/// Bytes of one row; n_cols must be a multiple of the block.
[[nodiscard]] constexpr size_t rowBytes(WeightType type, size_t n_cols) {
    const WeightTypeInfo* info = findWeightType(static_cast<uint32_t>(type));
    return n_cols / info->block_elements * info->block_bytes;
}

/// Element types a KV cache can hold. The numbers stand in files. Q8_0: a row of n elements is n
/// int8, padded to an even number of bytes, then an f16 scale for each kCacheBlock of them; element
/// i is int8 i times its scale. ggml's type of that name has the same numbers in another order.
enum class CacheType : uint32_t { F32, F16, BF16, Q8_0 };

/// Elements of a Q8_0 row that share a scale; the last ones may be fewer.
inline constexpr size_t kCacheBlock = 32;

struct CacheTypeInfo {
    CacheType type;
    const char* name;  ///< as options spell it: "bf16"
};

inline constexpr CacheTypeInfo kCacheTypes[] = {
    {CacheType::F32, "f32"},
    {CacheType::F16, "f16"},
    {CacheType::BF16, "bf16"},
    {CacheType::Q8_0, "q8_0"},
};

/// nullptr where the id is none of ours.
[[nodiscard]] constexpr const CacheTypeInfo* findCacheType(uint32_t id) {
    for (const CacheTypeInfo& info : kCacheTypes) {
        if (static_cast<uint32_t>(info.type) == id) {
            return &info;
        }
    }
    return nullptr;
}

[[nodiscard]] constexpr const char* cacheTypeName(CacheType type) {
    return findCacheType(static_cast<uint32_t>(type))->name;
}

// Static: of an inline function the linker could keep the copy of an AVX-512 file for all.

/// Where the scales of a Q8_0 row begin.
[[nodiscard]] static inline constexpr size_t cacheScalesBegin(size_t n) {
    return (n + 1) / 2 * 2;
}

/// Bytes of a row of n elements: one head of one token.
[[nodiscard]] static inline constexpr size_t cacheRowBytes(CacheType type, size_t n) {
    return type == CacheType::Q8_0
               ? cacheScalesBegin(n) + (n + kCacheBlock - 1) / kCacheBlock * sizeof(uint16_t)
               : n * (type == CacheType::F32 ? 4 : 2);
}

/// Tokens in one page of the KV cache; also MSA's block (MiniMax-M3: sparse_block_size 128).
inline constexpr size_t kPageTokens = 128;

}  // namespace belvedere::kernels
