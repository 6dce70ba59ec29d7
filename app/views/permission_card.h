// SPDX-License-Identifier: Apache-2.0
#pragma once

// The question whether a tool may run: what it is, on what, why it is asked, what it would change,
// and three answers. Stands above the composer while a turn waits; several questions come one after
// the other. Enter does nothing by itself: an answer is given with a button or its shortcut. GUI
// thread only.

#include <QLabel>
#include <QPlainTextEdit>
#include <QPointer>
#include <QPushButton>
#include <QWidget>

#include "app/models/transcript_model.h"
#include "app/theme/theme.h"

namespace belvedere::app {

class PermissionCard : public QWidget {
    Q_OBJECT

  public:
    PermissionCard(const Theme& theme, QWidget* parent);

    /// Shows the oldest open question of this conversation; hidden where there is none.
    void setTranscript(TranscriptModel* transcript);

  Q_SIGNALS:
    void answered(const std::string& call_id, belvedere::agent::PermissionAnswer answer);

  protected:
    void resizeEvent(QResizeEvent* event) override;

  private:
    void refresh();
    void answer(agent::PermissionAnswer answer);

    const Theme& theme_;
    QPointer<TranscriptModel> transcript_;
    std::string call_id_;  ///< of the question that is shown
    QWidget* card_;
    QLabel* icon_;
    QLabel* title_;
    QLabel* count_;
    QLabel* reason_;
    QPlainTextEdit* preview_;
    QPushButton* deny_;
    QPushButton* session_;
    QPushButton* once_;
};

}  // namespace belvedere::app
