// SPDX-License-Identifier: Apache-2.0
#pragma once

// One turn: from the user's message to the last event. The state machine is drawn at the top of
// turn.cpp. Runs on a thread of its own; everything it refers to outlives it.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/conversation.h"
#include "agent/permission_desk.h"
#include "agent/turn_stream.h"
#include "agent/update_plan.h"

namespace belvedere::agent {

struct TurnInput {
    TurnId id = 0;
    TurnRequest request;
    AgentConfig config;  ///< permissions include those granted for the session
    std::shared_ptr<LanguageModel> model;
    std::shared_ptr<ContextSource> source;  ///< nullptr: none attached
    std::shared_ptr<ToolRegistry> tools;    ///< nullptr: none
};

struct TurnServices {
    SessionStore& store;
    EventSink& sink;
    PermissionDesk& desk;
    Conversation& conversation;  ///< of the session; this turn's alone while it runs
    std::vector<PermissionRule>& session_rules;  ///< likewise
};

class Turn {
  public:
    Turn(TurnInput input, TurnServices services, std::stop_token stop);

    /// Posts every event but the last, which it returns: the caller posts it once the session is
    /// free again.
    TurnFinished run();

  private:
    enum class State { Building, Streaming, Deciding, RunningTool, Finished };

    struct PendingCall {
        ToolCall call;
        std::string malformed;  ///< why; empty: it is not
    };

    State step(State state);
    State build();
    State buildAsk();
    State buildChat();
    State answerAbsent(const std::vector<std::string>& names);
    State stream();
    State decide();
    State runTool();

    State afterReply(const ModelReply& reply);
    void recordReply(const TurnStream& reply, std::vector<ParsedCall> calls, bool is_complete);
    void checkCitations(const std::string& answer);
    State ask(Tool& tool, std::string reason, State after_denial);
    bool isLoop(const ToolCall& call);
    void grantForSession(const Tool& tool, const std::string& subject);
    State answerCall(ToolCallFinished result, const std::string& image_png = {});
    State refuseCall(const std::string& reason);
    void setPlan(const Plan& plan);
    void cancelOpenCalls();

    State fail(Error error);
    void post(EventPayload payload);
    void notice(std::string text);
    Result<void> record(const char* type, const Json& payload);  ///< on disk when it returns
    void postContext(const PromptCost& cost,
                     const AskContext* ask,
                     bool replaces_old,
                     bool with_pieces);
    [[nodiscard]] std::vector<ToolSpec> toolSpecs();
    [[nodiscard]] Tool* findTool(const std::string& name);

    [[nodiscard]] bool hasSources() const {
        return input_.request.mode == TurnMode::Ask && input_.source != nullptr;
    }

    TurnInput input_;
    TurnServices services_;
    std::stop_token stop_;
    UpdatePlanTool update_plan_;

    ModelRequest request_;  ///< made by Building, used by Streaming
    ParserOptions parser_options_;
    size_t n_prompt_tokens_ = 0;
    size_t n_rounds_ = 0;                    ///< model calls so far
    size_t n_calls_ = 0;                     ///< for ids
    std::deque<PendingCall> pending_;        ///< the first is being decided or run
    std::map<std::string, size_t> repeats_;  ///< equal calls since something last changed
    std::optional<Error> store_error_;       ///< met where no state could be returned
    TurnFinished finished_;
};

}  // namespace belvedere::agent
