// SPDX-License-Identifier: Apache-2.0
#pragma once

// Our side of the codec module: finding it, and copying out of it. Private to inference/vision.

#include "inference/vision/codec_module.h"
#include "inference/vision/resample.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// Loads the library at the first call: from beside the program, or where it was built. Stays
/// loaded. Thread-safe. Errors: Unsupported where it cannot be loaded.
[[nodiscard]] Result<const CodecModule*> loadCodecs();

/// A copy in the order and layout of RgbImage.
[[nodiscard]] RgbImage toRgb(const Pixels& pixels);

}  // namespace belvedere::inference
