// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tools for testing the loop: one of each kind, with effects that can be seen. Any thread.

#include <functional>
#include <memory>
#include <string>

#include "agent/tool.h"

namespace belvedere::testing {

struct FakeToolFacts {
    std::string name;
    agent::ToolKind kind = agent::ToolKind::Read;
    bool always_asks = false;
    /// By default the arguments as JSON.
    std::function<Result<agent::ToolOutput>(const agent::Json&, const agent::ToolContext&)> run;
};

[[nodiscard]] std::unique_ptr<agent::Tool> fakeTool(FakeToolFacts facts);

/// echo (read: gives back "text"), write_note (write), run_command (execute, always asks), broken
/// (read: an error), wait_for_stop (read: until it is cancelled), noisy (read: live output).
[[nodiscard]] std::shared_ptr<agent::ToolRegistry> fakeTools();

}  // namespace belvedere::testing
