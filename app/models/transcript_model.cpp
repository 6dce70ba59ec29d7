// SPDX-License-Identifier: Apache-2.0
#include "app/models/transcript_model.h"

#include <algorithm>
#include <utility>

#include "app/bridge/error_text.h"
#include "app/bridge/text.h"
#include "app/models/transcript_text.h"

namespace belvedere::app {

namespace {

constexpr qsizetype kMaxShownOutput =
    400'000;  // characters of one tool call; the store keeps all of it

}  // namespace

TranscriptModel::TranscriptModel(QObject* parent) : QAbstractListModel(parent) {}

int TranscriptModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(items_.size());
}

QVariant TranscriptModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount()) {
        return {};
    }
    const TranscriptItem& row = item(index.row());
    switch (role) {
        case Qt::DisplayRole:
        case Qt::AccessibleTextRole:
            return transcriptText(row);
        case KindRole:
            return static_cast<int>(row.kind);
        case TurnRole:
            return static_cast<qulonglong>(row.turn);
        default:
            return {};
    }
}

void TranscriptModel::apply(const std::vector<agent::Event>& events) {
    const bool was_running = isRunning();
    first_touched_ = last_touched_ = -1;
    for (const agent::Event& event : events) {
        handle(event);
    }
    if (first_touched_ >= 0) {
        Q_EMIT dataChanged(index(first_touched_), index(last_touched_));
    }
    if (std::exchange(activity_touched_, false)) {
        Q_EMIT activityChanged();
    }
    if (std::exchange(questions_touched_, false)) {
        Q_EMIT questionsChanged();
    }
    if (std::exchange(context_touched_, false)) {
        Q_EMIT contextChanged();
    }
    if (std::exchange(usage_touched_, false)) {
        Q_EMIT usageChanged();
    }
    if (was_running != isRunning()) {
        Q_EMIT runningChanged();
    }
}

void TranscriptModel::handle(const agent::Event& event) {
    const bool starts = std::holds_alternative<agent::TurnStarted>(event.payload);
    if (starts) {
        current_turn_ = event.turn;
    } else if (event.turn != current_turn_) {
        return;  // late news of an old turn, or of no turn
    }
    std::visit([this](const auto& payload) { on(payload); }, event.payload);
}

TranscriptItem& TranscriptModel::append(TranscriptItem::Kind kind) {
    const int row = rowCount();
    beginInsertRows({}, row, row);
    auto item = std::make_unique<TranscriptItem>();
    item->kind = kind;
    item->turn = current_turn_;
    items_.push_back(std::move(item));
    endInsertRows();
    TranscriptItem& added = *items_.back();
    touch(&added);  // its contents follow
    return added;
}

TranscriptItem& TranscriptModel::continued(TranscriptItem::Kind kind) {
    if (!items_.empty() && items_.back()->kind == kind && items_.back()->turn == current_turn_ &&
        items_.back()->is_streaming) {
        touch(items_.back().get());
        return *items_.back();
    }
    endStreaming();
    TranscriptItem& item = append(kind);
    item.is_streaming = true;
    return item;
}

void TranscriptModel::endStreaming() {
    for (auto it = items_.rbegin(); it != items_.rend() && (*it)->turn == current_turn_; ++it) {
        if ((*it)->is_streaming) {
            (*it)->is_streaming = false;
            (*it)->is_expanded = false;
            touch(it->get());
        }
    }
}

void TranscriptModel::touch(const TranscriptItem* item) {
    // Nearly always one of the last rows.
    for (int row = rowCount() - 1; row >= 0; --row) {
        if (items_[static_cast<size_t>(row)].get() == item) {
            first_touched_ = first_touched_ < 0 ? row : std::min(first_touched_, row);
            last_touched_ = std::max(last_touched_, row);
            return;
        }
    }
}

void TranscriptModel::setPhase(Activity::Phase phase) {
    activity_ = {phase, 0, 0};
    activity_touched_ = true;
}

