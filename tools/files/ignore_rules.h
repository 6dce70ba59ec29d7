// SPDX-License-Identifier: Apache-2.0
#pragma once

// What git would ignore, by git's own rules (nested files, negation, info/exclude, the global
// file): libgit2 decides. One thread at a time.

#include <memory>
#include <string>

#include "tools/workspace.h"

struct git_repository;

namespace belvedere::tools {

class IgnoreRules {
  public:
    /// Without a repository around the workspace, or where it can not be opened, nothing is
    /// ignored.
    explicit IgnoreRules(const Workspace& workspace);
    ~IgnoreRules();
    IgnoreRules(const IgnoreRules&) = delete;
    IgnoreRules& operator=(const IgnoreRules&) = delete;

    /// `path` relative to the workspace. A tracked file is never ignored.
    [[nodiscard]] bool ignores(const std::string& path, bool is_folder) const;

  private:
    git_repository* repository_ = nullptr;
    std::string prefix_;  ///< of the workspace within the repository: "" or "sub/folder/"
};

}  // namespace belvedere::tools
