// SPDX-License-Identifier: Apache-2.0
#include "app/models/session_list_model.h"

#include <QFileInfo>
#include <QLocale>
#include <algorithm>

#include "app/bridge/text.h"

namespace belvedere::app {

namespace {

/// Hours and minutes: the short form of the C locale has seconds too.
QString clockFormat() {
    return QLocale().timeFormat(QLocale::ShortFormat).remove(QStringLiteral(":ss"));
}

}  // namespace

QString dayHeading(const QDate& day, const QDate& today) {
    const qint64 age = day.daysTo(today);
    if (age <= 0) {
        return SessionListModel::tr("Today");
    }
    if (age == 1) {
        return SessionListModel::tr("Yesterday");
    }
    if (age <= 7) {
        return SessionListModel::tr("Previous 7 days");
    }
    return QLocale().toString(day, QStringLiteral("MMMM yyyy"));
}

SessionListModel::SessionListModel(QObject* parent) : QAbstractListModel(parent) {}

int SessionListModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

QVariant SessionListModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount()) {
        return {};
    }
    const Row& row = rows_[static_cast<size_t>(index.row())];
    switch (role) {
        case Qt::DisplayRole:
        case Qt::EditRole:
            return row.title;
        case Qt::ToolTipRole:
            return row.id.isEmpty() ? QString() : row.title;
        case Qt::AccessibleTextRole:
            return row.id.isEmpty() ? row.title : tr("Session %1, %2").arg(row.title, row.detail);
        case IdRole:
            return row.id;
        case IsHeadingRole:
            return row.id.isEmpty();
        case DetailRole:
            return row.detail;
        case IsRunningRole:
            return running_.contains(row.id);
        case ExcerptRole:
            return row.excerpt;
        default:
            return {};
    }
}

Qt::ItemFlags SessionListModel::flags(const QModelIndex& index) const {
    if (!index.isValid() || rows_[static_cast<size_t>(index.row())].id.isEmpty()) {
        return Qt::NoItemFlags;
    }
    return Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsEditable;
}

bool SessionListModel::setData(const QModelIndex& index, const QVariant& value, int role) {
    const QString title = value.toString().simplified();
    if (role != Qt::EditRole || !index.isValid() || title.isEmpty()) {
        return false;
    }
    Row& row = rows_[static_cast<size_t>(index.row())];
    if (row.id.isEmpty() || row.title == title) {
        return false;
    }
    row.title = title;  // shown at once; the list that follows has it from the store
    Q_EMIT dataChanged(index, index);
    Q_EMIT renameRequested(row.id, title);
    return true;
}

void SessionListModel::setSessions(std::vector<agent::SessionSummary> sessions,
                                   const QDateTime& now) {
    sessions_ = std::move(sessions);
    now_ = now;
    rebuild();
}

void SessionListModel::setHits(std::optional<std::vector<agent::SearchHit>> hits) {
    hits_ = std::move(hits);
    rebuild();
}

void SessionListModel::setRunning(const QSet<QString>& ids) {
    running_ = ids;
    if (!rows_.empty()) {
        Q_EMIT dataChanged(index(0), index(rowCount() - 1), {IsRunningRole});
    }
}

void SessionListModel::setHidden(const QSet<QString>& ids) {
    hidden_ = ids;
    rebuild();
}

const agent::SessionSummary* SessionListModel::find(const QString& id) const {
    const std::string key = utf8(id);
    const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                    [&](const auto& session) { return session.id == key; });
    return found == sessions_.end() ? nullptr : &*found;
}

QModelIndex SessionListModel::indexOf(const QString& id) const {
    for (size_t row = 0; row < rows_.size(); ++row) {
        if (!id.isEmpty() && rows_[row].id == id) {
            return index(static_cast<int>(row));
        }
    }
    return {};
}

void SessionListModel::rebuild() {
    beginResetModel();
    rows_.clear();
    if (hits_) {
        rows_.push_back({{}, hits_->empty() ? tr("Nothing found") : tr("Found"), {}, {}});
        for (const agent::SearchHit& hit : *hits_) {
            if (!hidden_.contains(qstring(hit.session_id))) {
                rows_.push_back({qstring(hit.session_id),
                                 qstring(hit.session_title),
                                 {},
                                 qstring(hit.excerpt)});
            }
        }
        endResetModel();
        return;
    }
    QString heading;
    for (const agent::SessionSummary& session : sessions_) {
        const QString id = qstring(session.id);
        if (hidden_.contains(id)) {
            continue;
        }
        const QDateTime updated = QDateTime::fromMSecsSinceEpoch(session.updated_ms);
        const QString day = dayHeading(updated.date(), now_.date());
        if (day != heading) {
            heading = day;
            rows_.push_back({{}, day, {}, {}});
        }
        const QString folder = QFileInfo(qstring(session.repository)).fileName();
        const bool is_recent = updated.date().daysTo(now_.date()) <= 1;
        const QString when = is_recent
                                 ? QLocale().toString(updated.time(), clockFormat())
                                 : QLocale().toString(updated.date(), QStringLiteral("d MMM"));
        rows_.push_back(
            {id,
             session.title.empty() ? tr("New session") : qstring(session.title),
             folder.isEmpty() ? when : QStringLiteral("%1  \u00b7  %2").arg(folder, when),
             {}});
    }
    endResetModel();
}

}  // namespace belvedere::app
