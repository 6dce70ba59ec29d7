// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes checkpoints for tests: a folder with config.json and safetensors, valid or broken on
// purpose. Tests only.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace belvedere::testing {

struct StoredTensor {
    std::string dtype;  ///< "BF16"
    std::vector<uint64_t> shape;
    std::string bytes;
};

struct CheckpointBuilder {
    nlohmann::json config;
    std::map<std::string, StoredTensor> tensors;

    /// The key of the text part of the config.
    nlohmann::json& text() {
        return config.contains("text_config") ? config["text_config"] : config;
    }

    /// The one tensor whose name ends so.
    StoredTensor& ending(const std::string& suffix);
    std::string nameEnding(const std::string& suffix) const;

    /// config.json and model.safetensors; returns the folder.
    std::string write(const std::filesystem::path& folder) const;
    /// The tensors by turns in n_parts files beside an index.
    std::string writeSharded(const std::filesystem::path& folder, size_t n_parts) const;
};

/// All of a file that must be there.
[[nodiscard]] std::string readFile(const std::filesystem::path& path);

/// The bytes of a safetensors file.
[[nodiscard]] std::string safetensorsBytes(const std::map<std::string, StoredTensor>& tensors);

}  // namespace belvedere::testing
