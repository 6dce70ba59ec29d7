// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the window shows while there is no model: what the default one is, what it can and cannot
// do, and how to get it. GUI thread only.

#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QWidget>

#include "app/bridge/model_service.h"
#include "app/theme/theme.h"

namespace belvedere::app {

class FirstRunPage : public QScrollArea {
    Q_OBJECT

  public:
    FirstRunPage(const Theme& theme, ModelService& models, QWidget* parent);

  Q_SIGNALS:
    void openModelRequested();

  private:
    QWidget* makeCard(QWidget* parent);
    QLabel* makeLabel(QWidget* parent, Text style, const char* tone);
    void refresh();
    void refreshProgress();
    void updateMark();

    const Theme& theme_;
    ModelService& models_;
    QLabel* mark_;
    QLabel* name_;
    QLabel* summary_;
    QLabel* facts_;
    QLabel* limits_;
    QWidget* error_;
    QLabel* error_text_;
    QWidget* progress_row_;
    QProgressBar* progress_;
    QLabel* progress_text_;
    QPushButton* cancel_;
    QWidget* buttons_;
    QPushButton* get_;
    QPushButton* open_;
};

}  // namespace belvedere::app
