// SPDX-License-Identifier: Apache-2.0
//
// The log back into the events of a live turn.
#include <memory>
#include <string>
#include <utility>

#include "agent/agent.h"
#include "agent/event_log.h"

namespace belvedere::agent {

namespace {

class Replayer {
  public:
    explicit Replayer(const StoredSession& session) : session_(session) {}

    std::vector<Event> run() {
        for (const StoredEvent& event : session_.events) {
            if (event.type == "user_message") {
                closeTurn();
                open_turn_ = event.turn;
                post(TurnStarted{session_.summary.id, textOf(event.payload)});
            } else {
                replay(event);
            }
        }
        closeTurn();
        return std::move(events_);
    }

  private:
    void post(EventPayload payload) { events_.push_back({open_turn_, std::move(payload)}); }

    void replay(const StoredEvent& event) {
        const Json& payload = event.payload;
        if (event.type == "assistant_message") {
            const Message message = assistantFromJson(payload);
            if (!message.reasoning.empty()) {
                post(ThinkingDelta{message.reasoning});
            }
            if (const std::string text = plainText(message); !text.empty()) {
                post(TextDelta{text});
            }
        } else if (event.type == "context") {
            replayContext(payload);
        } else if (event.type == "tool_call") {
            post(toolCallFromJson(payload));
        } else if (event.type == "tool_result") {
            post(toolResultFromJson(payload));
        } else if (event.type == "permission") {
            replayPermission(payload);
        } else if (event.type == "plan") {
            Result<Plan> plan = planFromJson(payload);
            if (plan.has_value()) {
                post(PlanChanged{std::move(*plan)});
            }
        } else if (event.type == "citations") {
            post(citationsFromJson(payload));
        } else if (event.type == "usage") {
            post(usageFromJson(payload));
        } else if (event.type == "notice") {
            post(Notice{textOf(payload)});
        } else if (event.type == "turn_finished") {
            post(turnFinishedFromJson(payload));
            open_turn_ = 0;
        }
    }

    void replayContext(const Json& payload) {
        ContextChanged context = contextFromJson(payload);
        if (contextHasPieces(payload)) {
            pieces_ = context.pieces;
        } else if (contextHasSources(payload)) {
            context.pieces = pieces_;
        }
        post(std::move(context));
    }

    void replayPermission(const Json& payload) {
        const auto question = payload.find("question");
        if (question != payload.end() && question->is_object()) {
            const PermissionQuestion read = questionFromJson(*question);
            post(PermissionRequested{read});
            const auto allowed = payload.find("is_allowed");
            post(PermissionResolved{read.call_id, allowed != payload.end() && *allowed == true});
        }
    }

    /// A turn without its last event: the program died in it.
    void closeTurn() {
        if (open_turn_ == 0) {
            return;
        }
        if (session_.draft_turn == open_turn_ && !session_.draft.empty()) {
            post(TextDelta{session_.draft});
        }
        post(TurnFinished{TurnEnd::Interrupted, {}});
        open_turn_ = 0;
    }

    const StoredSession& session_;
    std::vector<Event> events_;
    std::vector<std::shared_ptr<const SourcePiece>>
        pieces_;  ///< of the last context that brought some
    TurnId open_turn_ = 0;
};

}  // namespace

std::vector<Event> replay(const StoredSession& session) {
    return Replayer(session).run();
}

}  // namespace belvedere::agent
