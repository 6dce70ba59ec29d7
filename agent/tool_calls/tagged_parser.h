// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls in blocks between tags: <tool_call> with JSON (Hermes) or XML (Qwen3-Coder) inside,
// <minimax:tool_call> (MiniMax-M2). Which of the first two it is, each block shows by itself; the
// format only decides what may stand without a block. The opening tag counts where a call follows
// it; a mere mention stays text.

#include <memory>
#include <vector>

#include "agent/tool_calls/parser.h"

namespace belvedere::agent {

enum class TaggedFormat { HermesJson, QwenXml, MinimaxM2 };

[[nodiscard]] std::unique_ptr<ToolCallParser> makeTaggedParser(TaggedFormat format,
                                                               std::vector<ToolSpec> tools);

}  // namespace belvedere::agent
