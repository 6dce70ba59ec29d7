// SPDX-License-Identifier: Apache-2.0
#pragma once

// click: a mouse click at a pixel of the latest screenshot.

#include <memory>

#include "agent/tool.h"
#include "tools/screen/screen_log.h"

namespace belvedere::tools {

[[nodiscard]] std::unique_ptr<agent::Tool> makeClick(std::shared_ptr<ScreenLog> log);

}  // namespace belvedere::tools
