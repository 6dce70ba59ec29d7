// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tool calls of MiniMax-M3. N stands for the namespace marker before every tag; it is the only
// escape, so values hold any text:
//
//     block   := N<tool_call> invoke+ N</tool_call>
//     invoke  := N<invoke name="NAME"> element* N</invoke>
//     element := N<KEY> (text | element+) N</KEY>          children named "item" form an array
//
// Values are read by the tool's schema (schema.h). Tolerated: a missing N</invoke>, a block whose
// opening tag has lost its marker at the start of a line, a first parameter that has lost its
// opening tag. An invoke that the end of the stream cut is malformed. Source: the chat template of
// MiniMax-M3 and the parsers of vLLM and SGLang for it.

#include <memory>
#include <string_view>
#include <vector>

#include "agent/tool_calls/parser.h"

namespace belvedere::agent {

inline constexpr std::string_view kMinimaxM3Marker = "]<]minimax[>[";
inline constexpr std::string_view kMinimaxM3BlockOpen = "]<]minimax[>[<tool_call>";

[[nodiscard]] std::unique_ptr<ToolCallParser> makeMinimaxM3Parser(std::vector<ToolSpec> tools);

}  // namespace belvedere::agent
