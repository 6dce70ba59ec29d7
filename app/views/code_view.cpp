// SPDX-License-Identifier: Apache-2.0
#include "app/views/code_view.h"

#include <QAccessible>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QGuiApplication>
#include <QMenu>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <array>
#include <cmath>

#include "app/views/word_at.h"

namespace belvedere::app {

namespace {

constexpr qreal kNumbersPadding = 12;
constexpr qreal kTextPadding = 6;
constexpr int kTopPadding = 4;
constexpr int kBottomPadding = 12;
constexpr int kLinesAbove = 4;               // of the marked range
constexpr qsizetype kMaxLineLength = 4'000;  // UTF-16 units: beyond, a line is data

}  // namespace

CodeView::CodeView(const Theme& theme, QWidget* parent)
    : QAbstractScrollArea(parent),
      theme_(theme),
      source_(std::make_shared<const SourceDocument>("", Language::Plain)),
      drag_(*this, [this](QPointF point) { select(anchor_, positionAt(point)); }) {
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Source"));
    viewport()->setCursor(Qt::IBeamCursor);
    connect(&theme, &Theme::changed, this, &CodeView::onTheme);
    onTheme();
}

void CodeView::onTheme() {
    const QFontMetricsF metrics(theme_.font(Text::Code));
    character_width_ = metrics.horizontalAdvance(QLatin1Char('0'));
    line_height_ = theme_.lineHeight(Text::Code);
    updateBars();
    viewport()->update();
}

void CodeView::setSource(std::shared_ptr<const SourceDocument> source) {
    source_ = source != nullptr ? std::move(source)
                                : std::make_shared<const SourceDocument>("", Language::Plain);
    first_line_ = last_line_ = 0;
    anchor_ = cursor_ = 0;
    updateBars();
    viewport()->update();
    QAccessibleEvent event(this, QAccessible::TextUpdated);
    QAccessible::updateAccessibility(&event);
}

void CodeView::markLines(size_t first_line, size_t last_line) {
    const auto n_lines = static_cast<size_t>(source_->numLines());
    first_line_ = std::min(first_line, n_lines);
    last_line_ = std::clamp(last_line, first_line_, n_lines);
    const int line = std::max(0, static_cast<int>(first_line_) - 1);
    anchor_ = cursor_ = source_->begin(line);
    const qreal top = std::max(0, line - kLinesAbove) * line_height_;
    verticalScrollBar()->setValue(static_cast<int>(top));
    horizontalScrollBar()->setValue(0);
    viewport()->update();
}

void CodeView::updateBars() {
    const QSize room = viewport()->size();
    const qreal height = source_->numLines() * line_height_ + kTopPadding + kBottomPadding;
    const auto n_columns =
        std::min(static_cast<qreal>(source_->numColumns()), static_cast<qreal>(kMaxLineLength));
    const qreal width = numbersWidth() + kTextPadding * 2 + n_columns * character_width_;
    const auto set = [](QScrollBar* bar, qreal content, int page, qreal step) {
        bar->setRange(0, std::max(0, static_cast<int>(std::ceil(content)) - page));
        bar->setPageStep(page);
        bar->setSingleStep(static_cast<int>(step));
    };
    set(verticalScrollBar(), height, room.height(), line_height_);
    set(horizontalScrollBar(), width, room.width(), character_width_ * 4);
}

qreal CodeView::numbersWidth() const {
    const auto n_digits = QString::number(std::max(100, source_->numLines())).size();
    const qreal digit =
        QFontMetricsF(theme_.font(Text::CodeSmall)).horizontalAdvance(QLatin1Char('0'));
    return std::ceil(static_cast<qreal>(n_digits) * digit) + 2 * kNumbersPadding;
}

qreal CodeView::textLeft() const {
    return numbersWidth() + kTextPadding - horizontalScrollBar()->value();
}

qreal CodeView::topOf(int line) const {
    return kTopPadding + line * line_height_ - verticalScrollBar()->value();
}

int CodeView::lineAtHeight(qreal y) const {
    const qreal line = (y + verticalScrollBar()->value() - kTopPadding) / line_height_;
    return std::clamp(static_cast<int>(std::floor(line)), 0, source_->numLines() - 1);
}

QStringView CodeView::shown(int line) const {
    return source_->line(line).left(kMaxLineLength);
}

void CodeView::layOut(QTextLayout& layout, int line) const {
    layout.setText(shown(line).toString());
    layout.setFont(theme_.font(Text::Code));
    QTextOption option;
    option.setWrapMode(QTextOption::NoWrap);
    option.setTabStopDistance(4 * character_width_);
    layout.setTextOption(option);
    QList<QTextLayout::FormatRange> formats;
    for (const CodeSpan& span : source_->spans(line)) {
        QTextLayout::FormatRange range;
        range.start = span.begin;
        range.length = span.length;
        range.format.setForeground(theme_.colour(span.colour));
        formats.push_back(range);
    }
    layout.setFormats(formats);
    layout.beginLayout();
    QTextLine text_line = layout.createLine();
    if (text_line.isValid()) {
        text_line.setLineWidth(QWIDGETSIZE_MAX);
        text_line.setPosition({0, (line_height_ - text_line.height()) / 2});
    }
    layout.endLayout();
}

void CodeView::paintEvent(QPaintEvent* event) {
    QPainter painter(viewport());
    painter.fillRect(event->rect(), theme_.colour(Colour::Window));
    const int first = lineAtHeight(event->rect().top());
    const int last = lineAtHeight(event->rect().bottom());
    const auto numbers = static_cast<int>(numbersWidth());
    const auto isMarked = [this](int line) {
        const size_t number = static_cast<size_t>(line) + 1;
        return number >= first_line_ && number <= last_line_;
    };
    for (int line = first; line <= last; ++line) {
        if (isMarked(line)) {
            painter.fillRect(QRectF(numbers, topOf(line), viewport()->width(), line_height_),
                             theme_.colour(Colour::LineHighlight));
        }
    }
    painter.setClipRect(numbers, 0, viewport()->width(), viewport()->height());
    for (int line = first; line <= last; ++line) {
        paintLine(painter, line, topOf(line));
    }
    if (hasFocus()) {
        const QRectF at = characterRect(cursor_);
        painter.fillRect(QRectF(at.left(), at.top() + 2, 1, at.height() - 4),
                         theme_.colour(Colour::Accent));
    }
    painter.setClipping(false);
    painter.setFont(theme_.font(Text::CodeSmall));
    for (int line = first; line <= last; ++line) {
        const qreal top = topOf(line);
        if (isMarked(line)) {
            painter.fillRect(QRectF(0, top, 3, line_height_), theme_.colour(Colour::Accent));
        }
        painter.setPen(theme_.colour(isMarked(line) ? Colour::Text : Colour::TextFaint));
        painter.drawText(QRectF(0, top, numbers - kNumbersPadding, line_height_),
                         Qt::AlignRight | Qt::AlignVCenter, QString::number(line + 1));
    }
}

void CodeView::paintLine(QPainter& painter, int line, qreal top) const {
    QTextLayout layout;
    layOut(layout, line);
    const qsizetype begin = source_->begin(line);
    const auto [from, to] = std::minmax(anchor_, cursor_);
    const qsizetype length = layout.text().size();
    QList<QTextLayout::FormatRange> selections;
    if (from < to && from <= begin + length && to > begin) {
        QTextLayout::FormatRange range;
        range.start = static_cast<int>(std::max<qsizetype>(0, from - begin));
        range.length = static_cast<int>(std::min(length, to - begin)) - range.start;
        range.format.setBackground(theme_.colour(Colour::Selection));
        selections.push_back(range);
        if (to > begin + length) {  // the end of the line, too
            const qreal x = textLeft() + layout.lineAt(0).cursorToX(static_cast<int>(length));
            painter.fillRect(QRectF(x, top, character_width_, line_height_),
                             theme_.colour(Colour::Selection));
        }
    }
    painter.setPen(theme_.colour(Colour::Text));
    layout.draw(&painter, {textLeft(), top}, selections);
}

QRectF CodeView::characterRect(qsizetype position) const {
    const int line = source_->lineAt(position);
    QTextLayout layout;
    layOut(layout, line);
    const qsizetype column = std::min(position - source_->begin(line), layout.text().size());
    const qreal x = layout.lineAt(0).cursorToX(static_cast<int>(column));
    return {textLeft() + x, topOf(line), character_width_, line_height_};
}

qsizetype CodeView::positionAt(QPointF point) const {
    const int line = lineAtHeight(point.y());
    QTextLayout layout;
    layOut(layout, line);
    return source_->begin(line) + layout.lineAt(0).xToCursor(point.x() - textLeft());
}

void CodeView::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    updateBars();
}

