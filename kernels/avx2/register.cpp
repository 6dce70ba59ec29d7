// SPDX-License-Identifier: Apache-2.0
#include "kernels/registration.h"

namespace belvedere::kernels {

void registerAvx2(KernelTable& table) noexcept {
    table.isa = Isa::Avx2;
    table.description = "AVX2";
}

}  // namespace belvedere::kernels