TranscriptItem* TranscriptModel::findCall(const std::string& call_id) {
    for (auto it = items_.rbegin(); it != items_.rend(); ++it) {
        if ((*it)->kind == TranscriptItem::Kind::ToolCall && (*it)->call_id == call_id) {
            return it->get();
        }
    }
    return nullptr;
}

TranscriptItem* TranscriptModel::findLast(TranscriptItem::Kind kind) {
    for (auto it = items_.rbegin(); it != items_.rend() && (*it)->turn == current_turn_; ++it) {
        if ((*it)->kind == kind) {
            return it->get();
        }
    }
    return nullptr;
}

void TranscriptModel::addPending(const QString& text) {
    first_touched_ = last_touched_ = -1;
    current_turn_ = 0;
    append(TranscriptItem::Kind::User).text = text;
    has_pending_ = true;
    const QModelIndex last = index(rowCount() - 1);
    Q_EMIT dataChanged(last, last);
    setPhase(Activity::Phase::Starting);
    activity_touched_ = false;
    Q_EMIT activityChanged();
}

void TranscriptModel::failPending(const QString& title,
                                  const QString& detail,
                                  const QString& advice) {
    has_pending_ = false;
    TranscriptItem& item = append(TranscriptItem::Kind::Error);
    item.title = title;
    item.text = detail;
    item.advice = advice;
    const QModelIndex last = index(rowCount() - 1);
    Q_EMIT dataChanged(last, last);
    activity_ = {};
    Q_EMIT activityChanged();
}

void TranscriptModel::setExpanded(int row, bool is_expanded) {
    items_[static_cast<size_t>(row)]->is_expanded = is_expanded;
    Q_EMIT dataChanged(index(row), index(row));
}

void TranscriptModel::on(const agent::TurnStarted& event) {
    if (std::exchange(has_pending_, false)) {
        items_.back()->turn = current_turn_;
    } else {
        append(TranscriptItem::Kind::User).text = qstring(event.user_text);
    }
    setPhase(Activity::Phase::Starting);
}

void TranscriptModel::on(const agent::TextDelta& event) {
    continued(TranscriptItem::Kind::Answer).markdown.append(event.text);
    if (activity_.phase != Activity::Phase::Answering) {
        setPhase(Activity::Phase::Answering);
    }
}

void TranscriptModel::on(const agent::ThinkingDelta& event) {
    TranscriptItem& item = continued(TranscriptItem::Kind::Thinking);
    item.text += qstring(event.text);
    if (activity_.phase != Activity::Phase::Answering) {
        setPhase(Activity::Phase::Answering);
    }
}

void TranscriptModel::on(const agent::ToolCallStarted& event) {
    endStreaming();
    TranscriptItem* item = findCall(event.call.id);  // it may have asked before it started
    if (item == nullptr) {
        item = &append(TranscriptItem::Kind::ToolCall);
    }
    item->call_id = event.call.id;
    item->tool = event.call.name;
    item->title = qstring(event.title);
    item->tool_kind = event.kind;
    item->call_state = CallState::Running;
    touch(item);
    setPhase(Activity::Phase::RunningTool);
}

void TranscriptModel::on(const agent::ToolCallOutput& event) {
    if (TranscriptItem* item = findCall(event.call_id);
        item != nullptr && item->output.size() < kMaxShownOutput) {
        item->output += qstring(event.text);
        touch(item);
    }
}

void TranscriptModel::on(const agent::ToolCallFinished& event) {
    TranscriptItem* item = findCall(event.call_id);
    if (item == nullptr) {
        return;
    }
    item->output = qstring(event.text).left(kMaxShownOutput);
    if (event.data.is_object() && event.data.contains("diff") && event.data["diff"].is_string()) {
        item->diff = qstring(event.data["diff"].get<std::string>());
    }
    if (item->call_state != CallState::Denied) {
        item->call_state = event.is_error ? CallState::Failed : CallState::Done;
    }
    touch(item);
    setPhase(Activity::Phase::Starting);
}

