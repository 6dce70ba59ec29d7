// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of tensors in checkpoints, in every dialect of the supported families, and the names by
// which the decoder asks for them (GGUF's). Pure functions; any thread.
//
//     language_model.model.layers.3.block_sparse_moe.experts.7.w1.weight
//         -> blk.3.ffn_gate_exps.weight, expert 7
//     model.layers.0.mlp.gate_up_proj.weight -> blk.0.ffn_gate.weight above blk.0.ffn_up.weight

#include <optional>
#include <string>
#include <string_view>

namespace belvedere::inference {

/// What a stored tensor is to a model.
enum class TensorRole {
    Text,
    Vision,   ///< of an image tower or its projector; keeps its name
    Skipped,  ///< multi-token prediction, tables that are computed
    Unknown,  ///< keeps its name
};

struct CheckpointName {
    TensorRole role = TensorRole::Unknown;
    std::string name;       ///< "blk.3.ffn_gate_exps.weight"
    std::string up_name;    ///< where gate and up stand in one tensor, gate first: that of up
    bool is_scale = false;  ///< the scales of the tensor `name`
    std::optional<size_t> expert;  ///< the only one that this tensor holds
};

[[nodiscard]] CheckpointName parseCheckpointName(std::string_view stored);

/// GGUF's name as published checkpoints spell it, for messages: "model.layers.0.mlp.gate.weight".
[[nodiscard]] std::string publishedName(std::string_view name);

}  // namespace belvedere::inference
