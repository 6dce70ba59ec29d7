// SPDX-License-Identifier: Apache-2.0
#include "app/views/code_view.h"

#include <QPainter>
#include <QScrollBar>
#include <QTextBlock>
#include <algorithm>
#include <cmath>

namespace belvedere::app {

namespace {

constexpr int kNumbersPadding = 12;
constexpr int kLinesAbove = 4;  // of the marked range

class LanguageHighlighter : public QSyntaxHighlighter {
  public:
    LanguageHighlighter(const Theme& theme, QTextDocument* document)
        : QSyntaxHighlighter(document), theme_(theme) {}

    void setLanguage(Language language) { language_ = language; }

  protected:
    void highlightBlock(const QString& line) override {
        HighlightState state = std::max(0, previousBlockState());
        for (const CodeSpan& span : highlightLine(line, language_, state)) {
            setFormat(span.begin, span.length, theme_.colour(span.colour));
        }
        setCurrentBlockState(state);
    }

  private:
    const Theme& theme_;
    Language language_ = Language::Plain;
};

}  // namespace

/// The strip at the left of a CodeView.
class LineNumbers : public QWidget {
  public:
    explicit LineNumbers(CodeView* view) : QWidget(view), view_(view) {}

  protected:
    void paintEvent(QPaintEvent* event) override { view_->paintNumbers(event); }

  private:
    CodeView* view_;
};

CodeView::CodeView(const Theme& theme, QWidget* parent)
    : QPlainTextEdit(parent),
      theme_(theme),
      highlighter_(new LanguageHighlighter(theme, document())),
      numbers_(new LineNumbers(this)) {
    setReadOnly(true);
    setLineWrapMode(QPlainTextEdit::NoWrap);
    setFrameShape(QFrame::NoFrame);
    setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    setTabChangesFocus(true);
    setAccessibleName(tr("Source"));
    connect(this, &QPlainTextEdit::updateRequest, numbers_, [this](const QRect& rect, int dy) {
        if (dy != 0) {
            numbers_->scroll(0, dy);
        } else {
            numbers_->update(0, rect.y(), numbers_->width(), rect.height());
        }
    });
    connect(this, &QPlainTextEdit::blockCountChanged, this, &CodeView::placeNumbers);
    connect(&theme, &Theme::changed, this, &CodeView::applyTheme);
    applyTheme();
}

void CodeView::applyTheme() {
    setFont(theme_.font(Text::Code));
    setTabStopDistance(4 * QFontMetricsF(font()).horizontalAdvance(QLatin1Char(' ')));
    highlighter_->rehighlight();
    placeNumbers();
}

void CodeView::setSource(const QString& text, Language language) {
    static_cast<LanguageHighlighter*>(highlighter_)->setLanguage(language);
    first_line_ = last_line_ = 0;
    setPlainText(text);
}

void CodeView::markLines(size_t first_line, size_t last_line) {
    const auto n_lines = static_cast<size_t>(blockCount());
    first_line_ = std::min(first_line, n_lines);
    last_line_ = std::clamp(last_line, first_line_, n_lines);
    const int line = std::max(0, static_cast<int>(first_line_) - 1);
    QTextCursor cursor(document()->findBlockByNumber(line));
    setTextCursor(cursor);
    verticalScrollBar()->setValue(std::max(0, line - kLinesAbove));
    horizontalScrollBar()->setValue(0);
    viewport()->update();
    numbers_->update();
}

int CodeView::numbersWidth() const {
    const auto digits = QString::number(std::max(100, blockCount())).size();
    const qreal digit =
        QFontMetricsF(theme_.font(Text::CodeSmall)).horizontalAdvance(QLatin1Char('0'));
    return static_cast<int>(std::ceil(static_cast<qreal>(digits) * digit)) + 2 * kNumbersPadding;
}

void CodeView::placeNumbers() {
    setViewportMargins(numbersWidth(), 0, 0, 0);
    const QRect area = contentsRect();
    numbers_->setGeometry(area.left(), area.top(), numbersWidth(), area.height());
}

void CodeView::resizeEvent(QResizeEvent* event) {
    QPlainTextEdit::resizeEvent(event);
    placeNumbers();
}

void CodeView::paintEvent(QPaintEvent* event) {
    if (first_line_ > 0) {
        QPainter painter(viewport());
        const QColor mark = theme_.colour(Colour::LineHighlight);
        for (QTextBlock block = firstVisibleBlock(); block.isValid(); block = block.next()) {
            const QRectF rect = blockBoundingGeometry(block).translated(contentOffset());
            if (rect.top() > event->rect().bottom()) {
                break;
            }
            const auto line = static_cast<size_t>(block.blockNumber()) + 1;
            if (line >= first_line_ && line <= last_line_) {
                painter.fillRect(QRectF(0, rect.top(), viewport()->width(), rect.height()), mark);
            }
        }
    }
    QPlainTextEdit::paintEvent(event);
}

void CodeView::paintNumbers(QPaintEvent* event) {
    QPainter painter(numbers_);
    painter.fillRect(event->rect(), theme_.colour(Colour::Window));
    painter.setFont(theme_.font(Text::CodeSmall));
    for (QTextBlock block = firstVisibleBlock(); block.isValid(); block = block.next()) {
        const QRectF rect = blockBoundingGeometry(block).translated(contentOffset());
        if (rect.top() > event->rect().bottom()) {
            break;
        }
        const auto line = static_cast<size_t>(block.blockNumber()) + 1;
        const bool is_marked = line >= first_line_ && line <= last_line_;
        if (is_marked) {
            painter.fillRect(QRectF(0, rect.top(), 3, rect.height()),
                             theme_.colour(Colour::Accent));
        }
        painter.setPen(theme_.colour(is_marked ? Colour::Text : Colour::TextFaint));
        painter.drawText(QRectF(0, rect.top(), numbers_->width() - kNumbersPadding, rect.height()),
                         Qt::AlignRight | Qt::AlignVCenter, QString::number(line));
    }
}

}  // namespace belvedere::app