void CodeView::scrollContentsBy(int /*dx*/, int /*dy*/) {
    viewport()->update();
}

void CodeView::select(qsizetype anchor, qsizetype cursor) {
    const qsizetype size = toPlainText().size();
    anchor_ = std::clamp<qsizetype>(anchor, 0, size);
    cursor_ = std::clamp<qsizetype>(cursor, 0, size);
    viewport()->update();
    QAccessibleTextCursorEvent event(this, static_cast<int>(cursor_));
    QAccessible::updateAccessibility(&event);
}

void CodeView::selectAll() {
    select(0, toPlainText().size());
}

QString CodeView::selectedText() const {
    const auto [from, to] = std::minmax(anchor_, cursor_);
    return toPlainText().mid(from, to - from);
}

void CodeView::copy() const {
    if (anchor_ != cursor_) {
        QGuiApplication::clipboard()->setText(selectedText());
    }
}

void CodeView::mousePressEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton) {
        const qsizetype position = positionAt(event->position());
        const bool is_extending = (event->modifiers() & Qt::ShiftModifier) != 0U;
        select(is_extending ? anchor_ : position, position);
    }
}

void CodeView::mouseMoveEvent(QMouseEvent* event) {
    if ((event->buttons() & Qt::LeftButton) != 0U) {
        select(anchor_, positionAt(event->position()));
        drag_.moveTo(event->position());
    }
}

