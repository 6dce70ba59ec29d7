// SPDX-License-Identifier: Apache-2.0
#pragma once

// Between the window and the agent: which session is shown, what the user does in it, and the
// agent's events sorted to the transcript of their session. Store calls run on a thread of their
// own. GUI thread only.
//
// Words: the shown session has an id once its first message is sent; before that it is new and
// exists nowhere. A transcript stays in memory while its session is shown or a turn runs in it.

#include <QObject>
#include <QSet>
#include <QString>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "agent/agent.h"
#include "app/bridge/event_bridge.h"
#include "app/bridge/repository_service.h"
#include "app/bridge/task_queue.h"
#include "app/models/session_list_model.h"
#include "app/models/transcript_model.h"

namespace belvedere::app {

class AgentController : public QObject {
    Q_OBJECT

  public:
    /// Agent, store and bridge outlive the controller.
    AgentController(agent::Agent& agent,
                    agent::SessionStore& store,
                    EventBridge& bridge,
                    QObject* parent = nullptr);
    ~AgentController() override;

    [[nodiscard]] SessionListModel* sessions() { return &sessions_; }

    [[nodiscard]] TranscriptModel* transcript() const { return transcript_; }

    /// Empty: a new session.
    [[nodiscard]] const QString& sessionId() const { return session_id_; }

    [[nodiscard]] QString sessionTitle() const;

    /// A model is loaded and named so: for new sessions.
    void setModel(std::shared_ptr<agent::LanguageModel> model);

    void setConfig(const agent::AgentConfig& config) { agent_.setConfig(config); }

    /// The folder of the shown session; its path is kept with the session.
    void setFolder(const QString& path, const AttachedFolder& folder);

    void newSession();
    void openSession(const QString& id);
    void renameSession(const QString& id, const QString& title);
    /// Hidden at once; deleted for good by commitDeletes(), brought back by undoDelete().
    void deleteSession(const QString& id);
    void undoDelete();
    void commitDeletes();
    void search(const QString& query);
    void refreshSessions();

    void send(const QString& text, agent::TurnMode mode);
    void stop();
    void answer(const std::string& call_id, agent::PermissionAnswer answer);

    /// Waits for the store's thread: at the end of the program, and in tests.
    void drain() { store_queue_.drain(); }

  Q_SIGNALS:
    /// Another session is shown; its stored folder, empty where it has none.
    void sessionOpened(const QString& id, const QString& repository);
    void transcriptChanged();
    void titleChanged();
    void sessionDeleted(const QString& title);
    /// A session that is not shown needs an answer.
    void attentionNeeded(const QString& id, const QString& title);
    /// The list of sessions is as the store has it.
    void sessionsListed();
    void storeFailed(const belvedere::Error& error, const QString& what);

  private:
    void onEvents(const std::vector<agent::Event>& events);
    TranscriptModel& transcriptOf(const std::string& session_id);
    void show(TranscriptModel* transcript);
    void tellAttention(const TranscriptModel& transcript);
    void startTurn(const std::string& session_id, const QString& text, agent::TurnMode mode);
    void updateRunning();
    void forgetIdle();

    agent::Agent& agent_;
    agent::SessionStore& store_;
    SessionListModel sessions_;
    QString session_id_;
    QString folder_path_;
    AttachedFolder folder_;
    std::shared_ptr<agent::LanguageModel> model_;  // shared with the agent
    std::map<std::string, std::unique_ptr<TranscriptModel>>
        transcripts_;  ///< by session; "" is the new one
    std::map<agent::TurnId, std::string> sessions_of_turns_;
    TranscriptModel* transcript_ = nullptr;
    QSet<QString> deleting_;
    uint64_t search_run_ = 0;
    uint64_t open_run_ = 0;
    TaskQueue store_queue_;  // last: joins before the state above dies
};

}  // namespace belvedere::app
