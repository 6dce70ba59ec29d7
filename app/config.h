// SPDX-License-Identifier: Apache-2.0
#pragma once

// The config file: one JSON object read into the typed structs of each folder. Unknown keys warn,
// wrong types and values are errors, all reported at once with their key path. The program never
// writes the file.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "inference/engine.h"
#include "kernels/base/result.h"
#include "tools/all_tools.h"
#include "tools/repository/repository.h"

namespace belvedere::app {

enum class Appearance { System, Light, Dark };

struct Config {
    std::filesystem::path model;                   ///< "model.path"; empty: the default model
    std::vector<inference::AdapterFile> adapters;  ///< "model.adapters": [{"path", "scale"}]
    inference::EngineConfig engine;  ///< "engine": threads, context_tokens, cache_type, attention,
                                     ///< speculative, cache_budget_mb, expert_budget_mb
    agent::AgentConfig agent;  ///< "agent": max_rounds, source_budget_tokens, temperature, ...
    tools::ToolPolicy tools;   ///< "tools": screen
    tools::RepositoryConfig repository;          ///< "repository": max_file_kb
    Appearance appearance = Appearance::System;  ///< "appearance"
    std::vector<std::string> warnings;           ///< unknown keys
};

/// Errors: InvalidArgument listing every problem; a missing file gives the defaults.
[[nodiscard]] Result<Config> readConfig(const std::filesystem::path& file);

/// The same from text; `name` is what messages call it.
[[nodiscard]] Result<Config> parseConfig(std::string_view text, const std::string& name);

}  // namespace belvedere::app
