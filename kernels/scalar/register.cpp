// SPDX-License-Identifier: Apache-2.0
#include "kernels/registration.h"
#include "kernels/scalar/scalar_kernels.h"

namespace belvedere::kernels {

void registerScalar(KernelTable& table) noexcept {
    table.isa = Isa::Scalar;
    table.description = "scalar reference";
    table.dequantize = scalar::dequantize;
    table.mat_mul_f32 = scalar::matMulF32;
    table.packed_bytes = scalar::packedBytes;
    table.pack = scalar::pack;
    table.activation_bytes = scalar::activationBytes;
    table.same_activations = scalar::sameActivations;
    table.quantize_activations = scalar::quantizeActivations;
    table.mat_mul_fast = scalar::matMulFast;
    table.rms_norm = scalar::rmsNorm;
    table.rope_adjacent = scalar::ropeAdjacent;
    table.rope_half_split = scalar::ropeHalfSplit;
    table.swiglu = scalar::swiglu;
    table.swiglu_oai = scalar::swigluOai;
    table.layer_norm = scalar::layerNorm;
    table.gelu = scalar::gelu;
    table.add = scalar::add;
    table.to_cache = scalar::toCache;
    table.attend_token_tile = scalar::attendTokenTile;
    table.attend_scratch_floats = scalar::attendScratchFloats;
    table.attend = scalar::attend;
    table.merge_attend = scalar::mergeAttend;
    table.score_scratch_floats = scalar::scoreScratchFloats;
    table.score_blocks = scalar::scoreBlocks;
    table.select_blocks = scalar::selectBlocks;
    table.arg_max = scalar::argMax;
}

}  // namespace belvedere::kernels
