// SPDX-License-Identifier: Apache-2.0
#include "agent/context/prompt.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/context/prompt_texts.h"

namespace belvedere::agent {

namespace {

constexpr std::string_view kQuestion = "\n\nQuestion: ";

Message firstQuestion(const AskContext& context, const Message& question) {
    Message message;
    message.role = Role::User;
    for (const std::shared_ptr<const SourcePiece>& piece : context.pieces) {
        Part part;
        part.kind = Part::Kind::Piece;
        part.piece = piece;
        message.parts.push_back(std::move(part));
    }
    std::copy_if(question.parts.begin(), question.parts.end(), std::back_inserter(message.parts),
                 isMedia);
    // The default model was trained on the label's ids by themselves.
    Part label;
    label.text = kQuestion;
    label.is_separate = true;
    message.parts.push_back(std::move(label));
    Part text;
    text.text = plainText(question);
    message.parts.push_back(std::move(text));
    return message;
}

std::string dump(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void appendParts(Message& message, const Message& more) {
    if (!message.parts.empty() && !more.parts.empty()) {
        Part gap;
        gap.text = "\n\n";
        message.parts.push_back(std::move(gap));
    }
    message.parts.insert(message.parts.end(), more.parts.begin(), more.parts.end());
}

}  // namespace

std::vector<Message> askMessages(const AskContext& context, const Message& question) {
    std::vector<Message> messages;
    messages.push_back(textMessage(Role::System, std::string(kAskPrompt)));
    if (context.messages.empty()) {
        messages.push_back(firstQuestion(context, question));
        return messages;
    }
    messages.push_back(firstQuestion(context, context.messages.front()));
    messages.insert(messages.end(), context.messages.begin() + 1, context.messages.end());
    messages.push_back(question);
    return messages;
}

std::vector<Message> chatMessages(const std::string& system_prompt,
                                  const std::vector<Message>& messages) {
    std::vector<Message> result;
    if (!system_prompt.empty()) {
        result.push_back(textMessage(Role::System, system_prompt));
    }
    for (const Message& message : messages) {
        if (message.role == Role::User && !result.empty() && result.back().role == Role::User) {
            appendParts(result.back(), message);
        } else {
            result.push_back(message);
        }
    }
    return result;
}

std::vector<Message> withToolsAsText(const std::vector<Message>& messages) {
    std::vector<Message> result;
    for (const Message& message : messages) {
        if (message.role == Role::Tool) {
            Message response = textMessage(
                Role::User, "<tool_response>\n" + plainText(message) + "\n</tool_response>");
            std::copy_if(message.parts.begin(), message.parts.end(),
                         std::back_inserter(response.parts), isMedia);
            if (!result.empty() && result.back().role == Role::User) {
                appendParts(result.back(), response);  // results of one reply belong together
            } else {
                result.push_back(std::move(response));
            }
            continue;
        }
        if (message.role == Role::User && !result.empty() && result.back().role == Role::User) {
            appendParts(result.back(), message);
            continue;
        }
        Message copy = message;
        for (const ToolCall& call : message.tool_calls) {
            Part part;
            part.text = (plainText(copy).empty() ? "" : "\n") + std::string("<tool_call>\n") +
                        dump({{"name", call.name}, {"arguments", call.arguments}}) +
                        "\n</tool_call>";
            copy.parts.push_back(std::move(part));
        }
        copy.tool_calls.clear();
        result.push_back(std::move(copy));
    }
    return result;
}

std::string withToolDescriptions(const std::string& system_prompt,
                                 const std::vector<ToolSpec>& tools) {
    constexpr std::string_view kPlace = "{tools}";
    std::string lines;
    for (const ToolSpec& tool : tools) {
        lines += lines.empty() ? "" : "\n";
        lines += dump({{"name", tool.name},
                       {"description", tool.description},
                       {"parameters", tool.parameters}});
    }
    std::string description(kHermesToolsPrompt);
    description.replace(description.find(kPlace), kPlace.size(), lines);
    return system_prompt.empty() ? description : system_prompt + "\n\n" + description;
}

}  // namespace belvedere::agent
