// SPDX-License-Identifier: Apache-2.0
#include "app/headless/event_json.h"

#include <variant>

namespace belvedere::app {
namespace {

using namespace agent;  // NOLINT(google-build-using-namespace): the visitor names seventeen event
                        // types

const char* toolKindName(ToolKind kind) {
    switch (kind) {
        case ToolKind::Read:
            return "read";
        case ToolKind::Write:
            return "write";
        case ToolKind::Execute:
            return "execute";
        case ToolKind::Network:
            return "network";
    }
    return "?";
}

const char* turnEndName(TurnEnd end) {
    switch (end) {
        case TurnEnd::Done:
            return "done";
        case TurnEnd::Cancelled:
            return "cancelled";
        case TurnEnd::Failed:
            return "failed";
        case TurnEnd::Interrupted:
            return "interrupted";
        case TurnEnd::RoundLimit:
            return "round_limit";
    }
    return "?";
}

Json pieceToJson(const SourcePiece& piece) {
    return {{"path", piece.path}, {"first_line", piece.first_line}, {"last_line", piece.last_line}};
}

struct Writer {
    Json operator()(const TurnStarted& e) const {
        return {{"type", "turn_started"}, {"session", e.session_id}, {"text", e.user_text}};
    }

    Json operator()(const TextDelta& e) const { return {{"type", "text"}, {"text", e.text}}; }

    Json operator()(const ThinkingDelta& e) const {
        return {{"type", "thinking"}, {"text", e.text}};
    }

    Json operator()(const ToolCallStarted& e) const {
        return {{"type", "tool_call"}, {"id", e.call.id},
                {"name", e.call.name}, {"arguments", e.call.arguments},
                {"title", e.title},    {"kind", toolKindName(e.kind)}};
    }

    Json operator()(const ToolCallOutput& e) const {
        return {{"type", "tool_output"}, {"id", e.call_id}, {"text", e.text}};
    }

    Json operator()(const ToolCallFinished& e) const {
        return {{"type", "tool_result"},
                {"id", e.call_id},
                {"text", e.text},
                {"data", e.data},
                {"is_error", e.is_error}};
    }

    Json operator()(const PermissionRequested& e) const {
        const PermissionQuestion& q = e.question;
        return {{"type", "permission_requested"},
                {"id", q.call_id},
                {"tool", q.tool},
                {"title", q.title},
                {"subject", q.subject},
                {"reason", q.reason},
                {"preview", q.preview}};
    }

    Json operator()(const PermissionResolved& e) const {
        return {{"type", "permission_resolved"}, {"id", e.call_id}, {"is_allowed", e.is_allowed}};
    }

    Json operator()(const PlanChanged& e) const {
        return {{"type", "plan"}, {"plan", planToJson(e.plan)}};
    }

    Json operator()(const PrefillProgress& e) const {
        return {{"type", "prefill"}, {"n_done", e.n_done}, {"n_total", e.n_total}};
    }

    Json operator()(const IngestionProgress& e) const {
        return {{"type", "ingestion"},
                {"root", e.root},
                {"n_files_done", e.n_files_done},
                {"n_files_total", e.n_files_total},
                {"n_tokens", e.n_tokens}};
    }

    Json operator()(const ContextChanged& e) const {
        Json categories = Json::object();
        for (const ContextChanged::Category& category : e.categories) {
            categories[category.name] = category.n_tokens;
        }
        Json pieces = Json::array();
        for (const auto& piece : e.pieces) {
            pieces.push_back(pieceToJson(*piece));
        }
        return {{"type", "context"},
                {"n_tokens", e.n_tokens},
                {"window_tokens", e.window_tokens},
                {"categories", categories},
                {"n_files", e.n_files},
                {"n_files_total", e.n_files_total},
                {"n_source_tokens", e.n_source_tokens},
                {"n_source_tokens_total", e.n_source_tokens_total},
                {"is_new_context", e.is_new_context},
                {"pieces", pieces}};
    }

    Json operator()(const CitationsChecked& e) const {
        Json citations = Json::array();
        for (const Citation& c : e.citations) {
            citations.push_back({{"path", c.path},
                                 {"first_line", c.first_line},
                                 {"last_line", c.last_line},
                                 {"is_in_context", c.is_in_context}});
        }
        return {{"type", "citations"}, {"citations", citations}};
    }

    Json operator()(const Notice& e) const { return {{"type", "notice"}, {"text", e.text}}; }

    Json operator()(const UsageUpdated& e) const {
        return {{"type", "usage"},
                {"n_prompt", e.n_prompt},
                {"n_cached", e.n_cached},
                {"n_prefilled", e.n_prefilled},
                {"n_generated", e.n_generated},
                {"n_drafted", e.n_drafted},
                {"n_accepted", e.n_accepted},
                {"n_images", e.n_images},
                {"n_encoded", e.n_encoded},
                {"prefill_seconds", e.prefill_seconds},
                {"generation_seconds", e.generation_seconds},
                {"first_token_seconds", e.first_token_seconds}};
    }

    Json operator()(const HistoryCompacted& e) const {
        return {{"type", "compacted"},
                {"n_tokens_before", e.n_tokens_before},
                {"n_tokens_after", e.n_tokens_after}};
    }

    Json operator()(const TurnFinished& e) const {
        Json json = {{"type", "turn_finished"}, {"end", turnEndName(e.end)}};
        if (e.end == TurnEnd::Failed) {
            json["error"] = {{"code", errorCodeName(e.error.code)}, {"message", e.error.message}};
        }
        return json;
    }
};

}  // namespace

agent::Json eventToJson(const agent::Event& event) {
    Json json = std::visit(Writer{}, event.payload);
    json["turn"] = event.turn;
    return json;
}

}  // namespace belvedere::app
