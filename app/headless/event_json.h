// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/events.h"

namespace belvedere::app {

/// One event as {"type", "turn", ...}: the lines of --json.
[[nodiscard]] agent::Json eventToJson(const agent::Event& event);

}  // namespace belvedere::app
