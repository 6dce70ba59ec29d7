// SPDX-License-Identifier: Apache-2.0
#include "tools/all_tools.h"

#include "tools/files/edit_file.h"
#include "tools/files/list_files.h"
#include "tools/files/read_file.h"
#include "tools/files/search_text.h"
#include "tools/files/write_file.h"
#include "tools/screen/click.h"
#include "tools/screen/display.h"
#include "tools/screen/press_key.h"
#include "tools/screen/screenshot.h"
#include "tools/screen/type_text.h"
#include "tools/shell/run_command.h"

namespace belvedere::tools {

std::shared_ptr<agent::ToolRegistry> allTools(std::shared_ptr<const Workspace> workspace,
                                              const ToolPolicy& policy) {
    auto registry = std::make_shared<agent::ToolRegistry>();
    const auto log = std::make_shared<ReadLog>();
    registry->add(makeListFiles(workspace));
    registry->add(makeReadFile(workspace, log));
    registry->add(makeSearchText(workspace));
    registry->add(makeWriteFile(workspace, log));
    registry->add(makeEditFile(workspace, log));
    registry->add(makeRunCommand(workspace));
    if (policy.screen && isDisplayNamed()) {
        const auto screen_log = std::make_shared<ScreenLog>();
        registry->add(makeScreenshot(screen_log));
        registry->add(makeClick(screen_log));
        registry->add(makeTypeText(screen_log));
        registry->add(makePressKey(screen_log));
    }
    return registry;
}

}  // namespace belvedere::tools
