// SPDX-License-Identifier: Apache-2.0
#pragma once

// Source text with line numbers and colours, read only, with a range of lines marked. GUI thread
// only.

#include <QPlainTextEdit>
#include <QSyntaxHighlighter>

#include "app/theme/highlighter.h"
#include "app/theme/theme.h"

namespace belvedere::app {

class CodeView : public QPlainTextEdit {
    Q_OBJECT

  public:
    CodeView(const Theme& theme, QWidget* parent);

    void setSource(const QString& text, Language language);
    /// Lines from 1; 0: none. Scrolls there.
    void markLines(size_t first_line, size_t last_line);

    [[nodiscard]] size_t firstMarkedLine() const { return first_line_; }

    [[nodiscard]] size_t lastMarkedLine() const { return last_line_; }

  protected:
    void resizeEvent(QResizeEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

  private:
    friend class LineNumbers;

    [[nodiscard]] int numbersWidth() const;
    void paintNumbers(QPaintEvent* event);
    void applyTheme();
    void placeNumbers();

    const Theme& theme_;
    QSyntaxHighlighter* highlighter_;
    QWidget* numbers_;
    size_t first_line_ = 0;
    size_t last_line_ = 0;
};

}  // namespace belvedere::app
