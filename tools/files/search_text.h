// SPDX-License-Identifier: Apache-2.0
#pragma once

// search_text: lines of the workspace's files that match a regular expression or contain a text.

#include <memory>

#include "agent/tool.h"
#include "tools/workspace.h"

namespace belvedere::tools {

[[nodiscard]] std::unique_ptr<agent::Tool> makeSearchText(
    std::shared_ptr<const Workspace> workspace);

}  // namespace belvedere::tools