void CodeView::mouseReleaseEvent(QMouseEvent* /*event*/) {
    drag_.stop();
    if (anchor_ != cursor_ && QGuiApplication::clipboard()->supportsSelection()) {
        QGuiApplication::clipboard()->setText(selectedText(), QClipboard::Selection);
    }
}

void CodeView::mouseDoubleClickEvent(QMouseEvent* event) {
    const qsizetype position = positionAt(event->position());
    const int line = source_->lineAt(position);
    const qsizetype begin = source_->begin(line);
    const WordRange word = wordAt(source_->line(line).toString(), position - begin);
    select(begin + word.begin, begin + word.end);
}

qsizetype CodeView::below(int n_lines) const {
    const int line = source_->lineAt(cursor_);
    const int target = std::clamp(line + n_lines, 0, source_->numLines() - 1);
    const qsizetype column = cursor_ - source_->begin(line);
    return source_->begin(target) + std::min(column, source_->line(target).size());
}

qsizetype CodeView::keyTarget(const QKeyEvent& event, bool& is_selecting) const {
    const int line = source_->lineAt(cursor_);
    const int page = std::max(1, static_cast<int>(viewport()->height() / line_height_) - 1);
    const qsizetype size = toPlainText().size();

    struct Move {
        QKeySequence::StandardKey move;
        QKeySequence::StandardKey select;
        qsizetype target;
    };

    using Keys = QKeySequence;
    const std::array<Move, 10> moves = {{
        {Keys::MoveToNextChar, Keys::SelectNextChar, std::min(cursor_ + 1, size)},
        {Keys::MoveToPreviousChar, Keys::SelectPreviousChar, std::max<qsizetype>(0, cursor_ - 1)},
        {Keys::MoveToNextLine, Keys::SelectNextLine, below(1)},
        {Keys::MoveToPreviousLine, Keys::SelectPreviousLine, below(-1)},
        {Keys::MoveToNextPage, Keys::SelectNextPage, below(page)},
        {Keys::MoveToPreviousPage, Keys::SelectPreviousPage, below(-page)},
        {Keys::MoveToStartOfLine, Keys::SelectStartOfLine, source_->begin(line)},
        {Keys::MoveToEndOfLine, Keys::SelectEndOfLine,
         source_->begin(line) + source_->line(line).size()},
        {Keys::MoveToStartOfDocument, Keys::SelectStartOfDocument, 0},
        {Keys::MoveToEndOfDocument, Keys::SelectEndOfDocument, size},
    }};
    for (const Move& move : moves) {
        is_selecting = event.matches(move.select);
        if (is_selecting || event.matches(move.move)) {
            return move.target;
        }
    }
    return -1;
}

void CodeView::keyPressEvent(QKeyEvent* event) {
    bool is_selecting = false;
    const qsizetype target = keyTarget(*event, is_selecting);
    if (target >= 0) {
        select(is_selecting ? anchor_ : target, target);
        showCursor();
    } else if (event->matches(QKeySequence::Copy)) {
        copy();
    } else if (event->matches(QKeySequence::SelectAll)) {
        selectAll();
    } else {
        QAbstractScrollArea::keyPressEvent(event);
    }
}

void CodeView::showCursor() {
    const QRectF at = characterRect(cursor_);
    QScrollBar* down = verticalScrollBar();
    QScrollBar* across = horizontalScrollBar();
    const auto bring = [](QScrollBar* bar, qreal before, qreal after) {
        const qreal distance = before > 0 ? -before : std::max(0.0, after);
        bar->setValue(bar->value() + static_cast<int>(std::ceil(distance)));
    };
    bring(down, kTopPadding - at.top(), at.bottom() - viewport()->height());
    const qreal left = numbersWidth() + kTextPadding;
    bring(across, left - at.left(), at.right() - viewport()->width());
}

void CodeView::contextMenuEvent(QContextMenuEvent* event) {
    QMenu menu(this);
    QAction* copy_action = menu.addAction(tr("Copy"), this, [this] { copy(); });
    copy_action->setEnabled(anchor_ != cursor_);
    menu.addSeparator();
    menu.addAction(tr("Select all"), this, &CodeView::selectAll);
    menu.exec(event->globalPos());
}

void CodeView::focusInEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusInEvent(event);
    viewport()->update();
}

void CodeView::focusOutEvent(QFocusEvent* event) {
    QAbstractScrollArea::focusOutEvent(event);
    viewport()->update();
}

}  // namespace belvedere::app
