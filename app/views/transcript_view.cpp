// SPDX-License-Identifier: Apache-2.0
#include "app/views/transcript_view.h"

#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "app/models/transcript_text.h"
#include "app/theme/markdown.h"
#include "app/views/column.h"

namespace belvedere::app {

namespace {

constexpr qreal kTopPadding = 18;
constexpr qreal kBottomPadding = 22;
constexpr qreal kActivityHeight = 28;
constexpr int kEndSlack = 3;  // pixels from the end that still count as the end
constexpr int kDragDistance = 4;

std::optional<RowAction> actionOf(const TextSpan* span) {
    if (span == nullptr) {
        return std::nullopt;
    }
    const bool is_citation = (span->style & TextSpan::Citation) != 0U;
    return RowAction{
        is_citation ? RowAction::Kind::OpenCitation : RowAction::Kind::OpenLink, span->target, {}};
}

bool isShown(const Activity& activity) {
    return !activityText(activity).isEmpty();
}

}  // namespace

TranscriptView::TranscriptView(const Theme& theme, QWidget* parent)
    : QAbstractScrollArea(parent),
      theme_(theme),
      rows_(theme),
      drag_(*this, [this](QPointF point) { extendSelection(point); }) {
    setObjectName(QStringLiteral("transcript"));
    setAccessibleName(tr("Conversation"));
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    viewport()->setMouseTracking(true);
    viewport()->setCursor(Qt::IBeamCursor);
    layout_timer_.setSingleShot(true);
    layout_timer_.setInterval(0);
    connect(&layout_timer_, &QTimer::timeout, this, &TranscriptView::layoutNow);
    jump_button_ = new QToolButton(this);
    jump_button_->setObjectName(QStringLiteral("jumpToEnd"));
    jump_button_->setToolTip(tr("To the end of the conversation"));
    jump_button_->setAccessibleName(tr("To the end of the conversation"));
    jump_button_->setFixedSize(34, 34);
    jump_button_->setCursor(Qt::ArrowCursor);
    jump_button_->hide();
    connect(jump_button_, &QToolButton::clicked, this, &TranscriptView::jumpToEnd);
    const auto onTheme = [this] {
        jump_button_->setIcon(theme_.icon(QStringLiteral("arrow-down"), Colour::Text));
        rows_.invalidate(columnWidth());
        scheduleLayout();
    };
    connect(&theme, &Theme::changed, this, onTheme);
    onTheme();
}

TranscriptView::~TranscriptView() = default;

void TranscriptView::setTranscript(TranscriptModel* transcript) {
    if (transcript_ != nullptr) {
        transcript_->disconnect(this);
    }
    transcript_ = transcript;
    target_.reset();
    selection_.clear();
    rows_.setModel(transcript);
    rows_.invalidate(columnWidth());
    if (transcript != nullptr) {
        connect(transcript, &TranscriptModel::rowsInserted, this,
                [this](const QModelIndex&, int first, int last) { onRowsInserted(first, last); });
        connect(transcript, &TranscriptModel::dataChanged, this,
                [this](const QModelIndex& first, const QModelIndex& last) {
                    onRowsChanged(first.row(), last.row());
                });
        connect(transcript, &TranscriptModel::rowsRemoved, this,
                [this] { setTranscript(transcript_); });
        connect(transcript, &TranscriptModel::modelReset, this,
                [this] { setTranscript(transcript_); });
        connect(transcript, &TranscriptModel::activityChanged, this,
                &TranscriptView::scheduleLayout);
        connect(transcript, &TranscriptModel::runningChanged, this, &TranscriptView::announceEnd);
    }
    is_following_ = true;
    scheduleLayout();
}

void TranscriptView::onRowsInserted(int first, int last) {
    rows_.insertRows(first, last);
    // What the user has just asked is what the user wants to see.
    for (int row = first; row <= last; ++row) {
        is_following_ |= transcript_->item(row).kind == TranscriptItem::Kind::User;
    }
    scheduleLayout();
}

void TranscriptView::onRowsChanged(int first, int last) {
    rows_.changeRows(first, last);
    scheduleLayout();
}

void TranscriptView::announceEnd() {
    if (!QAccessible::isActive() || transcript_->isRunning()) {
        return;
    }
    for (int row = transcript_->rowCount() - 1; row >= 0; --row) {
        const TranscriptItem::Kind kind = transcript_->item(row).kind;
        if (kind == TranscriptItem::Kind::Answer || kind == TranscriptItem::Kind::Error) {
            QAccessibleEvent event(this, QAccessible::Alert);
            event.setChild(row);
            QAccessible::updateAccessibility(&event);
            return;
        }
    }
}

void TranscriptView::scheduleLayout() {
    if (!layout_timer_.isActive()) {
        layout_timer_.start();
    }
}

qreal TranscriptView::columnWidth() const {
    return columnIn(width(), theme_.sizes()).width;
}

qreal TranscriptView::columnLeft() const {
    return columnIn(width(), theme_.sizes()).left;
}

qreal TranscriptView::contentHeight() const {
    const bool has_activity = transcript_ != nullptr && isShown(transcript_->activity());
    return kTopPadding + rows_.totalHeight() + (has_activity ? kActivityHeight : 0) +
           kBottomPadding;
}

QPointF TranscriptView::rowOrigin(int row) const {
    return {columnLeft(), kTopPadding + rows_.top(row) - verticalScrollBar()->value()};
}

QRect TranscriptView::rowRect(int row) const {
    return QRectF(rowOrigin(row), QSizeF(columnWidth(), rows_.height(row))).toRect();
}

void TranscriptView::layoutNow() {
    layout_timer_.stop();
    const qreal view_height = viewport()->height();
    QScrollBar* bar = verticalScrollBar();
    qreal value = bar->value();
    if (rows_.count() > 0 && is_following_) {
        qreal filled = 0;
        for (int row = rows_.count() - 1; row >= 0 && filled < view_height; --row) {
            filled += rows_.layout(row).height;
        }
    } else if (rows_.count() > 0) {
        // The first row in sight that is laid out keeps its place; rows above it may turn out
        // higher than they were thought to be.
        const int first = rows_.rowAt(value - kTopPadding);
        const int last = rows_.rowAt(value - kTopPadding + view_height);
        int anchor = first;
        while (anchor < last && !rows_.isLaidOut(anchor)) {
            ++anchor;
        }
        anchor = rows_.isLaidOut(anchor) ? anchor : first;
        const qreal offset = value - rows_.top(anchor);
        for (int row = first; row < rows_.count() && rows_.top(row) <= value + view_height; ++row) {
            rows_.layout(row);
        }
        value = rows_.top(anchor) + offset;
    }
    const int range = std::max(0, static_cast<int>(std::ceil(contentHeight() - view_height)));
    is_following_ |= value >= range - kEndSlack;
    is_placing_ = true;
    bar->setPageStep(static_cast<int>(view_height));
    bar->setSingleStep(24);
    bar->setRange(0, range);
    bar->setValue(is_following_ ? range : static_cast<int>(std::lround(value)));
    is_placing_ = false;
    placeButton();
    viewport()->update();
}

void TranscriptView::jumpToEnd() {
    is_following_ = true;
    layoutNow();
}

void TranscriptView::placeButton() {
    const bool is_needed = !is_following_ && verticalScrollBar()->maximum() > 0;
    jump_button_->setVisible(is_needed);
    jump_button_->move((viewport()->width() - jump_button_->width()) / 2,
                       viewport()->height() - jump_button_->height() - 12);
    jump_button_->raise();
}

void TranscriptView::scrollContentsBy(int /*dx*/, int /*dy*/) {
    if (!is_placing_) {
        const QScrollBar* bar = verticalScrollBar();
        is_following_ = bar->value() >= bar->maximum() - kEndSlack;
        layoutNow();
    }
    viewport()->update();
}

void TranscriptView::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    if (columnWidth() != rows_.width()) {
        rows_.invalidate(columnWidth());
    }
    layoutNow();
}

