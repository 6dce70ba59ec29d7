// SPDX-License-Identifier: Apache-2.0
#include "agent/conversation.h"

#include <utility>

#include "agent/event_log.h"

namespace belvedere::agent {

void Conversation::beginTurn(const std::string& user_text, std::vector<Part> attachments) {
    question_ = userMessage(user_text, std::move(attachments));
    messages_.push_back(question_);
    asks_in_context_ = false;
}

void Conversation::useContext(AskContext context) {
    ask_ = std::move(context);
    asks_in_context_ = true;
}

void Conversation::addAssistant(Message message) {
    // Only an answered question becomes part of the context: the next one then continues the same
    // prefix.
    if (asks_in_context_ && !plainText(message).empty()) {
        ask_.messages.push_back(question_);
        ask_.messages.push_back(message);
    }
    messages_.push_back(std::move(message));
}

void Conversation::addToolResult(Message message) {
    messages_.push_back(std::move(message));
}

namespace {

/// A continued context has no pieces in the log: those of the one before it stay.
AskContext contextFromLog(const Json& payload, const AskContext& before) {
    if (!contextHasPieces(payload)) {
        return before;
    }
    ContextChanged event = contextFromJson(payload);
    AskContext context;
    context.number = before.number + 1;
    context.pieces = std::move(event.pieces);
    context.n_files = event.n_files;
    context.n_files_total = event.n_files_total;
    context.n_source_tokens = event.n_source_tokens;
    context.n_source_tokens_total = event.n_source_tokens_total;
    return context;
}

/// A crash can leave calls without results; every template needs one for each.
void answerOpenCalls(Conversation& conversation) {
    const std::vector<Message>& messages = conversation.messages();
    size_t begin = messages.size();
    while (begin > 0 && messages[begin - 1].role == Role::Tool) {
        --begin;
    }
    if (begin == 0 || messages[begin - 1].role != Role::Assistant) {
        return;
    }
    const std::vector<ToolCall> calls = messages[begin - 1].tool_calls;
    const size_t n_answered = messages.size() - begin;
    for (size_t i = n_answered; i < calls.size(); ++i) {
        conversation.addToolResult(toolResultMessage(
            {calls[i].id, "cancelled: the program ended before this call was answered", {}, true}));
    }
}

}  // namespace

Conversation conversationFromLog(const StoredSession& session) {
    Conversation conversation;
    for (const StoredEvent& event : session.events) {
        if (event.type == "user_message") {
            answerOpenCalls(conversation);
            conversation.beginTurn(textOf(event.payload), attachmentsFromJson(event.payload));
        } else if (event.type == "context") {
            if (contextHasSources(event.payload)) {
                conversation.useContext(contextFromLog(event.payload, conversation.ask()));
            }
        } else if (event.type == "assistant_message") {
            conversation.addAssistant(assistantFromJson(event.payload));
        } else if (event.type == "tool_result") {
            conversation.addToolResult(toolResultMessage(toolResultFromJson(event.payload)));
        } else if (event.type == "plan") {
            Result<Plan> plan = planFromJson(event.payload);
            if (plan.has_value()) {
                conversation.setPlan(std::move(*plan));
            }
        }
    }
    answerOpenCalls(conversation);
    return conversation;
}

}  // namespace belvedere::agent
