// SPDX-License-Identifier: Apache-2.0
#pragma once

// Source text with line numbers and colours, read only, with a range of lines marked. Lays out the
// lines in sight only, so that a file of any length opens at once. It has a cursor, for selecting
// by keyboard and for screen readers. GUI thread only.

#include <QAbstractScrollArea>
#include <QTextLayout>
#include <memory>

#include "app/theme/source_document.h"
#include "app/theme/theme.h"
#include "app/views/drag_scroll.h"

namespace belvedere::app {

class CodeView : public QAbstractScrollArea {
    Q_OBJECT

  public:
    CodeView(const Theme& theme, QWidget* parent);

    /// nullptr: an empty text.
    void setSource(std::shared_ptr<const SourceDocument> source);
    /// Lines from 1; 0: none. Scrolls there.
    void markLines(size_t first_line, size_t last_line);

    [[nodiscard]] size_t firstMarkedLine() const { return first_line_; }

    [[nodiscard]] size_t lastMarkedLine() const { return last_line_; }

    [[nodiscard]] const QString& toPlainText() const { return source_->text(); }

    // Positions count UTF-16 units of toPlainText().

    [[nodiscard]] qsizetype cursorPosition() const { return cursor_; }

    [[nodiscard]] qsizetype anchorPosition() const { return anchor_; }

    /// The text between is selected.
    void select(qsizetype anchor, qsizetype cursor);
    void selectAll();
    [[nodiscard]] QString selectedText() const;
    /// Scrolls.
    void showCursor();

    /// In the viewport.
    [[nodiscard]] QRectF characterRect(qsizetype position) const;
    [[nodiscard]] qsizetype positionAt(QPointF point) const;

  protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

  private:
    void onTheme();
    void updateBars();
    void copy() const;
    /// Where a key moves the cursor; `is_selecting` is set where the anchor stays. -1: no such key.
    [[nodiscard]] qsizetype keyTarget(const QKeyEvent& event, bool& is_selecting) const;
    /// The same column, n_lines below.
    [[nodiscard]] qsizetype below(int n_lines) const;
    /// What is drawn of a line: its beginning, where it is very long.
    [[nodiscard]] QStringView shown(int line) const;
    void layOut(QTextLayout& layout, int line) const;
    void paintLine(QPainter& painter, int line, qreal top) const;
    [[nodiscard]] qreal numbersWidth() const;
    [[nodiscard]] qreal textLeft() const;
    [[nodiscard]] int lineAtHeight(qreal y) const;
    [[nodiscard]] qreal topOf(int line) const;

    const Theme& theme_;
    std::shared_ptr<const SourceDocument> source_;  // shared with who made it: it never changes
    DragScroll drag_;
    qreal line_height_ = 0;
    qreal character_width_ = 0;
    size_t first_line_ = 0;
    size_t last_line_ = 0;
    qsizetype anchor_ = 0;
    qsizetype cursor_ = 0;
};

}  // namespace belvedere::app
