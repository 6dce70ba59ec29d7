// SPDX-License-Identifier: Apache-2.0
#pragma once

// What stands in the middle before the first question: what is attached, and questions to begin
// with. GUI thread only.

#include <QLabel>
#include <QPushButton>
#include <QWidget>

#include "app/theme/theme.h"

namespace belvedere::app {

class EmptyPage : public QWidget {
    Q_OBJECT

  public:
    struct Words {
        QString title;
        QString text;
        QString button;             ///< empty: none
        bool has_examples = false;  ///< questions to begin with
    };

    EmptyPage(const Theme& theme, QWidget* parent);

    void setWords(const Words& words);

  Q_SIGNALS:
    void buttonClicked();
    /// "Where is \u2026 defined?": the user fills the gap.
    void exampleChosen(const QString& question);

  private:
    void updateMark();

    const Theme& theme_;
    QLabel* mark_;
    QLabel* title_;
    QLabel* text_;
    QPushButton* button_;
    QWidget* examples_;
};

}  // namespace belvedere::app
