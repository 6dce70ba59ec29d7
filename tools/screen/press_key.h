// SPDX-License-Identifier: Apache-2.0
#pragma once

// press_key: presses a key or a chord of keys.

#include <memory>

#include "agent/tool.h"
#include "tools/screen/screen_log.h"

namespace belvedere::tools {

[[nodiscard]] std::unique_ptr<agent::Tool> makePressKey(std::shared_ptr<ScreenLog> log);

}  // namespace belvedere::tools
