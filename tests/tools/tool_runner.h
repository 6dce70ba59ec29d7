// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls a tool as the turn does.

#include <memory>
#include <string>

#include "agent/tool.h"
#include "tests/support/temp_dir.h"
#include "tools/workspace.h"

namespace belvedere::tools::testing {

using agent::Json;

inline std::shared_ptr<const Workspace> openWorkspace(const belvedere::testing::TempDir& dir) {
    return *Workspace::open(dir.path());
}

inline Result<agent::ToolOutput> call(agent::Tool& tool,
                                      const Json& arguments,
                                      const std::string& session_id = "session") {
    agent::ToolContext context;
    context.session_id = session_id;
    context.call_id = "call";
    return tool.run(arguments, context);
}

/// The text, or "error: ...".
inline std::string textOf(const Result<agent::ToolOutput>& result) {
    return result.has_value() ? result->text : "error: " + result.error().message;
}

}  // namespace belvedere::tools::testing
