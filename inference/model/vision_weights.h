// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights of a vision tower and its projector, from the tensors of an mmproj file or a checkpoint
// to where the backend keeps them. Every shape is checked, unknown tensors are refused. One thread
// while loading; immutable after.

#include <memory>
#include <vector>

#include "inference/backend/backend.h"
#include "inference/model/model_source.h"
#include "inference/model/vision_config.h"

namespace belvedere::inference {

struct NormWeights {
    std::unique_ptr<DeviceVector> weight;
    std::unique_ptr<DeviceVector> bias;
};

struct VisionLayerWeights {
    NormWeights attention_norm;
    NormWeights mlp_norm;
    std::unique_ptr<DeviceLinear> q, k, v, o;
    std::unique_ptr<DeviceLinear> up, down;
};

struct VisionWeights {
    /// [dim, kPatchValues] in f32, which `patch_embedding` reads: files keep it in one piece or
    /// two.
    std::vector<float> patch_values;
    std::unique_ptr<DeviceLinear> patch_embedding;
    NormWeights first_norm;
    std::vector<VisionLayerWeights> layers;
    std::unique_ptr<DeviceLinear> project_1, project_2;  ///< of each patch
    std::unique_ptr<DeviceLinear> merge_1, merge_2;      ///< of the patches of a token
};

/// Errors: Corrupt for missing and mis-shaped tensors, Unsupported for types and for tensors that
/// no tower has; the message names file and tensor. OutOfMemory.
[[nodiscard]] Result<VisionWeights> loadVisionWeights(const ModelSource& source,
                                                      const VisionConfig& config,
                                                      Backend& backend);

}  // namespace belvedere::inference
