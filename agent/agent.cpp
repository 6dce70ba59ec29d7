// SPDX-License-Identifier: Apache-2.0
//
// Owns the sessions in use and a thread for each running turn. Locks: mutex_ guards what is shared;
// it is never held while the store, the sink or a stop callback runs. A session's Conversation
// belongs to its running turn.
#include "agent/agent.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "agent/conversation.h"
#include "agent/event_log.h"
#include "agent/permission_desk.h"
#include "agent/turn.h"
#include "kernels/base/log.h"

namespace belvedere::agent {

namespace {

class LocalAgent : public Agent {
  public:
    LocalAgent(AgentConfig config, SessionStore& store, EventSink& sink)
        : store_(store), sink_(sink), config_(std::move(config)) {}

    ~LocalAgent() override;

    void setModel(std::shared_ptr<LanguageModel> model) override;
    void attach(const std::string& session_id,
                std::shared_ptr<ContextSource> source,
                std::shared_ptr<ToolRegistry> tools) override;
    Result<TurnId> startTurn(const TurnRequest& request) override;
    void cancel(TurnId turn) override;

    bool answerPermission(const std::string& call_id, PermissionAnswer answer) override {
        return desk_.answer(call_id, answer);
    }

    void waitForTurn(TurnId turn) override;
    [[nodiscard]] bool isRunning(const std::string& session_id) const override;
    void setConfig(const AgentConfig& config) override;

    [[nodiscard]] SessionStore& store() override { return store_; }

  private:
    struct Session {
        std::shared_ptr<ContextSource> source;
        std::shared_ptr<ToolRegistry> tools;
        std::unique_ptr<Conversation> conversation;  ///< nullptr: not read from the log yet
        std::vector<PermissionRule> rules;           ///< granted for the session
        bool is_busy = false;
    };

    struct Running {
        std::stop_source stop;
        bool has_ended = false;
        std::jthread thread;  // last: joins before the rest dies
    };

    Result<TurnInput> claim(const TurnRequest& request, Session*& session);
    Result<TurnId> begin(const TurnRequest& request, Session& session, TurnInput& input);
    void run(TurnInput input, Session& session, std::stop_token stop);
    void release(Session& session);
    void joinEnded();

    SessionStore& store_;
    EventSink& sink_;
    PermissionDesk desk_;
    mutable std::mutex mutex_;
    std::condition_variable ended_;
    AgentConfig config_;
    std::shared_ptr<LanguageModel> model_;
    std::map<std::string, Session>
        sessions_;                       ///< nodes stay where they are: a turn keeps a reference
    std::map<TurnId, Running> running_;  // last: joins before the state above dies
};

LocalAgent::~LocalAgent() {
    std::vector<std::stop_source> stops;
    std::map<TurnId, Running> running;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, turn] : running_) {
            stops.push_back(turn.stop);
        }
    }
    for (std::stop_source& stop : stops) {
        stop.request_stop();
    }
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] {
        for (const auto& [id, turn] : running_) {
            if (!turn.has_ended) {
                return false;
            }
        }
        return true;
    });
    running.swap(running_);
}

void LocalAgent::setModel(std::shared_ptr<LanguageModel> model) {
    const std::lock_guard lock(mutex_);
    model_.swap(model);  // the old one dies after the lock is released, if nobody uses it
}

void LocalAgent::attach(const std::string& session_id,
                        std::shared_ptr<ContextSource> source,
                        std::shared_ptr<ToolRegistry> tools) {
    const std::lock_guard lock(mutex_);
    Session& session = sessions_[session_id];
    session.source.swap(source);
    session.tools.swap(tools);
}

void LocalAgent::setConfig(const AgentConfig& config) {
    const std::lock_guard lock(mutex_);
    config_ = config;
}

bool LocalAgent::isRunning(const std::string& session_id) const {
    const std::lock_guard lock(mutex_);
    const auto it = sessions_.find(session_id);
    return it != sessions_.end() && it->second.is_busy;
}

