// SPDX-License-Identifier: Apache-2.0
#include "app/bridge/agent_controller.h"

#include <QDateTime>
#include <utility>

#include "app/bridge/error_text.h"
#include "app/bridge/text.h"

namespace belvedere::app {

namespace {

constexpr size_t kMaxHits = 60;
constexpr size_t kMaxIdleTranscripts = 6;

}  // namespace

AgentController::AgentController(agent::Agent& agent,
                                 agent::SessionStore& store,
                                 EventBridge& bridge,
                                 QObject* parent)
    : QObject(parent), agent_(agent), store_(store) {
    connect(&bridge, &EventBridge::arrived, this, &AgentController::onEvents);
    show(&transcriptOf({}));
}

AgentController::~AgentController() {
    commitDeletes();
    store_queue_.drain();
}

QString AgentController::sessionTitle() const {
    const agent::SessionSummary* session = sessions_.find(session_id_);
    return session == nullptr || session->title.empty() ? tr("New session")
                                                        : qstring(session->title);
}

TranscriptModel& AgentController::transcriptOf(const std::string& session_id) {
    auto& transcript = transcripts_[session_id];
    if (transcript == nullptr) {
        transcript = std::make_unique<TranscriptModel>();
        connect(transcript.get(), &TranscriptModel::runningChanged, this,
                &AgentController::updateRunning);
        connect(transcript.get(), &TranscriptModel::questionsChanged, this,
                [this, changed = transcript.get()] {
                    if (changed != transcript_ && !changed->questions().empty()) {
                        tellAttention(*changed);
                    }
                });
    }
    return *transcript;
}

void AgentController::tellAttention(const TranscriptModel& transcript) {
    // By the model: a session gets its id after its transcript.
    for (const auto& [session_id, known] : transcripts_) {
        if (known.get() == &transcript) {
            const QString id = qstring(session_id);
            const agent::SessionSummary* session = sessions_.find(id);
            Q_EMIT attentionNeeded(id, session == nullptr ? QString() : qstring(session->title));
        }
    }
}

void AgentController::show(TranscriptModel* transcript) {
    transcript_ = transcript;
    Q_EMIT transcriptChanged();
    forgetIdle();
}

void AgentController::forgetIdle() {
    for (auto it = transcripts_.begin();
         it != transcripts_.end() && transcripts_.size() > kMaxIdleTranscripts;) {
        const bool is_idle =
            it->second.get() != transcript_ && !it->second->isRunning() && !it->first.empty();
        it = is_idle ? transcripts_.erase(it) : std::next(it);
    }
}

void AgentController::onEvents(const std::vector<agent::Event>& events) {
    std::map<std::string, std::vector<agent::Event>> by_session;
    bool has_finished = false;
    for (const agent::Event& event : events) {
        if (const auto* started = std::get_if<agent::TurnStarted>(&event.payload)) {
            sessions_of_turns_[event.turn] = started->session_id;
        }
        const auto session = sessions_of_turns_.find(event.turn);
        if (session == sessions_of_turns_.end()) {
            continue;
        }
        by_session[session->second].push_back(event);
        if (std::holds_alternative<agent::TurnFinished>(event.payload)) {
            sessions_of_turns_.erase(session);
            has_finished = true;
        }
    }
    for (const auto& [session_id, batch] : by_session) {
        // A session that is neither shown nor in memory is read from the store when it is opened.
        if (const auto transcript = transcripts_.find(session_id);
            transcript != transcripts_.end()) {
            transcript->second->apply(batch);
        }
    }
    if (has_finished) {
        refreshSessions();
    }
}

void AgentController::updateRunning() {
    QSet<QString> running;
    for (const auto& [session_id, transcript] : transcripts_) {
        if (transcript->isRunning()) {
            running.insert(qstring(session_id));
        }
    }
    sessions_.setRunning(running);
}

void AgentController::setModel(std::shared_ptr<agent::LanguageModel> model) {
    model_ = std::move(model);
    agent_.setModel(model_);
}

void AgentController::setFolder(const QString& path, const AttachedFolder& folder) {
    folder_path_ = path;
    folder_ = folder;
    if (session_id_.isEmpty()) {
        return;  // attached when the session gets its id
    }
    const std::string id = utf8(session_id_);
    agent_.attach(id, folder.repository, folder.tools);
    const agent::SessionSummary* session = sessions_.find(session_id_);
    if (session != nullptr && session->repository != utf8(path)) {
        store_queue_.post([&store = store_, id, repository = utf8(path)](std::stop_token) {
            static_cast<void>(
                store.setRepository(id, repository));  // shown with the next refresh if it failed
        });
        refreshSessions();
    }
}

void AgentController::newSession() {
    ++open_run_;
    session_id_.clear();
    const auto before = transcripts_.extract(std::string());  // the views let go of it first
    show(&transcriptOf({}));
    Q_EMIT titleChanged();
    Q_EMIT sessionOpened({}, folder_path_);
}

void AgentController::openSession(const QString& id) {
    if (id == session_id_ && !id.isEmpty()) {
        return;
    }
    const uint64_t run = ++open_run_;
    const std::string key = utf8(id);
    if (const auto known = transcripts_.find(key); known != transcripts_.end() && !key.empty()) {
        session_id_ = id;
        show(known->second.get());
        Q_EMIT titleChanged();
        const agent::SessionSummary* session = sessions_.find(id);
        Q_EMIT sessionOpened(id, session == nullptr ? QString() : qstring(session->repository));
        return;
    }
    runTask(
        store_queue_, this,
        [&store = store_, key](std::stop_token)
            -> Result<std::pair<agent::SessionSummary, std::vector<agent::Event>>> {
            agent::StoredSession stored = BV_TRY(store.loadSession(key));
            std::vector<agent::Event> events = agent::replay(stored);
            return std::pair{std::move(stored.summary), std::move(events)};
        },
        [this, run, id,
         key](Result<std::pair<agent::SessionSummary, std::vector<agent::Event>>> result) {
            if (run != open_run_) {
                return;
            }
            if (!result) {
                Q_EMIT storeFailed(result.error(), tr("The session could not be opened"));
                return;
            }
            session_id_ = id;
            TranscriptModel& transcript = transcriptOf(key);
            transcript.apply(result->second);
            show(&transcript);
            Q_EMIT titleChanged();
            Q_EMIT sessionOpened(id, qstring(result->first.repository));
        });
}

void AgentController::refreshSessions() {
    runTask(
        store_queue_, this, [&store = store_](std::stop_token) { return store.listSessions(); },
        [this](Result<std::vector<agent::SessionSummary>> result) {
            if (!result) {
                Q_EMIT storeFailed(result.error(), tr("The sessions could not be listed"));
                return;
            }
            sessions_.setSessions(std::move(*result), QDateTime::currentDateTime());
            Q_EMIT sessionsListed();
            Q_EMIT titleChanged();
        });
}

void AgentController::renameSession(const QString& id, const QString& title) {
    runTask(
        store_queue_, this,
        [&store = store_, key = utf8(id), name = utf8(title.trimmed())](std::stop_token) {
            return store.renameSession(key, name);
        },
        [this](Result<void> result) {
            if (!result) {
                Q_EMIT storeFailed(result.error(), tr("The session could not be renamed"));
            }
            refreshSessions();
        });
}

void AgentController::deleteSession(const QString& id) {
    commitDeletes();  // one undo at a time
    const agent::SessionSummary* session = sessions_.find(id);
    if (session == nullptr) {
        return;
    }
    const QString title = qstring(session->title);
    deleting_.insert(id);
    sessions_.setHidden(deleting_);
    if (id == session_id_) {
        newSession();
    }
    Q_EMIT sessionDeleted(title);
}

void AgentController::undoDelete() {
    deleting_.clear();
    sessions_.setHidden({});
}

void AgentController::commitDeletes() {
    for (const QString& id : std::exchange(deleting_, {})) {
        const std::string key = utf8(id);
        if (const auto transcript = transcripts_.find(key); transcript != transcripts_.end()) {
            agent_.cancel(transcript->second->currentTurn());
            if (transcript->second.get() != transcript_) {
                transcripts_.erase(transcript);
            }
        }
        store_queue_.post([&store = store_, key](std::stop_token) {
            static_cast<void>(
                store.deleteSession(key));  // it comes back with the next list if it failed
        });
    }
    refreshSessions();
}

void AgentController::search(const QString& query) {
    const uint64_t run = ++search_run_;
    if (query.trimmed().isEmpty()) {
        sessions_.setHits(std::nullopt);
        return;
    }
    runTask(
        store_queue_, this,
        [&store = store_, text = utf8(query)](std::stop_token) {
            return store.search(text, kMaxHits);
        },
        [this, run](Result<std::vector<agent::SearchHit>> result) {
            if (run != search_run_) {
                return;
            }
            if (!result) {
                Q_EMIT storeFailed(result.error(), tr("The search failed"));
                return;
            }
            sessions_.setHits(std::move(*result));
        });
}

void AgentController::send(const QString& text, agent::TurnMode mode) {
    if (transcript_->isRunning() || text.trimmed().isEmpty()) {
        return;
    }
    transcript_->addPending(text);
    if (!session_id_.isEmpty()) {
        startTurn(utf8(session_id_), text, mode);
        return;
    }
    const uint64_t run = open_run_;
    const std::string model_name = model_ ? model_->description().name : std::string();
    runTask(
        store_queue_, this,
        [&store = store_, repository = utf8(folder_path_), model_name](std::stop_token) {
            return store.createSession(repository, model_name);
        },
        [this, run, text, mode](Result<agent::SessionSummary> result) {
            if (run != open_run_) {
                return;  // the user has gone elsewhere before it began
            }
            if (!result) {
                const ErrorText words =
                    errorText(result.error(), tr("The session could not be saved"));
                transcript_->failPending(words.title, words.detail, words.advice);
                return;
            }
            // The new session's transcript gets its id; the events that follow find it by that.
            auto node = transcripts_.extract(std::string());
            node.key() = result->id;
            transcripts_.insert(std::move(node));
            session_id_ = qstring(result->id);
            if (folder_.repository != nullptr) {
                agent_.attach(result->id, folder_.repository, folder_.tools);
            }
            Q_EMIT sessionOpened(session_id_, folder_path_);
            startTurn(result->id, text, mode);
            refreshSessions();  // after it in the queue: the title comes from the first message
        });
}

void AgentController::startTurn(const std::string& session_id,
                                const QString& text,
                                agent::TurnMode mode) {
    runTask(
        store_queue_, this,
        [&agent = agent_, request = agent::TurnRequest{session_id, utf8(text), mode}](
            std::stop_token) { return agent.startTurn(request); },
        [this, session_id](Result<agent::TurnId> result) {
            if (!result) {
                const ErrorText words = errorText(result.error(), tr("The message was not sent"));
                transcriptOf(session_id).failPending(words.title, words.detail, words.advice);
            }
        });
}

void AgentController::stop() {
    if (transcript_->isRunning()) {
        agent_.cancel(transcript_->currentTurn());
    }
}

void AgentController::answer(const std::string& call_id, agent::PermissionAnswer answer) {
    agent_.answerPermission(call_id, answer);
}

}  // namespace belvedere::app
