// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tokens summed by folder. Pure function; any thread.

#include <vector>

#include "tools/repository/search_index.h"

namespace belvedere::tools {

/// `files` in byte order of their paths. The root is node 0, "" and a folder even where there is no
/// file.
[[nodiscard]] std::vector<TreeNode> makeTree(const std::vector<FileRecord>& files,
                                             const std::string& root_name);

[[nodiscard]] size_t tokenCount(const FileRecord& file);

}  // namespace belvedere::tools
