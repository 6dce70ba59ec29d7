// SPDX-License-Identifier: Apache-2.0
#pragma once

// read_file: numbered lines of a text file of the workspace.

#include <memory>

#include "agent/tool.h"
#include "tools/files/read_log.h"
#include "tools/workspace.h"

namespace belvedere::tools {

/// `log` is shared with the tools that write; it has its own lock.
[[nodiscard]] std::unique_ptr<agent::Tool> makeReadFile(std::shared_ptr<const Workspace> workspace,
                                                        std::shared_ptr<ReadLog> log);

}  // namespace belvedere::tools
