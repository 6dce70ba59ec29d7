// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sessions in the sidebar: search, new, open, rename in place, delete. Says what the user
// wants; changes nothing itself. GUI thread only.

#include <QLineEdit>
#include <QListView>
#include <QTimer>
#include <QToolButton>
#include <QWidget>

#include "app/models/session_list_model.h"
#include "app/theme/theme.h"

namespace belvedere::app {

class SessionPanel : public QWidget {
    Q_OBJECT

  public:
    SessionPanel(const Theme& theme, QWidget* parent);

    void setModel(SessionListModel* model);
    /// Marks the shown session; empty: a new one.
    void setCurrent(const QString& id);
    void focusSearch();

  Q_SIGNALS:
    void newRequested();
    void openRequested(const QString& id);
    void renameRequested(const QString& id, const QString& title);
    void deleteRequested(const QString& id);
    void searchChanged(const QString& text);

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void showMenu(const QPoint& point);
    void selectCurrent();
    void updateIcons();
    [[nodiscard]] QString selectedId() const;

    const Theme& theme_;
    QLineEdit* search_;
    QAction* search_icon_;
    QToolButton* new_;
    QListView* list_;
    QTimer search_delay_;
    SessionListModel* model_ = nullptr;
    QString current_;
};

}  // namespace belvedere::app
