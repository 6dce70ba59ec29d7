// SPDX-License-Identifier: Apache-2.0
#include "kernels/registration.h"

namespace belvedere::kernels {

void registerAvx512(KernelTable& table, CpuExtras extras) noexcept {
    table.isa = Isa::Avx512;
    table.description = extras.avx512_bf16 ? "AVX-512 (VNNI, BF16)" : "AVX-512 (VNNI)";
}

}  // namespace belvedere::kernels
