// SPDX-License-Identifier: Apache-2.0
#pragma once

// The door of agent/: start a turn, cancel it, answer a permission request, list sessions. Methods
// may be called from any thread and return at once, apart from the store's short transactions. News
// comes through the EventSink.

#include <memory>
#include <string>
#include <vector>

#include "agent/context_source.h"
#include "agent/events.h"
#include "agent/model/language_model.h"
#include "agent/permission.h"
#include "agent/store/session_store.h"
#include "agent/tool.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

/// Ask: answer from the attached sources, with citations, no tools. Work: the model-tool loop.
enum class TurnMode { Ask, Work };

struct AgentConfig {
    size_t max_rounds = 25;  ///< model calls in one turn
    size_t source_budget_tokens =
        8192;  ///< --budget: sources put into the prompt when the repository does not fit
    size_t answer_reserve_tokens = 1024;
    GenerationOptions generation;
    PermissionPolicy permissions;
    std::string system_prompt;  ///< for Work turns and for chat without sources; resources/prompts/
};

struct TurnRequest {
    std::string session_id;
    std::string text;
    TurnMode mode = TurnMode::Ask;
    std::vector<Part> attachments = {};  ///< images and videos by their paths
};

class Agent {
  public:
    /// The sink and the store must outlive the agent.
    static std::unique_ptr<Agent> create(AgentConfig config, SessionStore& store, EventSink& sink);
    /// Cancels and joins every turn.
    virtual ~Agent() = default;

    /// Replaces the model for turns started from now on; nullptr: none loaded.
    virtual void setModel(std::shared_ptr<LanguageModel> model) = 0;
    /// What questions in this session are answered from; nullptr detaches. The tools act in the
    /// same folder.
    virtual void attach(const std::string& session_id,
                        std::shared_ptr<ContextSource> source,
                        std::shared_ptr<ToolRegistry> tools) = 0;

    /// Writes the user's message to disk, then runs the turn on a thread of its own.
    /// Errors: InvalidArgument (empty text, no model, a turn of this session is running); those of
    /// the store.
    virtual Result<TurnId> startTurn(const TurnRequest& request) = 0;
    virtual void cancel(TurnId turn) = 0;
    /// False where no such question is open (answered, cancelled).
    virtual bool answerPermission(const std::string& call_id, PermissionAnswer answer) = 0;
    virtual void waitForTurn(TurnId turn) = 0;
    [[nodiscard]] virtual bool isRunning(const std::string& session_id) const = 0;

    virtual void setConfig(const AgentConfig& config) = 0;
    [[nodiscard]] virtual SessionStore& store() = 0;
};

/// The same events that a live turn posts, rebuilt from the log: a front end shows a reopened
/// session with them. A turn that never ended closes with TurnEnd::Interrupted after the text it
/// had streamed.
[[nodiscard]] std::vector<Event> replay(const StoredSession& session);

}  // namespace belvedere::agent
