// SPDX-License-Identifier: Apache-2.0
#include "tools/all_tools.h"

#include "tools/files/edit_file.h"
#include "tools/files/list_files.h"
#include "tools/files/read_file.h"
#include "tools/files/search_text.h"
#include "tools/files/write_file.h"
#include "tools/shell/run_command.h"

namespace belvedere::tools {

std::shared_ptr<agent::ToolRegistry> allTools(std::shared_ptr<const Workspace> workspace,
                                              const ToolPolicy& policy) {
    (void)policy;
    auto registry = std::make_shared<agent::ToolRegistry>();
    const auto log = std::make_shared<ReadLog>();
    registry->add(makeListFiles(workspace));
    registry->add(makeReadFile(workspace, log));
    registry->add(makeSearchText(workspace));
    registry->add(makeWriteFile(workspace, log));
    registry->add(makeEditFile(workspace, log));
    registry->add(makeRunCommand(workspace));
    return registry;
}

}  // namespace belvedere::tools