void TranscriptView::paintEvent(QPaintEvent* event) {
    if (layout_timer_.isActive()) {
        layoutNow();
    }
    QPainter painter(viewport());
    painter.fillRect(event->rect(), theme_.colour(Colour::Window));
    if (transcript_ == nullptr) {
        return;
    }
    const Hit hover = hover_point_.x() >= 0 ? hitAt(hover_point_) : Hit();
    for (int row = rows_.rowAt(verticalScrollBar()->value() - kTopPadding);
         row >= 0 && row < rows_.count(); ++row) {
        const QPointF origin = rowOrigin(row);
        if (origin.y() > viewport()->height()) {
            break;
        }
        const RowLayout& layout = rows_.layout(row);
        const QRectF clip = QRectF(event->rect()).translated(-origin);
        paintRow(painter, layout, origin, clip, selection_.inRow(row),
                 hover.row == row ? hover.area : nullptr, theme_);
    }
    paintActivity(painter);
    if (target_ && hasFocus()) {
        const QRect rect = actionRect(target_->row, target_->action);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(theme_.colour(Colour::Accent), 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(rect.adjusted(-2, -2, 2, 2), 5, 5);
    }
}

void TranscriptView::paintActivity(QPainter& painter) {
    const QString text = activityText(transcript_->activity());
    if (text.isEmpty()) {
        return;
    }
    const qreal top = kTopPadding + rows_.totalHeight() - verticalScrollBar()->value();
    const QRectF line(columnLeft(), top, columnWidth(), theme_.lineHeight(Text::Small));
    const qreal size = 6;
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.colour(Colour::Accent));
    painter.drawEllipse(QPointF(line.left() + size, line.center().y()), size / 2, size / 2);
    painter.setFont(theme_.font(Text::Small));
    painter.setPen(theme_.colour(Colour::TextMuted));
    painter.drawText(line.adjusted(size * 3, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, text);
    const Activity& activity = transcript_->activity();
    if (activity.phase == Activity::Phase::Reading && activity.n_total > 0) {
        const QRectF track(line.left(), line.bottom() + 3, std::min<qreal>(220, line.width()), 3);
        const qreal share =
            static_cast<qreal>(activity.n_done) / static_cast<qreal>(activity.n_total);
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme_.colour(Colour::SurfacePressed));
        painter.drawRoundedRect(track, 1.5, 1.5);
        painter.setBrush(theme_.colour(Colour::Accent));
        painter.drawRoundedRect(QRectF(track.topLeft(), QSizeF(track.width() * share, 3)), 1.5,
                                1.5);
    }
}

