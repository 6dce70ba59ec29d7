// SPDX-License-Identifier: Apache-2.0
#pragma once

// How each instruction set fills the table: registerScalar sets every field, the others overwrite
// what they do faster. Called by kernels/dispatch.cpp only, and only where the CPU and the
// operating system can run the result.

#include "kernels/table.h"

namespace belvedere::kernels {

/// Optional instructions inside one instruction set.
struct CpuExtras {
    bool avx512_bf16 = false;
    bool has_fast_bf16 = false;  ///< its products are as many a cycle as those of f32
};

void registerScalar(KernelTable& table) noexcept;
void registerAvx2(KernelTable& table) noexcept;
void registerAvx512(KernelTable& table, CpuExtras extras) noexcept;
/// What passes of a generation do otherwise; needs BF16.
void registerAvx512Generation(KernelTable& table) noexcept;
void registerAmx(KernelTable& table) noexcept;

}  // namespace belvedere::kernels
