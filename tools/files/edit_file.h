// SPDX-License-Identifier: Apache-2.0
#pragma once

// edit_file: replaces one piece of text in a file of the workspace that was read.

#include <memory>

#include "agent/tool.h"
#include "tools/files/read_log.h"
#include "tools/workspace.h"

namespace belvedere::tools {

[[nodiscard]] std::unique_ptr<agent::Tool> makeEditFile(std::shared_ptr<const Workspace> workspace,
                                                        std::shared_ptr<ReadLog> log);

}  // namespace belvedere::tools
