// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the user writes: a box that grows with its text, the choice between asking and working, and
// a button that sends or stops. Enter sends, Shift+Enter breaks the line; while an input method
// composes, both belong to it. GUI thread only.

#include <QButtonGroup>
#include <QLabel>
#include <QPlainTextEdit>
#include <QToolButton>
#include <QWidget>

#include "agent/agent.h"
#include "app/theme/theme.h"

namespace belvedere::app {

/// The text of the composer. Images cannot be put into it: it says so instead.
class ComposerEdit : public QPlainTextEdit {
    Q_OBJECT

  public:
    explicit ComposerEdit(QWidget* parent);

    /// Height that shows all lines, between one and the largest number of lines.
    [[nodiscard]] int wantedHeight() const;

  Q_SIGNALS:
    void submitted();
    void escaped();
    void imageRefused();
    void focusChanged(bool has_focus);

  protected:
    void keyPressEvent(QKeyEvent* event) override;
    void inputMethodEvent(QInputMethodEvent* event) override;
    bool canInsertFromMimeData(const QMimeData* source) const override;
    void insertFromMimeData(const QMimeData* source) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

  private:
    bool is_composing_ = false;  ///< an input method has text that is not committed
};

class Composer : public QWidget {
    Q_OBJECT

  public:
    Composer(const Theme& theme, QWidget* parent);
    ~Composer() override;

    void setText(const QString& text);

    [[nodiscard]] QString text() const { return edit_->toPlainText(); }

    /// A turn runs: the button stops it.
    void setRunning(bool is_running);
    /// Why nothing can be sent; empty: it can.
    void setBlocked(const QString& why);
    [[nodiscard]] agent::TurnMode mode() const;

  Q_SIGNALS:
    void send(const QString& text, belvedere::agent::TurnMode mode);
    void stop();

  protected:
    void resizeEvent(QResizeEvent* event) override;

  private:
    QWidget* makeModes();
    void submit();
    void refresh();
    void fit();

    const Theme& theme_;
    QWidget* box_;
    ComposerEdit* edit_;
    QToolButton* ask_;
    QToolButton* work_;
    QLabel* hint_;
    QToolButton* button_;
    bool is_running_ = false;
    QString blocked_;
    bool has_refused_image_ = false;
};

}  // namespace belvedere::app
