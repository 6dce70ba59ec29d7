// SPDX-License-Identifier: Apache-2.0
#pragma once

// The list of tools. Adding a tool means one line in all_tools.cpp.

#include <memory>

#include "agent/tool.h"
#include "tools/workspace.h"

namespace belvedere::tools {

struct ToolPolicy {
    bool screen = true;  ///< offer screenshot, click, type_text, press_key where there is a display
};

/// Every tool for one workspace.
[[nodiscard]] std::shared_ptr<agent::ToolRegistry> allTools(
    std::shared_ptr<const Workspace> workspace, const ToolPolicy& policy);

}  // namespace belvedere::tools
