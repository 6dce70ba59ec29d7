// SPDX-License-Identifier: Apache-2.0
#pragma once

// run_command: a shell command in the workspace. It can do whatever the user can; that is why it
// always asks.

#include <memory>

#include "agent/tool.h"
#include "tools/workspace.h"

namespace belvedere::tools {

[[nodiscard]] std::unique_ptr<agent::Tool> makeRunCommand(
    std::shared_ptr<const Workspace> workspace);

}  // namespace belvedere::tools
