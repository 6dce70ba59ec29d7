// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a conversation becomes the messages of a model request. Every layout only grows at its end
// from one request to the next, so that the KV cache keeps the prefix. Pure functions; any thread.

#include <string>
#include <string_view>
#include <vector>

#include "agent/conversation.h"
#include "agent/model/language_model.h"

namespace belvedere::agent {

/// Repository questions, in the form that the project's adapter was trained with; other models get
/// the same inside their own template. System sentence; then the sources and, two newlines on,
/// "Question: " and the first question in one user message, images before that; later questions
/// follow plain.
[[nodiscard]] std::vector<Message> askMessages(const AskContext& context, const Message& question);

/// Plain conversation or work with tools. An empty system prompt is left out. Messages of the user
/// that follow each other (the first was stopped before its answer) become one, as templates want
/// turns to alternate.
[[nodiscard]] std::vector<Message> chatMessages(const std::string& system_prompt,
                                                const std::vector<Message>& messages);

/// For a template that knows no tools: calls become <tool_call> text, results <tool_response> text
/// of the user.
[[nodiscard]] std::vector<Message> withToolsAsText(const std::vector<Message>& messages);

/// The system prompt with the tools described in it.
[[nodiscard]] std::string withToolDescriptions(const std::string& system_prompt,
                                               const std::vector<ToolSpec>& tools);

}  // namespace belvedere::agent