TranscriptView::Hit TranscriptView::hitAt(QPointF point) {
    Hit hit;
    const qreal y = point.y() + verticalScrollBar()->value() - kTopPadding;
    const int row = rows_.rowAt(y);
    if (row < 0 || y < 0 || y >= rows_.totalHeight()) {
        return hit;
    }
    hit.row = row;
    const RowLayout& layout = rows_.layout(row);
    const QPointF inside = point - rowOrigin(row);
    for (const RowLayout::Area& area : layout.areas) {
        if (area.rect.contains(inside)) {
            hit.area = &area;
            hit.action = area.action;
            return hit;
        }
    }
    for (const BlockLayout& block : layout.blocks) {
        if (hit.action = actionOf(block.spanAt(inside - QPointF(block.row_x, block.row_y)))) {
            break;
        }
    }
    return hit;
}

std::optional<TranscriptPosition> TranscriptView::positionAt(QPointF point) {
    const int row = rows_.rowAt(point.y() + verticalScrollBar()->value() - kTopPadding);
    if (row < 0) {
        return std::nullopt;
    }
    const RowLayout& layout = rows_.layout(row);
    const QPointF inside = point - rowOrigin(row);
    TranscriptPosition position{row, 0, 0};
    for (size_t i = 0; i < layout.blocks.size(); ++i) {
        const BlockLayout& block = layout.blocks[i];
        if (i > 0 && inside.y() < block.row_y) {
            break;
        }
        position.block = static_cast<int>(i);
        position.offset = block.offsetAt(inside - QPointF(block.row_x, block.row_y));
    }
    return position;
}

void TranscriptView::selectAll() {
    if (rows_.count() > 0) {
        selection_.selectAll(rows_.count());
        viewport()->update();
    }
}

void TranscriptView::copySelection() {
    const QString text = selectedText();
    if (!text.isEmpty()) {
        QApplication::clipboard()->setText(text);
    }
}

