// SPDX-License-Identifier: Apache-2.0
#pragma once

// The AMX kernels, one function per field of KernelTable; shapes and formulas are documented there.
// Need AMX-BF16, AVX-512 with VNNI and BF16, and the permission of the operating system. Any
// thread.

#include <cstddef>

#include "kernels/table.h"

namespace belvedere::kernels::amx {

size_t activationBytes(WeightType type, size_t n_tokens, size_t n_cols) noexcept;
bool sameActivations(WeightType a, WeightType b) noexcept;
void quantizeActivations(WeightType type,
                         const float* x,
                         size_t x_stride,
                         size_t n_tokens,
                         size_t n_cols,
                         void* activations,
                         size_t token_begin,
                         size_t token_end) noexcept;
void matMulFast(const MatMulFast& args) noexcept;
size_t attendScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept;
void attend(const Attend& args) noexcept;

}  // namespace belvedere::kernels::amx
