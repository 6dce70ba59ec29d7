// SPDX-License-Identifier: Apache-2.0
#include "kernels/amx/amx_kernels.h"
#include "kernels/registration.h"

namespace belvedere::kernels {

void registerAmx(KernelTable& table) noexcept {
    table.isa = Isa::Amx;
    table.description = "AMX (BF16), AVX-512 (VNNI, BF16)";
    table.activation_bytes = amx::activationBytes;
    table.same_activations = amx::sameActivations;
    table.quantize_activations = amx::quantizeActivations;
    table.mat_mul_fast = amx::matMulFast;
    table.attend_scratch_floats = amx::attendScratchFloats;
    table.attend = amx::attend;
}

}  // namespace belvedere::kernels