void TranscriptModel::on(const agent::PermissionRequested& event) {
    endStreaming();
    const agent::PermissionQuestion& question = event.question;
    TranscriptItem* item = findCall(question.call_id);
    if (item == nullptr) {
        item = &append(TranscriptItem::Kind::ToolCall);
        item->call_id = question.call_id;
        item->tool = question.tool;
        item->title = qstring(question.title);
        item->tool_kind = question.kind;
    }
    item->call_state = CallState::Waiting;
    touch(item);
    questions_.push_back(question);
    questions_touched_ = true;
    setPhase(Activity::Phase::Waiting);
}

void TranscriptModel::removeQuestion(const std::string& call_id) {
    std::erase_if(questions_, [&](const auto& question) { return question.call_id == call_id; });
    questions_touched_ = true;
}

void TranscriptModel::on(const agent::PermissionResolved& event) {
    removeQuestion(event.call_id);
    if (TranscriptItem* item = findCall(event.call_id)) {
        item->call_state = event.is_allowed ? CallState::Running : CallState::Denied;
        touch(item);
    }
    setPhase(event.is_allowed ? Activity::Phase::RunningTool : Activity::Phase::Starting);
}

void TranscriptModel::on(const agent::PlanChanged& event) {
    TranscriptItem* item = findLast(TranscriptItem::Kind::Plan);
    if (item == nullptr) {
        endStreaming();
        item = &append(TranscriptItem::Kind::Plan);
        item->is_expanded = true;
    }
    item->plan = event.plan;
    touch(item);
}

void TranscriptModel::on(const agent::PrefillProgress& event) {
    activity_ = {Activity::Phase::Reading, event.n_done, event.n_total};
    activity_touched_ = true;
}

void TranscriptModel::on(const agent::IngestionProgress& /*event*/) {}

void TranscriptModel::on(const agent::ContextChanged& event) {
    context_ = std::make_shared<const agent::ContextChanged>(event);
    context_touched_ = true;
    if (event.pieces.empty()) {
        return;
    }
    TranscriptItem* item = findLast(TranscriptItem::Kind::Context);
    if (item == nullptr) {
        item = &append(TranscriptItem::Kind::Context);
    }
    item->context = context_;
    touch(item);
}

void TranscriptModel::on(const agent::CitationsChecked& event) {
    if (TranscriptItem* item = findLast(TranscriptItem::Kind::Answer)) {
        item->citations = event.citations;
        item->citations_checked = true;
        touch(item);
    }
}

void TranscriptModel::on(const agent::Notice& event) {
    append(TranscriptItem::Kind::Notice).text = sentence(event.text);
}

void TranscriptModel::on(const agent::UsageUpdated& event) {
    usage_ = event;
    turn_usage_ = event;
    usage_touched_ = true;
}

void TranscriptModel::on(const agent::HistoryCompacted& event) {
    append(TranscriptItem::Kind::Notice).text =
        tr("Older messages were replaced by a summary: %1 tokens became %2.")
            .arg(countText(event.n_tokens_before), countText(event.n_tokens_after));
}

void TranscriptModel::on(const agent::TurnFinished& event) {
    endStreaming();
    for (auto it = items_.rbegin(); it != items_.rend() && (*it)->turn == current_turn_; ++it) {
        CallState& state = (*it)->call_state;
        if ((*it)->kind == TranscriptItem::Kind::ToolCall &&
            (state == CallState::Running || state == CallState::Waiting)) {
            state = CallState::Stopped;
            touch(it->get());
        }
    }
    if (event.end == agent::TurnEnd::Failed && event.error.code != ErrorCode::Cancelled) {
        const ErrorText text = errorText(event.error, tr("The answer could not be finished"));
        TranscriptItem& item = append(TranscriptItem::Kind::Error);
        item.title = text.title;
        item.text = text.detail;
        item.advice = text.advice;
    }
    TranscriptItem& item = append(TranscriptItem::Kind::End);
    item.end = event.end;
    item.usage = std::exchange(turn_usage_, std::nullopt);
    if (!questions_.empty()) {
        questions_.clear();
        questions_touched_ = true;
    }
    current_turn_ = 0;
    setPhase(Activity::Phase::Idle);
}

}  // namespace belvedere::app
