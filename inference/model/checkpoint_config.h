// SPDX-License-Identifier: Apache-2.0
#pragma once

// The config.json of a checkpoint: a folder with safetensors, as published by the makers of a model
// or saved by transformers. Both spell some keys differently; both are read. Private to
// inference/model. Any thread.

#include <optional>

#include <nlohmann/json.hpp>

#include "inference/model/config_json.h"
#include "inference/model/model_config.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// What a config.json says of the text model.
struct CheckpointConfig {
    ModelConfig model;
    bool norms_add_one = false;  ///< norm weights are stored around 0 (Gemma)
    /// Whether the embedding serves as the head; nullopt: not said.
    std::optional<bool> tied_head;
    bool has_vision = false;
    bool is_mxfp8 = false;
};

/// `json`: the whole file. Errors: Corrupt for missing, absurd or contradicting values, Unsupported
/// for families and features that this decoder lacks; the message names `file` and the key.
[[nodiscard]] Result<CheckpointConfig> readCheckpointConfig(const nlohmann::json& json,
                                                            const std::string& file);

/// What adapters change. Errors: those of joinMsa.
[[nodiscard]] Result<void> applyOverrides(const std::string& file,
                                          const ConfigOverrides& overrides,
                                          ModelConfig& model);

/// The part that describes the text model: text_config, or all of it. Errors: Corrupt.
[[nodiscard]] Result<ConfigJson> textConfig(const ConfigJson& root);

/// Which layers have experts and how these are chosen, and which layers choose blocks. Needs the
/// sizes of `config.model`. Errors: as readCheckpointConfig.
[[nodiscard]] Result<void> readCheckpointSparsity(const ConfigJson& text, CheckpointConfig& config);

}  // namespace belvedere::inference