/// Takes the session for a new turn, with everything the turn uses as it is now.
Result<TurnInput> LocalAgent::claim(const TurnRequest& request, Session*& session) {
    if (request.text.find_first_not_of(" \t\r\n") == std::string::npos) {
        return fail(ErrorCode::InvalidArgument, "the message is empty");
    }
    const std::lock_guard lock(mutex_);
    if (model_ == nullptr) {
        return fail(ErrorCode::InvalidArgument, "no model is loaded: choose one first");
    }
    session = &sessions_[request.session_id];
    if (session->is_busy) {
        return fail(ErrorCode::InvalidArgument,
                    "this session is still answering: wait or stop it first");
    }
    session->is_busy = true;
    TurnInput input;
    input.request = request;
    input.config = config_;
    input.model = model_;
    input.source = session->source;
    input.tools = session->tools;
    return input;
}

void LocalAgent::release(Session& session) {
    const std::lock_guard lock(mutex_);
    session.is_busy = false;
}

Result<TurnId> LocalAgent::begin(const TurnRequest& request, Session& session, TurnInput& input) {
    Json extra = {{"mode", request.mode == TurnMode::Ask ? "ask" : "work"},
                  {"model", input.model->description().name}};
    if (!request.attachments.empty()) {
        extra["attachments"] = attachmentsToJson(request.attachments);
    }
    const TurnId id = BV_TRY(store_.beginTurn(request.session_id, request.text, extra));
    if (session.conversation == nullptr) {
        // beginTurn has closed what a crash left open, so the log is whole; the new message is its
        // last event.
        StoredSession stored = BV_TRY(store_.loadSession(request.session_id));
        std::erase_if(stored.events, [id](const StoredEvent& event) { return event.turn == id; });
        session.conversation = std::make_unique<Conversation>(conversationFromLog(stored));
    }
    session.conversation->beginTurn(request.text, request.attachments);
    return id;
}

Result<TurnId> LocalAgent::startTurn(const TurnRequest& request) {
    joinEnded();
    Session* session = nullptr;
    TurnInput input = BV_TRY(claim(request, session));
    const Result<TurnId> id = begin(request, *session, input);
    if (!id.has_value()) {
        release(*session);
        return id;
    }
    input.id = *id;
    BV_LOG(LogLevel::Info, "agent", "turn started id={} session={}", *id, request.session_id);
    const std::lock_guard lock(mutex_);
    Running& running = running_[*id];
    const std::stop_token stop = running.stop.get_token();
    running.thread = std::jthread([this, session, stop, turn = std::move(input)]() mutable {
        run(std::move(turn), *session, stop);
    });
    return *id;
}

/// The thread of a turn.
void LocalAgent::run(TurnInput input, Session& session, std::stop_token stop) {
    const TurnId id = input.id;
    TurnFinished finished;
    {
        Turn turn(std::move(input), {store_, sink_, desk_, *session.conversation, session.rules},
                  std::move(stop));
        finished = turn.run();
    }
    BV_LOG(LogLevel::Info, "agent", "turn finished id={} end={}", id,
           static_cast<int>(finished.end));
    release(
        session);  // before the last event, so that a front end may answer it with the next turn
    sink_.post({id, std::move(finished)});
    const std::lock_guard lock(mutex_);
    running_[id].has_ended = true;
    ended_.notify_all();
}

void LocalAgent::cancel(TurnId turn) {
    std::stop_source stop(std::nostopstate);
    {
        const std::lock_guard lock(mutex_);
        const auto it = running_.find(turn);
        if (it == running_.end()) {
            return;
        }
        stop = it->second.stop;
    }
    stop.request_stop();  // callbacks run here, so without the lock
}

void LocalAgent::waitForTurn(TurnId turn) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] {
        const auto it = running_.find(turn);
        return it == running_.end() || it->second.has_ended;
    });
}

/// Threads of turns that are over.
void LocalAgent::joinEnded() {
    std::map<TurnId, Running> ended;
    {
        const std::lock_guard lock(mutex_);
        for (auto it = running_.begin(); it != running_.end();) {
            auto next = std::next(it);
            if (it->second.has_ended) {
                ended.insert(running_.extract(it));
            }
            it = next;
        }
    }
}

}  // namespace

std::unique_ptr<Agent> Agent::create(AgentConfig config, SessionStore& store, EventSink& sink) {
    return std::make_unique<LocalAgent>(std::move(config), store, sink);
}

}  // namespace belvedere::agent
