// SPDX-License-Identifier: Apache-2.0
#pragma once

// A conversation as data: roles, text, images, tool calls, tool results. Plain values; any thread.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace belvedere::agent {

using Json = nlohmann::ordered_json;

enum class Role { System, User, Assistant, Tool };

/// A stretch of source code that stands in the prompt. Lines count from 1, both ends included.
struct SourcePiece {
    std::string path;  ///< relative to the repository, with '/'
    size_t first_line = 0;
    size_t last_line = 0;
    std::string text;  ///< as it stands in the prompt: "\n### path:first-last\n" and the lines
    std::shared_ptr<const std::vector<int32_t>>
        ids;  ///< of text, by the loaded model's tokenizer; immutable
};

struct Part {
    enum class Kind { Text, Piece, Image, Video };
    Kind kind = Kind::Text;
    std::string text;  ///< Kind::Text
    std::shared_ptr<const SourcePiece>
        piece;              ///< Kind::Piece; shared with the repository index, immutable
    std::string image_png;  ///< Kind::Image: encoded bytes, or empty where `path` is given
    std::string path;       ///< Kind::Image: a file; Kind::Video: one, or a folder of frames
    double frames_per_second = 1.0;  ///< Kind::Video: taken from a file
    bool is_separate = false;  ///< Kind::Text: tokenized by itself, not with what stands beside it
};

struct ToolCall {
    std::string id;  ///< unique within a session; made by us where the model gives none
    std::string name;
    Json arguments = Json::object();
};

struct Message {
    Role role = Role::User;
    std::vector<Part> parts;
    std::string reasoning;             ///< Role::Assistant: thinking, given back byte for byte
    std::vector<ToolCall> tool_calls;  ///< Role::Assistant
    std::string tool_call_id;          ///< Role::Tool
    bool is_complete = true;           ///< false: stopped or interrupted before its end
};

[[nodiscard]] Message textMessage(Role role, std::string text);

/// A message of the user: what is attached, then the text.
[[nodiscard]] Message userMessage(std::string text, std::vector<Part> attachments);

/// An image or a video.
[[nodiscard]] bool isMedia(const Part& part);

/// All text parts joined; pieces and images left out.
[[nodiscard]] std::string plainText(const Message& message);

}  // namespace belvedere::agent
