// SPDX-License-Identifier: Apache-2.0
#pragma once

// The header of a snapshot as it stands in the file: snapshot.h has the table. Private to
// inference/cache and its tests.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace belvedere::inference {

inline constexpr std::string_view kSnapshotMagic = "BVSNAPSH";
inline constexpr uint32_t kSnapshotVersion = 1;

struct SnapshotHeader {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t file_bytes;
    uint64_t model_low;
    uint64_t model_high;
    uint32_t cache_type;
    uint32_t index_cache_type;
    uint32_t n_layers;
    uint32_t n_kv_heads;
    uint32_t head_dim;
    uint32_t index_head_dim;
    uint32_t page_tokens;
    uint32_t n_banned;
    uint64_t n_tokens;
    uint64_t ban_begin;
    uint64_t tables_sum;
    char name[64];
    char zeros[88];
    uint64_t header_sum;
};

static_assert(sizeof(SnapshotHeader) == 256 && std::is_trivially_copyable_v<SnapshotHeader>);
static_assert(offsetof(SnapshotHeader, n_tokens) == 72 && offsetof(SnapshotHeader, name) == 96);
static_assert(offsetof(SnapshotHeader, header_sum) == 248);

}  // namespace belvedere::inference
