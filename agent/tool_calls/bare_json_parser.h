// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls that are a bare JSON object at the start of the reply, or after <|python_tag|> (Llama 3).
// Everything else goes to the next parser. A reply that begins with '{' is held back until its
// first name shows that it is no call.

#include <memory>
#include <vector>

#include "agent/tool_calls/parser.h"

namespace belvedere::agent {

enum class BareJsonNames {
    Any,         ///< what has the form of a call is one (Llama 3)
    KnownTools,  ///< only where a tool has the name
};

[[nodiscard]] std::unique_ptr<ToolCallParser> makeBareJsonParser(
    BareJsonNames names, std::vector<ToolSpec> tools, std::unique_ptr<ToolCallParser> next);

}  // namespace belvedere::agent
