// SPDX-License-Identifier: Apache-2.0
#pragma once

// MSA written down once more, straight from its definition (arXiv:2606.13392, eq. 5 to 8, with the
// forced blocks and the order of ties that MiniMax-M3 uses), in f64 and without pages, tiles or
// threads; and the backend's attend step run on the same numbers. Tests only.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "inference/backend/backend.h"
#include "kernels/kernels.h"

namespace belvedere::testing {

struct MsaShape {
    size_t n_heads = 4;
    size_t n_groups = 2;  ///< KV heads, and index heads
    size_t head_dim = 32;
    size_t index_dim = 32;
    size_t block_tokens = 8;
    size_t top_k = 3;
    size_t n_init = 0;
    size_t n_local = 1;
};

/// What the projections would give: all [n_tokens, ...], row-major.
struct MsaInput {
    size_t n_tokens = 0;
    std::vector<float> q;        ///< n_heads * head_dim
    std::vector<float> k;        ///< n_groups * head_dim
    std::vector<float> v;        ///< n_groups * head_dim
    std::vector<float> index_q;  ///< n_groups * index_dim
    std::vector<float> index_k;  ///< index_dim
};

struct MsaOutput {
    std::vector<float> out;       ///< [n_tokens, n_heads * head_dim]
    std::vector<int32_t> blocks;  ///< [n_tokens, n_groups, top_k], ascending, -1 behind them
};

/// Seeded numbers of about unit size.
[[nodiscard]] MsaInput randomInput(const MsaShape& shape, size_t n_tokens, uint64_t seed);

/// Every token by the definition.
[[nodiscard]] MsaOutput msaOracle(const MsaShape& shape, const MsaInput& input);

/// Where the pages of a sequence stand among those of the backend.
enum class PageOrder { Ascending, Descending, Scattered };

struct BackendRun {
    const kernels::KernelTable* table = nullptr;
    std::vector<size_t> chunks;  ///< tokens of each pass; the last one is repeated to the end
    size_t n_threads = 2;
    bool is_dense = false;  ///< without the index branch
    kernels::CacheType cache_type = kernels::CacheType::F32;
    kernels::CacheType index_cache_type = kernels::CacheType::F32;
    PageOrder order = PageOrder::Ascending;
    /// Before each pass, what every byte of the cache that holds no token says: in rows behind the
    /// last one and in pages of nobody, scales included.
    std::optional<float> filling;
    /// [n_tokens] of [n_blocks]: what each token may not choose; passes of one token. Empty: all
    /// may.
    std::vector<std::vector<uint8_t>> banned;
};

/// Fills the rows [n_valid, kPageTokens) of a page, in all its parts, with a number in the type of
/// the cache.
void fillRows(inference::Backend& backend, inference::PageId page, size_t n_valid, float number);

/// Errors fail the running test.
[[nodiscard]] MsaOutput runBackend(const MsaShape& shape,
                                   const MsaInput& input,
                                   const BackendRun& run);

}  // namespace belvedere::testing