void TranscriptView::extendSelection(QPointF point) {
    if (const auto position = positionAt(point)) {
        selection_.extendTo(*position);
        viewport()->update();
    }
}

void TranscriptView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) {
        return;
    }
    press_point_ = event->position();
    pressed_ = hitAt(event->position()).action;
    target_.reset();
    if (const auto position = positionAt(event->position())) {
        if ((event->modifiers() & Qt::ShiftModifier) == 0U) {
            selection_.begin(*position);
        }
        selection_.extendTo(*position);
        is_selecting_ = true;
    }
    viewport()->update();
}

void TranscriptView::mouseMoveEvent(QMouseEvent* event) {
    hover_point_ = event->position();
    if (is_selecting_ && (event->buttons() & Qt::LeftButton) != 0U) {
        if ((event->position() - press_point_).manhattanLength() > kDragDistance) {
            pressed_.reset();
        }
        if (!pressed_) {
            extendSelection(event->position());
            drag_.moveTo(event->position());
        }
    }
    const Hit hit = hitAt(event->position());
    viewport()->setCursor(hit.action ? Qt::PointingHandCursor : Qt::IBeamCursor);
    viewport()->setToolTip(hit.area != nullptr ? hit.area->action.name : QString());
    viewport()->update();
}

void TranscriptView::mouseReleaseEvent(QMouseEvent* event) {
    is_selecting_ = false;
    drag_.stop();
    QClipboard* clipboard = QApplication::clipboard();
    if (clipboard->supportsSelection() && !selection_.isEmpty()) {
        clipboard->setText(selectedText(), QClipboard::Selection);
    }
    const std::optional<RowAction> pressed = std::exchange(pressed_, std::nullopt);
    const Hit hit = hitAt(event->position());
    if (pressed && hit.action == pressed) {
        selection_.clear();
        activate(hit.row, *pressed);
    }
    viewport()->update();
}

void TranscriptView::mouseDoubleClickEvent(QMouseEvent* event) {
    if (hitAt(event->position()).action) {
        mousePressEvent(event);
    } else if (const auto position = positionAt(event->position())) {
        selection_.selectWord(*position, rows_.layout(position->row));
        viewport()->update();
    }
}

void TranscriptView::leaveEvent(QEvent* /*event*/) {
    hover_point_ = {-1, -1};
    viewport()->update();
}

void TranscriptView::contextMenuEvent(QContextMenuEvent* event) {
    QMenu menu(this);
    QAction* copy = menu.addAction(tr("Copy"), this, &TranscriptView::copySelection);
    copy->setEnabled(!selection_.isEmpty());
    const Hit hit = hitAt(viewport()->mapFromGlobal(event->globalPos()));
    if (hit.row >= 0) {
        const QString text = transcriptText(transcript_->item(hit.row));
        menu.addAction(tr("Copy this part"), this,
                       [text] { QApplication::clipboard()->setText(text); });
        menu.addSeparator();
        for (const RowAction& action : actionsOf(hit.row)) {
            menu.addAction(action.name, this,
                           [this, row = hit.row, action] { activate(row, action); });
        }
    }
    menu.addSeparator();
    menu.addAction(tr("Select all"), this, &TranscriptView::selectAll);
    menu.exec(event->globalPos());
}

void TranscriptView::activate(int row, const RowAction& action) {
    switch (action.kind) {
        case RowAction::Kind::Toggle:
            is_following_ = false;  // what was pressed stays under the pointer
            transcript_->setExpanded(row, !transcript_->item(row).is_expanded);
            break;
        case RowAction::Kind::Copy:
            QApplication::clipboard()->setText(action.payload);
            break;
        case RowAction::Kind::OpenCitation: {
            CitationTarget citation;
            if (parseCitation(action.payload, citation)) {
                Q_EMIT citationActivated(citation.path, citation.first_line, citation.last_line);
            }
            break;
        }
        case RowAction::Kind::OpenLink:
            Q_EMIT linkActivated(action.payload);
            break;
        case RowAction::Kind::Retry:
            Q_EMIT retryRequested();
            break;
    }
}

