// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sessions for the sidebar, newest first, under a heading for each day or span; or, while
// searching, the hits. GUI thread only.

#include <QAbstractListModel>
#include <QDateTime>
#include <QSet>
#include <optional>
#include <vector>

#include "agent/store/session_store.h"

namespace belvedere::app {

class SessionListModel : public QAbstractListModel {
    Q_OBJECT

  public:
    enum Role { IdRole = Qt::UserRole, IsHeadingRole, DetailRole, IsRunningRole, ExcerptRole };

    explicit SessionListModel(QObject* parent = nullptr);

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
    /// A new name typed in place: emits renameRequested().
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;

    void setSessions(std::vector<agent::SessionSummary> sessions, const QDateTime& now);
    /// Shows hits in place of the sessions; nullopt: the sessions again.
    void setHits(std::optional<std::vector<agent::SearchHit>> hits);
    void setRunning(const QSet<QString>& ids);
    /// Sessions whose deletion can still be undone are not shown.
    void setHidden(const QSet<QString>& ids);

    [[nodiscard]] const std::vector<agent::SessionSummary>& sessions() const { return sessions_; }

    [[nodiscard]] const agent::SessionSummary* find(const QString& id) const;
    [[nodiscard]] QModelIndex indexOf(const QString& id) const;

  Q_SIGNALS:
    void renameRequested(const QString& id, const QString& title);

  private:
    struct Row {
        QString id;  ///< empty: a heading
        QString title;
        QString detail;
        QString excerpt;  ///< of a hit, the match between U+0001 and U+0002
    };

    void rebuild();

    std::vector<agent::SessionSummary> sessions_;
    std::optional<std::vector<agent::SearchHit>> hits_;
    QSet<QString> running_;
    QSet<QString> hidden_;
    QDateTime now_;
    std::vector<Row> rows_;
};

/// "Today", "Yesterday", "Previous 7 days", "March 2026"
[[nodiscard]] QString dayHeading(const QDate& day, const QDate& today);

}  // namespace belvedere::app
