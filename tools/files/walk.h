// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files below a folder, in a stable order (by name, folders where their name stands). Links are
// shown and never followed; .git is left out; what git ignores is left out unless asked for. Any
// thread.

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "kernels/base/result.h"
#include "tools/workspace.h"

namespace belvedere::tools {

struct WalkEntry {
    enum class Kind { File, Folder, Link, Other };
    std::string path;  ///< relative to the workspace, with '/'
    Kind kind = Kind::File;
    size_t depth = 1;  ///< 1: directly in the folder
};

enum class WalkStep { Go, SkipFolder, End };

struct WalkOptions {
    bool include_ignored = false;
    std::stop_token stop = {};
};

struct WalkSummary {
    size_t n_ignored = 0;     ///< entries left out because git ignores them
    size_t n_unreadable = 0;  ///< folders that could not be read
};

/// Errors: those of openFolder for the folder itself; Cancelled.
Result<WalkSummary> walkFolder(const Workspace& workspace,
                               const std::filesystem::path& folder,
                               const WalkOptions& options,
                               const std::function<WalkStep(const WalkEntry&)>& visit);

/// Keys, passwords, .env: names that are not shown without asking and not searched. Not proof that
/// a file is harmless.
[[nodiscard]] bool looksLikeSecretFile(std::string_view path);

/// Part of .git, where a written hook would run as a program.
[[nodiscard]] bool isInsideGit(std::string_view path);

}  // namespace belvedere::tools
