// SPDX-License-Identifier: Apache-2.0
#pragma once

// screenshot: a picture of the whole screen, in the size the model sees.

#include <memory>

#include "agent/tool.h"
#include "tools/screen/screen_log.h"

namespace belvedere::tools {

[[nodiscard]] std::unique_ptr<agent::Tool> makeScreenshot(std::shared_ptr<ScreenLog> log);

}  // namespace belvedere::tools
