// SPDX-License-Identifier: Apache-2.0
#pragma once

// The payloads of stored events: one pair of functions a type, so that writer and reader stand side
// by side. Readers take what is there and leave the rest at its default: a log of an older version
// stays readable. Any thread.

#include <string>

#include "agent/conversation.h"
#include "agent/events.h"
#include "agent/message.h"

namespace belvedere::agent {

/// The text of user_message and notice events; empty where there is none.
[[nodiscard]] std::string textOf(const Json& payload);

/// The images and videos of a user_message event, by their paths.
[[nodiscard]] Json attachmentsToJson(const std::vector<Part>& attachments);
[[nodiscard]] std::vector<Part> attachmentsFromJson(const Json& payload);

[[nodiscard]] Json assistantToJson(const Message& message);
[[nodiscard]] Message assistantFromJson(const Json& json);

/// The tool_result event. Images are not kept.
[[nodiscard]] Json toolResultToJson(const ToolCallFinished& result);
[[nodiscard]] ToolCallFinished toolResultFromJson(const Json& json);
[[nodiscard]] Message toolResultMessage(const ToolCallFinished& result);

[[nodiscard]] Json toolCallToJson(const ToolCallStarted& started);
[[nodiscard]] ToolCallStarted toolCallFromJson(const Json& json);

[[nodiscard]] Json questionToJson(const PermissionQuestion& question);
[[nodiscard]] PermissionQuestion questionFromJson(const Json& json);

/// With the pieces only where they begin a new context: a continued one has those of the event
/// before it.
[[nodiscard]] Json contextToJson(const ContextChanged& context, bool with_pieces);
[[nodiscard]] ContextChanged contextFromJson(const Json& json);
[[nodiscard]] bool contextHasPieces(const Json& json);
/// A question to the repository, with pieces here or in an event before it.
[[nodiscard]] bool contextHasSources(const Json& json);

[[nodiscard]] Json citationsToJson(const CitationsChecked& checked);
[[nodiscard]] CitationsChecked citationsFromJson(const Json& json);

[[nodiscard]] Json usageToJson(const UsageUpdated& usage);
[[nodiscard]] UsageUpdated usageFromJson(const Json& json);

[[nodiscard]] Json turnFinishedToJson(const TurnFinished& finished);
[[nodiscard]] TurnFinished turnFinishedFromJson(const Json& json);

}  // namespace belvedere::agent
