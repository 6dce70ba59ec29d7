// SPDX-License-Identifier: Apache-2.0
#pragma once

// write_file: a whole file of the workspace, new or in place of one that was read.

#include <memory>

#include "agent/tool.h"
#include "tools/files/read_log.h"
#include "tools/workspace.h"

namespace belvedere::tools {

[[nodiscard]] std::unique_ptr<agent::Tool> makeWriteFile(std::shared_ptr<const Workspace> workspace,
                                                         std::shared_ptr<ReadLog> log);

}  // namespace belvedere::tools
