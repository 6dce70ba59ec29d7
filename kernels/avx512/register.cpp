// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/avx512_kernels.h"
#include "kernels/packed.h"
#include "kernels/registration.h"

namespace belvedere::kernels {

void registerAvx512(KernelTable& table, CpuExtras extras) noexcept {
    table.isa = Isa::Avx512;
    table.description = extras.avx512_bf16 ? "AVX-512 (VNNI, BF16)" : "AVX-512 (VNNI)";
    table.mat_mul_f32 = avx512::matMulF32;
    table.packed_bytes = packedBytes;
    table.pack = packRows;
    table.activation_bytes = packedActivationBytes;
    table.same_activations = samePackedActivations;
    table.quantize_activations = avx512::quantizeActivations;
    table.mat_mul_fast = avx512::matMulFast;
    table.rms_norm = avx512::rmsNorm;
    table.rope_adjacent = avx512::ropeAdjacent;
    table.rope_half_split = avx512::ropeHalfSplit;
    table.swiglu = avx512::swiglu;
    table.swiglu_oai = avx512::swigluOai;
    table.layer_norm = avx512::layerNorm;
    table.gelu = avx512::gelu;
    table.add = avx512::add;
    table.to_cache = avx512::toCache;
    table.attend_token_tile = avx512::attendTokenTile;
    table.attend_scratch_floats = avx512::attendScratchFloats;
    table.attend = avx512::attend;
    table.score_scratch_floats = avx512::scoreScratchFloats;
    table.score_blocks = avx512::scoreBlocks;
    table.arg_max = avx512::argMax;
    if (extras.has_fast_bf16) {
        table.activation_bytes = avx512::activationBytesBFloat;
        table.same_activations = avx512::sameActivationsBFloat;
        table.quantize_activations = avx512::quantizeActivationsBFloat;
        table.mat_mul_fast = avx512::matMulFastBFloat;
        table.attend_scratch_floats = avx512::attendManyScratchFloats;
        table.attend = avx512::attendManyTokens;
    }
}

void registerAvx512Generation(KernelTable& table) noexcept {
    table.attend_scratch_floats = avx512::attendFewScratchFloats;
    table.attend = avx512::attendFewTokens;
}

}  // namespace belvedere::kernels
