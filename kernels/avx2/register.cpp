// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2/avx2_kernels.h"
#include "kernels/packed.h"
#include "kernels/registration.h"

namespace belvedere::kernels {

void registerAvx2(KernelTable& table) noexcept {
    table.isa = Isa::Avx2;
    table.description = "AVX2 (FMA, F16C)";
    table.mat_mul_f32 = avx2::matMulF32;
    table.packed_bytes = packedBytes;
    table.pack = packRows;
    table.activation_bytes = packedActivationBytes;
    table.same_activations = samePackedActivations;
    table.quantize_activations = avx2::quantizeActivations;
    table.mat_mul_fast = avx2::matMulFast;
    table.rms_norm = avx2::rmsNorm;
    table.rope_adjacent = avx2::ropeAdjacent;
    table.rope_half_split = avx2::ropeHalfSplit;
    table.swiglu = avx2::swiglu;
    table.swiglu_oai = avx2::swigluOai;
    table.layer_norm = avx2::layerNorm;
    table.gelu = avx2::gelu;
    table.add = avx2::add;
    table.to_cache = avx2::toCache;
    table.attend_token_tile = avx2::attendTokenTile;
    table.attend_scratch_floats = avx2::attendScratchFloats;
    table.attend = avx2::attend;
    table.score_scratch_floats = avx2::scoreScratchFloats;
    table.score_blocks = avx2::scoreBlocks;
    table.arg_max = avx2::argMax;
}

}  // namespace belvedere::kernels
