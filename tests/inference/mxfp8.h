// SPDX-License-Identifier: Apache-2.0
#pragma once

// A checkpoint's weights as MXFP8, and back. Tests only.

#include "tests/support/checkpoint_builder.h"

namespace belvedere::testing {

/// Every linear of the layers but routers and index projections as E4M3 with a scale for 32, as
/// published: names, U8 scales beside them, quantization_config. The bits are not those of a good
/// quantiser, only near the weights.
[[nodiscard]] CheckpointBuilder quantisedToMxfp8(const CheckpointBuilder& checkpoint);

/// The same values as F32, without scales and quantization_config.
[[nodiscard]] CheckpointBuilder dequantised(const CheckpointBuilder& mxfp8);

}  // namespace belvedere::testing
