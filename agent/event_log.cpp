// SPDX-License-Identifier: Apache-2.0
#include "agent/event_log.h"

#include <array>
#include <utility>

namespace belvedere::agent {

namespace {

std::string text(const Json& json, const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

size_t count(const Json& json, const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_number_unsigned() ? it->get<size_t>() : 0;
}

double seconds(const Json& json, const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_number() ? it->get<double>() : 0.0;
}

bool flag(const Json& json, const char* key, bool otherwise) {
    const auto it = json.find(key);
    return it != json.end() && it->is_boolean() ? it->get<bool>() : otherwise;
}

const Json& list(const Json& json, const char* key) {
    static const Json kEmpty = Json::array();
    const auto it = json.find(key);
    return it != json.end() && it->is_array() ? *it : kEmpty;
}

Json object(const Json& json, const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_object() ? *it : Json::object();
}

template <class T>
struct Named {
    T value;
    const char* name;
};

constexpr std::array<Named<TurnEnd>, 5> kTurnEnds = {{{TurnEnd::Done, "done"},
                                                      {TurnEnd::Cancelled, "cancelled"},
                                                      {TurnEnd::Failed, "failed"},
                                                      {TurnEnd::Interrupted, "interrupted"},
                                                      {TurnEnd::RoundLimit, "round_limit"}}};
constexpr std::array<Named<ToolKind>, 4> kToolKinds = {{{ToolKind::Read, "read"},
                                                        {ToolKind::Write, "write"},
                                                        {ToolKind::Execute, "execute"},
                                                        {ToolKind::Network, "network"}}};

template <class Table, class T>
const char* nameOf(const Table& table, T value) {
    for (const auto& entry : table) {
        if (entry.value == value) {
            return entry.name;
        }
    }
    return table.front().name;
}

template <class Table, class T>
T valueOf(const Table& table, const std::string& name, T otherwise) {
    for (const auto& entry : table) {
        if (name == entry.name) {
            return entry.value;
        }
    }
    return otherwise;
}

ErrorCode errorCodeFrom(const std::string& name) {
    for (const ErrorCode code :
         {ErrorCode::Cancelled, ErrorCode::InvalidArgument, ErrorCode::NotFound, ErrorCode::Io,
          ErrorCode::Corrupt, ErrorCode::Unsupported, ErrorCode::OutOfMemory}) {
        if (name == errorCodeName(code)) {
            return code;
        }
    }
    return ErrorCode::Internal;
}

}  // namespace

std::string textOf(const Json& payload) {
    return text(payload, "text");
}

Json attachmentsToJson(const std::vector<Part>& attachments) {
    Json entries = Json::array();
    for (const Part& part : attachments) {
        const bool is_video = part.kind == Part::Kind::Video;
        entries.push_back({{"kind", is_video ? "video" : "image"}, {"path", part.path}});
        if (is_video) {
            entries.back()["frames_per_second"] = part.frames_per_second;
        }
    }
    return entries;
}

std::vector<Part> attachmentsFromJson(const Json& payload) {
    std::vector<Part> attachments;
    for (const Json& entry : list(payload, "attachments")) {
        Part part;
        part.kind = text(entry, "kind") == "video" ? Part::Kind::Video : Part::Kind::Image;
        part.path = text(entry, "path");
        const double rate = seconds(entry, "frames_per_second");
        part.frames_per_second = rate > 0 ? rate : part.frames_per_second;
        attachments.push_back(std::move(part));
    }
    return attachments;
}

Json assistantToJson(const Message& message) {
    Json json = {{"text", plainText(message)}};
    if (!message.reasoning.empty()) {
        json["reasoning"] = message.reasoning;
    }
    for (const ToolCall& call : message.tool_calls) {
        json["tool_calls"].push_back(
            {{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
    }
    json["is_complete"] = message.is_complete;
    return json;
}

Message assistantFromJson(const Json& json) {
    Message message = textMessage(Role::Assistant, text(json, "text"));
    message.reasoning = text(json, "reasoning");
    for (const Json& call : list(json, "tool_calls")) {
        message.tool_calls.push_back(
            {text(call, "id"), text(call, "name"), object(call, "arguments")});
    }
    message.is_complete = flag(json, "is_complete", true);
    return message;
}

Json toolResultToJson(const ToolCallFinished& result) {
    return {{"call_id", result.call_id},
            {"text", result.text},
            {"data", result.data},
            {"is_error", result.is_error}};
}

ToolCallFinished toolResultFromJson(const Json& json) {
    return {text(json, "call_id"), text(json, "text"), object(json, "data"),
            flag(json, "is_error", false)};
}

Message toolResultMessage(const ToolCallFinished& result) {
    Message message = textMessage(Role::Tool, result.text);
    message.tool_call_id = result.call_id;
    return message;
}

Json toolCallToJson(const ToolCallStarted& started) {
    return {{"call_id", started.call.id},
            {"name", started.call.name},
            {"arguments", started.call.arguments},
            {"title", started.title},
            {"kind", nameOf(kToolKinds, started.kind)}};
}

ToolCallStarted toolCallFromJson(const Json& json) {
    ToolCallStarted started;
    started.call = {text(json, "call_id"), text(json, "name"), object(json, "arguments")};
    started.title = text(json, "title");
    started.kind = valueOf(kToolKinds, text(json, "kind"), ToolKind::Execute);
    return started;
}

Json questionToJson(const PermissionQuestion& question) {
    return {{"call_id", question.call_id},
            {"tool", question.tool},
            {"kind", nameOf(kToolKinds, question.kind)},
            {"title", question.title},
            {"subject", question.subject},
            {"arguments", question.arguments},
            {"reason", question.reason},
            {"preview", question.preview}};
}

PermissionQuestion questionFromJson(const Json& json) {
    PermissionQuestion question;
    question.call_id = text(json, "call_id");
    question.tool = text(json, "tool");
    question.kind = valueOf(kToolKinds, text(json, "kind"), ToolKind::Execute);
    question.title = text(json, "title");
    question.subject = text(json, "subject");
    question.arguments = object(json, "arguments");
    question.reason = text(json, "reason");
    question.preview = text(json, "preview");
    return question;
}

Json contextToJson(const ContextChanged& context, bool with_pieces) {
    Json json = {{"n_tokens", context.n_tokens},
                 {"window_tokens", context.window_tokens},
                 {"n_files", context.n_files},
                 {"n_files_total", context.n_files_total},
                 {"n_source_tokens", context.n_source_tokens},
                 {"n_source_tokens_total", context.n_source_tokens_total},
                 {"is_new_context", context.is_new_context},
                 {"has_sources", !context.pieces.empty() || with_pieces},
                 {"categories", Json::array()}};
    for (const ContextChanged::Category& category : context.categories) {
        json["categories"].push_back({{"name", category.name}, {"n_tokens", category.n_tokens}});
    }
    if (with_pieces) {
        json["pieces"] = Json::array();
        for (const std::shared_ptr<const SourcePiece>& piece : context.pieces) {
            json["pieces"].push_back({{"path", piece->path},
                                      {"first_line", piece->first_line},
                                      {"last_line", piece->last_line},
                                      {"text", piece->text}});
        }
    }
    return json;
}

ContextChanged contextFromJson(const Json& json) {
    ContextChanged context;
    context.n_tokens = count(json, "n_tokens");
    context.window_tokens = count(json, "window_tokens");
    context.n_files = count(json, "n_files");
    context.n_files_total = count(json, "n_files_total");
    context.n_source_tokens = count(json, "n_source_tokens");
    context.n_source_tokens_total = count(json, "n_source_tokens_total");
    context.is_new_context = flag(json, "is_new_context", false);
    for (const Json& category : list(json, "categories")) {
        context.categories.push_back({text(category, "name"), count(category, "n_tokens")});
    }
    for (const Json& piece : list(json, "pieces")) {
        auto read = std::make_shared<SourcePiece>();
        read->path = text(piece, "path");
        read->first_line = count(piece, "first_line");
        read->last_line = count(piece, "last_line");
        read->text = text(piece, "text");
        context.pieces.push_back(std::move(read));
    }
    return context;
}

bool contextHasPieces(const Json& json) {
    return json.contains("pieces");
}

bool contextHasSources(const Json& json) {
    return flag(json, "has_sources", false);
}

Json citationsToJson(const CitationsChecked& checked) {
    Json json = Json::array();
    for (const Citation& citation : checked.citations) {
        json.push_back({{"path", citation.path},
                        {"first_line", citation.first_line},
                        {"last_line", citation.last_line},
                        {"text_begin", citation.text_begin},
                        {"text_end", citation.text_end},
                        {"is_in_context", citation.is_in_context}});
    }
    return {{"citations", std::move(json)}};
}

CitationsChecked citationsFromJson(const Json& json) {
    CitationsChecked checked;
    for (const Json& citation : list(json, "citations")) {
        checked.citations.push_back({text(citation, "path"), count(citation, "first_line"),
                                     count(citation, "last_line"), count(citation, "text_begin"),
                                     count(citation, "text_end"),
                                     flag(citation, "is_in_context", false)});
    }
    return checked;
}

Json usageToJson(const UsageUpdated& usage) {
    return {{"n_prompt", usage.n_prompt},
            {"n_cached", usage.n_cached},
            {"n_prefilled", usage.n_prefilled},
            {"n_generated", usage.n_generated},
            {"n_drafted", usage.n_drafted},
            {"n_accepted", usage.n_accepted},
            {"n_images", usage.n_images},
            {"n_encoded", usage.n_encoded},
            {"prefill_seconds", usage.prefill_seconds},
            {"generation_seconds", usage.generation_seconds},
            {"first_token_seconds", usage.first_token_seconds}};
}

UsageUpdated usageFromJson(const Json& json) {
    return {count(json, "n_prompt"),
            count(json, "n_cached"),
            count(json, "n_prefilled"),
            count(json, "n_generated"),
            count(json, "n_drafted"),
            count(json, "n_accepted"),
            count(json, "n_images"),
            count(json, "n_encoded"),
            seconds(json, "prefill_seconds"),
            seconds(json, "generation_seconds"),
            seconds(json, "first_token_seconds")};
}

Json turnFinishedToJson(const TurnFinished& finished) {
    Json json = {{"end", nameOf(kTurnEnds, finished.end)}};
    if (finished.end == TurnEnd::Failed) {
        json["error_code"] = errorCodeName(finished.error.code);
        json["error"] = finished.error.message;
    }
    return json;
}

TurnFinished turnFinishedFromJson(const Json& json) {
    TurnFinished finished;
    finished.end = valueOf(kTurnEnds, text(json, "end"), TurnEnd::Interrupted);
    if (finished.end == TurnEnd::Failed) {
        finished.error = {errorCodeFrom(text(json, "error_code")), text(json, "error")};
    }
    return finished;
}

}  // namespace belvedere::agent
