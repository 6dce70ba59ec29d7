// SPDX-License-Identifier: Apache-2.0
#pragma once

// The conversation. A scroll area that paints the rows in sight by itself; everything in it can be
// selected over rows, copied, and reached by keyboard (Tab goes through links, citations and
// buttons, Enter acts). While an answer streams it stays at the end, until the user scrolls away.
// GUI thread only.

#include <QAbstractScrollArea>
#include <QPointer>
#include <QTimer>
#include <QToolButton>
#include <optional>

#include "app/models/transcript_model.h"
#include "app/theme/theme.h"
#include "app/views/drag_scroll.h"
#include "app/views/transcript_rows.h"
#include "app/views/transcript_selection.h"

namespace belvedere::app {

class TranscriptView : public QAbstractScrollArea {
    Q_OBJECT

  public:
    TranscriptView(const Theme& theme, QWidget* parent);
    ~TranscriptView() override;

    /// nullptr: none. Shows its end.
    void setTranscript(TranscriptModel* transcript);

    [[nodiscard]] TranscriptModel* transcript() const { return transcript_; }

    [[nodiscard]] QString selectedText() { return selection_.text(rows_); }

    void selectAll();

    // For screen readers and tests. Rectangles are those of the viewport.

    [[nodiscard]] QRect rowRect(int row) const;
    /// Links, citations and buttons of a row in reading order.
    [[nodiscard]] std::vector<RowAction> actionsOf(int row);
    [[nodiscard]] QRect actionRect(int row, size_t action);
    void activateAction(int row, size_t action);

    /// Stays at the end as the conversation grows.
    [[nodiscard]] bool isFollowing() const { return is_following_; }

    void jumpToEnd();

    /// Something the keyboard can act on.
    struct Target {
        int row = 0;
        size_t action = 0;  ///< index in actionsOf()
    };

    /// What Enter acts on.
    [[nodiscard]] std::optional<Target> keyboardTarget() const { return target_; }

    [[nodiscard]] QToolButton& jumpButton() const { return *jump_button_; }

  Q_SIGNALS:
    void citationActivated(const QString& path, size_t first_line, size_t last_line);
    void linkActivated(const QString& address);
    void retryRequested();

  protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    bool focusNextPrevChild(bool next) override;

  private:
    /// What is under a point. Valid until the next layout.
    struct Hit {
        int row = -1;
        const RowLayout::Area* area = nullptr;  ///< nullptr: none, or a link in the text
        std::optional<RowAction> action;
    };

    void onRowsInserted(int first, int last);
    void onRowsChanged(int first, int last);
    /// Lets a screen reader read the answer, or why there is none.
    void announceEnd();
    void scheduleLayout();
    /// Lays out what is in sight and keeps what the user looks at in its place.
    void layoutNow();
    void placeButton();
    [[nodiscard]] qreal contentHeight() const;
    [[nodiscard]] qreal columnLeft() const;
    [[nodiscard]] qreal columnWidth() const;
    [[nodiscard]] QPointF rowOrigin(int row) const;
    void paintActivity(QPainter& painter);

    [[nodiscard]] Hit hitAt(QPointF point);
    [[nodiscard]] std::optional<TranscriptPosition> positionAt(QPointF point);
    void extendSelection(QPointF point);
    void copySelection();

    void activate(int row, const RowAction& action);
    bool moveTarget(bool next);
    void showTarget();

    const Theme& theme_;
    QPointer<TranscriptModel> transcript_;
    TranscriptRows rows_;
    QTimer layout_timer_;
    QToolButton* jump_button_;
    bool is_following_ = true;
    bool is_placing_ = false;  ///< the scroll bar is moved by us
    TranscriptSelection selection_;
    DragScroll drag_;
    bool is_selecting_ = false;
    QPointF press_point_;
    std::optional<RowAction> pressed_;
    QPointF hover_point_ = {-1, -1};
    std::optional<Target> target_;
};

}  // namespace belvedere::app
