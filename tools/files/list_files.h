// SPDX-License-Identifier: Apache-2.0
#pragma once

// list_files: what is in a folder of the workspace.

#include <memory>

#include "agent/tool.h"
#include "tools/workspace.h"

namespace belvedere::tools {

[[nodiscard]] std::unique_ptr<agent::Tool> makeListFiles(
    std::shared_ptr<const Workspace> workspace);

}  // namespace belvedere::tools
