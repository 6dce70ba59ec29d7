// SPDX-License-Identifier: Apache-2.0
#pragma once

// One session's conversation as rows: what was asked, the sources that stood in the context,
// thinking, answers, tool calls, the plan, notices, errors and the end of each turn. Made from
// agent events, live or replayed. GUI thread only.
//
// Invariants:
//  1. Rows are only appended or changed, never removed or moved, while a turn runs.
//  2. Between TurnStarted and TurnFinished exactly one turn is current; events of another turn are
//  dropped.
//  3. After TurnFinished no row is streaming, running or waiting.

#include <QAbstractListModel>
#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "agent/events.h"
#include "app/theme/markdown.h"

namespace belvedere::app {

enum class CallState { Running, Waiting, Done, Failed, Denied, Stopped };

struct TranscriptItem {
    enum class Kind { User, Context, Thinking, Answer, ToolCall, Plan, Notice, Error, End };
    Kind kind = Kind::Notice;
    agent::TurnId turn = 0;
    QString text;  ///< User, Notice, Error (detail), Thinking
    bool is_streaming = false;
    bool is_expanded = false;

    MarkdownDocument markdown;               ///< Answer
    std::vector<agent::Citation> citations;  ///< Answer, after they were checked
    bool citations_checked = false;

    QString title;   ///< ToolCall, Error
    QString advice;  ///< Error
    std::string call_id;
    std::string tool;
    agent::ToolKind tool_kind = agent::ToolKind::Read;
    CallState call_state = CallState::Running;
    QString output;  ///< ToolCall: live output, then its result
    QString diff;    ///< ToolCall: of an edit

    agent::Plan plan;
    std::shared_ptr<const agent::ContextChanged> context;

    agent::TurnEnd end = agent::TurnEnd::Done;  ///< End
    std::optional<agent::UsageUpdated> usage;   ///< End
};

/// What is happening between two rows: shown below the last one while a turn runs.
struct Activity {
    enum class Phase { Idle, Starting, Reading, Answering, RunningTool, Waiting };
    Phase phase = Phase::Idle;
    size_t n_done = 0;  ///< Reading: tokens
    size_t n_total = 0;
};

class TranscriptModel : public QAbstractListModel {
    Q_OBJECT

  public:
    enum Role { KindRole = Qt::UserRole, TurnRole };

    explicit TranscriptModel(QObject* parent = nullptr);

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    /// DisplayRole: the row as plain text, for screen readers and copying.
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

    [[nodiscard]] const TranscriptItem& item(int row) const {
        return *items_[static_cast<size_t>(row)];
    }

    [[nodiscard]] const Activity& activity() const { return activity_; }

    [[nodiscard]] bool isRunning() const { return current_turn_ != 0; }

    [[nodiscard]] agent::TurnId currentTurn() const { return current_turn_; }

    /// Permission questions that wait for an answer, oldest first.
    [[nodiscard]] const std::vector<agent::PermissionQuestion>& questions() const {
        return questions_;
    }

    /// The newest context and usage of this session.
    [[nodiscard]] const std::shared_ptr<const agent::ContextChanged>& context() const {
        return context_;
    }

    [[nodiscard]] const std::optional<agent::UsageUpdated>& usage() const { return usage_; }

    /// Applies events in order and tells the views once.
    void apply(const std::vector<agent::Event>& events);

    /// The user's text, shown before the agent has acknowledged the turn.
    void addPending(const QString& text);
    /// A turn that could not start: takes the pending row back and shows why.
    void failPending(const QString& title, const QString& detail, const QString& advice);

    void setExpanded(int row, bool is_expanded);

  Q_SIGNALS:
    void activityChanged();
    void questionsChanged();
    void contextChanged();
    void usageChanged();
    void runningChanged();

  private:
    void handle(const agent::Event& event);
    void on(const agent::TurnStarted& event);
    void on(const agent::TextDelta& event);
    void on(const agent::ThinkingDelta& event);
    void on(const agent::ToolCallStarted& event);
    void on(const agent::ToolCallOutput& event);
    void on(const agent::ToolCallFinished& event);
    void on(const agent::PermissionRequested& event);
    void on(const agent::PermissionResolved& event);
    void on(const agent::PlanChanged& event);
    void on(const agent::PrefillProgress& event);
    void on(const agent::IngestionProgress& event);
    void on(const agent::ContextChanged& event);
    void on(const agent::CitationsChecked& event);
    void on(const agent::Notice& event);
    void on(const agent::UsageUpdated& event);
    void on(const agent::HistoryCompacted& event);
    void on(const agent::TurnFinished& event);

    TranscriptItem& append(TranscriptItem::Kind kind);
    /// The last row where it is of this kind and of the current turn, else a new one.
    TranscriptItem& continued(TranscriptItem::Kind kind);
    void endStreaming();
    TranscriptItem* findCall(const std::string& call_id);
    TranscriptItem* findLast(TranscriptItem::Kind kind);
    void touch(const TranscriptItem* item);
    void setPhase(Activity::Phase phase);
    void removeQuestion(const std::string& call_id);

    std::vector<std::unique_ptr<TranscriptItem>> items_;
    std::vector<agent::PermissionQuestion> questions_;
    std::shared_ptr<const agent::ContextChanged> context_;
    std::optional<agent::UsageUpdated> usage_;
    std::optional<agent::UsageUpdated> turn_usage_;  ///< of the current turn
    Activity activity_;
    agent::TurnId current_turn_ = 0;
    bool has_pending_ = false;
    // What one apply() has changed.
    int first_touched_ = -1;
    int last_touched_ = -1;
    bool activity_touched_ = false;
    bool questions_touched_ = false;
    bool context_touched_ = false;
    bool usage_touched_ = false;
};

}  // namespace belvedere::app
