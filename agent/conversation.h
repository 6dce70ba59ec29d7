// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a session's next prompt is made of: its messages, the context of its repository questions,
// its plan. A live turn and the log go through the same functions, so a reopened session continues
// exactly where it was. One thread at a time: the session's running turn.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/events.h"
#include "agent/message.h"
#include "agent/plan.h"
#include "agent/store/session_store.h"

namespace belvedere::agent {

/// The sources that repository questions are answered from, and the questions answered from them so
/// far.
struct AskContext {
    uint64_t number = 0;  ///< of the context in its session, from 1; 0: there is none yet
    std::vector<std::shared_ptr<const SourcePiece>>
        pieces;                     ///< immutable, shared with the repository index
    std::string tokenizer_key;      ///< of the pieces' ids; empty: they have none
    std::vector<Message> messages;  ///< question, answer, question, answer, ...
    size_t n_files = 0;
    size_t n_files_total = 0;
    size_t n_source_tokens = 0;
    size_t n_source_tokens_total = 0;
};

class Conversation {
  public:
    /// All messages of the session, sources left out: what Work turns and plain chat see.
    [[nodiscard]] const std::vector<Message>& messages() const { return messages_; }

    [[nodiscard]] const AskContext& ask() const { return ask_; }

    [[nodiscard]] const Plan& plan() const { return plan_; }

    void beginTurn(const std::string& user_text, std::vector<Part> attachments = {});
    /// The running turn is a question to this context.
    void useContext(AskContext context);
    void addAssistant(Message message);
    void addToolResult(Message message);

    void setPlan(Plan plan) { plan_ = std::move(plan); }

  private:
    std::vector<Message> messages_;
    AskContext ask_;
    Plan plan_;
    Message question_;              ///< of the running turn
    bool asks_in_context_ = false;  ///< useContext was called in the running turn
};

/// Rebuilt from the log. Events this version does not know are left out.
[[nodiscard]] Conversation conversationFromLog(const StoredSession& session);

}  // namespace belvedere::agent
