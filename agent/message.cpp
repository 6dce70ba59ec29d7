// SPDX-License-Identifier: Apache-2.0
#include "agent/message.h"

#include <iterator>
#include <utility>

namespace belvedere::agent {

Message textMessage(Role role, std::string text) {
    Message message;
    message.role = role;
    Part part;
    part.text = std::move(text);
    message.parts.push_back(std::move(part));
    return message;
}

Message userMessage(std::string text, std::vector<Part> attachments) {
    Message message = textMessage(Role::User, std::move(text));
    message.parts.insert(message.parts.begin(), std::make_move_iterator(attachments.begin()),
                         std::make_move_iterator(attachments.end()));
    return message;
}

bool isMedia(const Part& part) {
    return part.kind == Part::Kind::Image || part.kind == Part::Kind::Video;
}

std::string plainText(const Message& message) {
    std::string text;
    for (const Part& part : message.parts) {
        if (part.kind == Part::Kind::Text) {
            text += part.text;
        }
    }
    return text;
}

}  // namespace belvedere::agent