void TranscriptView::keyPressEvent(QKeyEvent* event) {
    QScrollBar* bar = verticalScrollBar();
    if (event->matches(QKeySequence::Copy)) {
        copySelection();
    } else if (event->matches(QKeySequence::SelectAll)) {
        selectAll();
    } else if (event->key() == Qt::Key_Home) {
        bar->setValue(0);
    } else if (event->key() == Qt::Key_End) {
        jumpToEnd();
    } else if (target_ && (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter ||
                           event->key() == Qt::Key_Space)) {
        activateAction(target_->row, target_->action);
    } else if (event->key() == Qt::Key_Space) {
        bar->triggerAction(QScrollBar::SliderPageStepAdd);
    } else {
        QAbstractScrollArea::keyPressEvent(event);
    }
}

void TranscriptView::focusInEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusInEvent(event);
    if (event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason) {
        target_.reset();
        moveTarget(event->reason() == Qt::TabFocusReason);
    }
}

void TranscriptView::focusOutEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusOutEvent(event);
    viewport()->update();
}

bool TranscriptView::focusNextPrevChild(bool next) {
    return moveTarget(next) || QAbstractScrollArea::focusNextPrevChild(next);
}

bool TranscriptView::moveTarget(bool next) {
    if (rows_.count() == 0) {
        return false;
    }
    const int step = next ? 1 : -1;
    int row = target_ ? target_->row : rows_.rowAt(verticalScrollBar()->value() - kTopPadding);
    if (!target_ && !next) {
        row = rows_.rowAt(verticalScrollBar()->value() + viewport()->height() - kTopPadding);
    }
    std::optional<size_t> action = target_ ? std::optional(target_->action) : std::nullopt;
    for (; row >= 0 && row < rows_.count(); row += step, action.reset()) {
        const size_t n_actions = actionsOf(row).size();
        if (n_actions == 0 || (action && next && *action + 1 >= n_actions) ||
            (action && !next && *action == 0)) {
            continue;
        }
        const size_t first = next ? 0 : n_actions - 1;
        target_ = Target{row, !action ? first : next ? *action + 1 : *action - 1};
        showTarget();
        return true;
    }
    target_.reset();
    viewport()->update();
    return false;
}

std::vector<RowAction> TranscriptView::actionsOf(int row) {
    return row >= 0 && row < rows_.count() ? rowActions(rows_.layout(row))
                                           : std::vector<RowAction>();
}

QRect TranscriptView::actionRect(int row, size_t action) {
    const std::vector<RowAction> actions = actionsOf(row);
    if (action >= actions.size()) {
        return {};
    }
    const RowAction& wanted = actions[action];
    const RowLayout& layout = rows_.layout(row);
    const QPointF origin = rowOrigin(row);
    for (const RowLayout::Area& area : layout.areas) {
        if (area.action == wanted) {
            return area.rect.translated(origin).toRect();
        }
    }
    for (const BlockLayout& block : layout.blocks) {
        for (const TextSpan& span : block.targets()) {
            const auto found = actionOf(&span);
            if (found->payload == wanted.payload && found->kind == wanted.kind) {
                const QPointF at = origin + QPointF(block.row_x, block.row_y);
                return block.spanRect(span).translated(at).toRect();
            }
        }
    }
    return {};
}

void TranscriptView::activateAction(int row, size_t action) {
    const std::vector<RowAction> actions = actionsOf(row);
    if (action < actions.size()) {
        activate(row, actions[action]);
    }
}

void TranscriptView::showTarget() {
    const QRect rect = actionRect(target_->row, target_->action);
    if (rect.top() < 0 || rect.bottom() > viewport()->height()) {
        QScrollBar* bar = verticalScrollBar();
        bar->setValue(bar->value() + rect.center().y() - viewport()->height() / 2);
    }
    setAccessibleDescription(actionsOf(target_->row)[target_->action].name);
    if (QAccessible::isActive()) {
        QAccessibleInterface* list = QAccessible::queryAccessibleInterface(this);
        QAccessibleInterface* target = list == nullptr ? nullptr : list->focusChild();
        if (target != nullptr) {
            QAccessibleEvent event(target, QAccessible::Focus);
            QAccessible::updateAccessibility(&event);
        }
    }
    viewport()->update();
}

}  // namespace belvedere::app
