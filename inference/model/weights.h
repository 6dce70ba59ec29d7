// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights of a decoder, from tensors of a model file and its adapters to where the backend keeps
// them. Every shape is checked against the config; a tensor that the decoder does not know is
// refused, because leaving it out would change the model. One thread while loading; immutable
// after.

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "inference/backend/backend.h"
#include "inference/model/adapter.h"
#include "inference/model/model_config.h"
#include "inference/model/model_source.h"

namespace belvedere::inference {

struct LayerWeights {
    std::unique_ptr<DeviceVector> attention_norm;
    std::unique_ptr<DeviceLinear> q;
    std::unique_ptr<DeviceLinear> k;
    std::unique_ptr<DeviceLinear> v;
    std::unique_ptr<DeviceLinear> o;
    std::unique_ptr<DeviceVector> q_norm;  ///< nullptr: none
    std::unique_ptr<DeviceVector> k_norm;
    std::unique_ptr<DeviceLinear> index_q;  ///< nullptr: no index branch, as the next three
    std::unique_ptr<DeviceLinear> index_k;
    std::unique_ptr<DeviceVector> index_q_norm;
    std::unique_ptr<DeviceVector> index_k_norm;
    std::unique_ptr<DeviceVector> mlp_norm;
    std::unique_ptr<DeviceExperts> experts;  ///< nullptr: a dense MLP
    std::unique_ptr<DeviceLinear> gate;      ///< of the dense MLP, or of the shared expert
    std::unique_ptr<DeviceLinear> up;        ///< (nullptr: there is none), as the next two
    std::unique_ptr<DeviceLinear> down;
};

struct ModelWeights {
    std::unique_ptr<DeviceLinear> embedding;
    std::unique_ptr<DeviceVector> output_norm;
    std::vector<float> output_norm_values;      ///< the same, here: for observers
    std::unique_ptr<DeviceLinear> untied_head;  ///< nullptr: the embedding serves
    std::vector<LayerWeights> layers;

    [[nodiscard]] const DeviceLinear& head() const {
        return untied_head != nullptr ? *untied_head : *embedding;
    }
};

/// Called with the share of layers done, between them.
using LayerProgress = std::function<void(double fraction)>;

/// Errors: Corrupt for missing tensors and shapes that contradict the config, Unsupported for types
/// and tensors that this program does not compute with, OutOfMemory, Cancelled.
[[nodiscard]] Result<ModelWeights> loadWeights(const ModelSource& source,
                                               const AdapterSet& adapters,
                                               const ModelConfig& config,
                                               Backend& backend,
                                               const LayerProgress& progress,
                                               const std::stop_token& stop);

/// All checks of loadWeights without moving a byte of weights.
[[nodiscard]] Result<void> checkTensors(const ModelSource& source,
                                        const AdapterSet& adapters,
                                        const ModelConfig& config);

/// rope_freqs.weight, else what the config says, or empty. Errors: Corrupt for a wrong shape,
/// zeros, NaN.
[[nodiscard]] Result<std::vector<float>> ropeDivisors(const ModelSource& source,
                                                      const AdapterSet& adapters,
                                                      const ModelConfig& config);

}  // namespace belvedere::inference
