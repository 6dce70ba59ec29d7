// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides which sources a question is answered from: those already in the context where they serve,
// else new ones within the budget. Turn thread.

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/context_source.h"
#include "agent/conversation.h"
#include "agent/model/language_model.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

struct AskRequest {
    const LanguageModel& model;
    const ContextSource& source;
    std::string session_id;
    std::string question;
    std::vector<Part> attachments;  ///< of the question
    size_t source_budget_tokens = 0;
    size_t answer_reserve_tokens = 0;
};

struct AskPrompt {
    AskContext context;
    bool is_new = false;        ///< other pieces than in the session's last question
    bool replaces_old = false;  ///< is_new, and there was a context before
    ModelRequest request;       ///< options left at their defaults
    PromptCost cost;
    std::vector<std::string> absent_names;  ///< as ContextChoice
    bool asks_only_absent = false;
};

/// The whole repository where it fits the window; else the best pieces within the budget. `current`
/// is kept where the pieces that answer best stand in it unchanged, or nothing that is asked for
/// stands anywhere, and the longer conversation still fits. Errors: InvalidArgument where even the
/// question alone does not fit, with the numbers; those of the source and the model.
[[nodiscard]] Result<AskPrompt> prepareAsk(const AskRequest& ask,
                                           const AskContext& current,
                                           std::stop_token stop);

}  // namespace belvedere::agent
