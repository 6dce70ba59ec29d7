// SPDX-License-Identifier: Apache-2.0
#pragma once

// The door of kernels/: one table of function pointers per instruction set. Arithmetic on raw
// memory; callers validate shapes, so a kernel cannot fail, allocate, lock, log or throw. The
// scalar table defines correct; each faster table is checked against it (tests/kernels).
//
//     const KernelTable& k = kernels::active();
//     pool.parallelFor(n_rows, kRowTile, [&](size_t begin, size_t end, size_t) {
//     k.mat_mul_f32({..., begin, end}); });
//
// Words: n_tokens, n_heads, n_kv_heads, head_dim, dim, ff_dim, vocab_size, pos, layer. Matrices are
// row-major; a weight matrix W is [n_rows, n_cols] = [out, in]; a stride counts elements, not
// bytes. Slices [begin, end) let callers spread one call over threads; calls on disjoint slices may
// run at once.

#include <cstddef>
#include <string>

#include "kernels/base/result.h"
#include "kernels/formats.h"
#include "kernels/table.h"

namespace belvedere::kernels {

/// The best table this machine can run, or the one BV_ISA names. Chosen at the first call; any
/// thread.
[[nodiscard]] const KernelTable& active();

/// nullptr where this CPU or the operating system cannot run it.
[[nodiscard]] const KernelTable* tableFor(Isa isa);

/// The table for tokens that are generated, a few at a time, where `table` is the one for prompts:
/// tiles and bf16 pay with many, and attention of few has a kernel of its own. Both read the same
/// packed weights.
[[nodiscard]] const KernelTable& generationTable(const KernelTable& table);

/// "scalar", "avx2", "avx512", "amx".
[[nodiscard]] const char* isaName(Isa isa);

/// Reads BV_ISA. Errors: InvalidArgument if it names no instruction set, Unsupported if the machine
/// lacks it. Call it in main, so that active() need not fail.
[[nodiscard]] Result<Isa> chosenIsa();

/// What the CPU and the operating system offer, for `belvedere doctor`: brand and the flags that
/// matter here.
struct CpuInfo {
    std::string brand;
    std::string features;  ///< "avx2 fma avx512f avx512vnni avx512bf16 amx-int8 amx-bf16"
    size_t n_cores = 0;    ///< logical processors this process may use
};

[[nodiscard]] CpuInfo cpuInfo();

}  // namespace belvedere::kernels
