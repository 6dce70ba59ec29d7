// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a model's chat template does with tools and reasoning, found out by rendering a small
// conversation through it: the template is the only thing that knows, and its text is too free to
// be searched. Any thread.

#include "agent/model/language_model.h"
#include "inference/engine.h"

namespace belvedere::agent {

struct TemplateFacts {
    ToolCallFormat tool_calls =
        ToolCallFormat::Hermes;  ///< what a template without tools is told to write
    bool has_native_tools = false;
    bool starts_in_thinking = false;
};

[[nodiscard]] TemplateFacts probeTemplate(const inference::Engine& engine);

}  // namespace belvedere::agent
