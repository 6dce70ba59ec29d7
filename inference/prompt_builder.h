// SPDX-License-Identifier: Apache-2.0
#pragma once

// From messages to token ids: renders the chat template, keeps fixed pieces as the ids they came
// with, and tokenizes what is between them. No token crosses the border of a fixed piece. Any
// thread.

#include "inference/chat/template.h"
#include "inference/engine.h"
#include "inference/tokenizer/tokenizer.h"

namespace belvedere::inference {

/// Errors: those of renderChat; InvalidArgument where a fixed piece holds an id that is no token.
[[nodiscard]] Result<Prompt> buildPrompt(const ChatTemplate& chat_template,
                                         const Tokenizer& tokenizer,
                                         const PromptRequest& request);

}  // namespace belvedere::inference
