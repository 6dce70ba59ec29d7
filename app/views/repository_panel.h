// SPDX-License-Identifier: Apache-2.0
#pragma once

// The attached folder in the sidebar: its tree with tokens, what was left out and why, and how far
// reading has come. GUI thread only.

#include <QLabel>
#include <QListView>
#include <QProgressBar>
#include <QPushButton>
#include <QStackedWidget>
#include <QToolButton>
#include <QTreeView>
#include <QWidget>

#include "app/bridge/repository_service.h"
#include "app/models/repository_model.h"
#include "app/models/repository_skipped_model.h"
#include "app/theme/theme.h"

namespace belvedere::app {

class RepositoryPanel : public QWidget {
    Q_OBJECT

  public:
    RepositoryPanel(const Theme& theme, RepositoryService& repositories, QWidget* parent);

    /// Shows a file in the tree, where it is.
    void reveal(const QString& path);

    [[nodiscard]] const RepositoryModel& tree() const { return tree_model_; }

  Q_SIGNALS:
    void fileRequested(const QString& path);
    void openRequested();

  private:
    QWidget* makeTreePage();
    QWidget* makeMessagePage();
    QWidget* makeSkippedPage();
    void refresh();
    void refreshProgress();
    void showMessage(const QString& text, const QString& button);
    void updateIcons();

    const Theme& theme_;
    RepositoryService& repositories_;
    RepositoryModel tree_model_;
    RepositorySkippedModel skipped_model_;
    QLabel* title_;
    QLabel* total_;
    QToolButton* reload_;
    QStackedWidget* pages_;
    QWidget* tree_page_;
    QWidget* message_page_;
    QWidget* skipped_page_;
    QTreeView* tree_;
    QPushButton* skipped_link_;
    QLabel* message_;
    QProgressBar* progress_;
    QPushButton* message_button_;
    QListView* skipped_;
    QLabel* skipped_title_;
    QToolButton* skipped_close_;
};

}  // namespace belvedere::app
