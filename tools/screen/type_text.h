// SPDX-License-Identifier: Apache-2.0
#pragma once

// type_text: types text, any Unicode character, into the window that has the focus.

#include <memory>

#include "agent/tool.h"
#include "tools/screen/screen_log.h"

namespace belvedere::tools {

[[nodiscard]] std::unique_ptr<agent::Tool> makeTypeText(std::shared_ptr<ScreenLog> log);

}  // namespace belvedere::tools
