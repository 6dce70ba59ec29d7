// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which model this is, for what is kept of its computations: two models with the same digest give
// the same keys and values for the same tokens. Any thread.

#include "inference/cache/digest.h"
#include "inference/engine.h"
#include "inference/model/adapter.h"
#include "inference/model/model_config.h"
#include "inference/model/model_source.h"

namespace belvedere::inference {

/// Of the config, the way of computing, the names, types and shapes of all tensors of the text
/// model and its adapters, and of their bytes: all of them, up to 256 MiB; of larger models all of
/// each small tensor and, of a large one, samples spread over it. Training and quantising change
/// numbers everywhere, so they change samples; a patch of few bytes in a large model may not.
[[nodiscard]] Digest modelDigest(const ModelSource& source,
                                 const AdapterSet& adapters,
                                 const ModelConfig& config,
                                 Compute compute);

/// Of the names, types, shapes and bytes (samples of large ones) of all tensors of a vision tower.
[[nodiscard]] Digest towerDigest(const ModelSource& source);

}  // namespace belvedere::inference
