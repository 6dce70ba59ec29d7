// SPDX-License-Identifier: Apache-2.0
#pragma once

// The texts of resources/prompts, put into the program when it is built.

#include <string_view>

namespace belvedere::agent {

extern const std::string_view
    kAskPrompt;  ///< the sentence that repository questions were trained with
extern const std::string_view
    kWorkPrompt;  ///< for Work turns without a system prompt from the user
extern const std::string_view kHermesToolsPrompt;  ///< "{tools}" stands for one JSON object a line

}  // namespace belvedere::agent
