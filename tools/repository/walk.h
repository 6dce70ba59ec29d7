// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a folder as git sees them: what is tracked, and what is not ignored. libgit2
// decides, with every source of rules (nested .gitignore, negation, info/exclude, the global file,
// core.ignorecase). A folder without git is walked by the same rules. Nothing is written, links are
// not followed. Any thread.

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "tools/repository/repository.h"

namespace belvedere::tools {

struct WalkResult {
    std::vector<std::string>
        files;  ///< relative with '/', in byte order, so that a folder's files stand together
    std::vector<SkippedFile> skipped;  ///< in byte order
    bool is_git = false;
    std::string head;  ///< commit id; empty before the first commit
};

/// `root` is absolute and canonical. Errors: Cancelled, NotFound (it has vanished), InvalidArgument
/// (git's own folder or a bare repository), Io.
[[nodiscard]] Result<WalkResult> walkRepository(const std::filesystem::path& root,
                                                size_t max_files,
                                                const std::stop_token& stop);

}  // namespace belvedere::tools
