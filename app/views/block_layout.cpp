// SPDX-License-Identifier: Apache-2.0
#include "app/views/block_layout.h"

#include <QCoreApplication>
#include <QWidget>
#include <algorithm>
#include <cmath>
#include <iterator>

namespace belvedere::app {

namespace {

constexpr qreal kCodePadding = 12;
constexpr qreal kCodeHeader = 30;
constexpr qreal kQuoteWidth = 14;
constexpr qreal kCellPaddingX = 10;
constexpr qreal kCellPaddingY = 6;
constexpr qreal kPillMargin = 3;

Text headingStyle(int level) {
    return level <= 1 ? Text::Heading1 : level == 2 ? Text::Heading2 : Text::Heading3;
}

/// Lays out all lines below each other; returns the height.
qreal placeLines(QTextLayout& layout, qreal width, qreal line_height) {
    qreal y = 0;
    layout.beginLayout();
    for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
        line.setLineWidth(width);
        const qreal height = std::max(line_height, std::ceil(line.height()));
        line.setPosition(QPointF(0, y + (height - line.height()) / 2));
        y += height;
    }
    layout.endLayout();
    return std::max(y, line_height);
}

qreal layoutHeight(const QTextLayout& layout, qreal line_height) {
    return std::max(line_height, static_cast<qreal>(layout.lineCount()) * line_height);
}

QTextCharFormat formatOf(const TextSpan& span, const BlockStyle& style, const QFont& base) {
    QTextCharFormat format;
    QFont font = base;
    if ((span.style & TextSpan::Bold) != 0U) {
        font.setWeight(QFont::DemiBold);
    }
    if ((span.style & TextSpan::Italic) != 0U) {
        font.setItalic(true);
    }
    if ((span.style & (TextSpan::Code | TextSpan::Citation)) != 0U) {
        const QFont code = style.theme->font(style.code);
        font.setFamilies(code.families());
        font.setPixelSize(std::min(code.pixelSize(), base.pixelSize()));
        font.setWeight(QFont::Normal);
    }
    if ((span.style & TextSpan::Strike) != 0U) {
        font.setStrikeOut(true);
    }
    if ((span.style & TextSpan::Link) != 0U) {
        format.setForeground(style.theme->colour(Colour::Accent));
        font.setUnderline(true);
    }
    if ((span.style & TextSpan::Citation) != 0U) {
        const CitationState state =
            style.citation_state ? style.citation_state(span.target) : CitationState::Unchecked;
        const bool is_missing = state == CitationState::NotInContext;
        format.setForeground(style.theme->colour(is_missing ? Colour::Warning
                                                 : state == CitationState::Unchecked
                                                     ? Colour::TextMuted
                                                     : Colour::Accent));
        font.setStrikeOut(is_missing);
    }
    format.setFont(font);
    return format;
}

/// Formats of spans that overlap are merged by QTextLayout in order; nested emphasis keeps both.
QList<QTextLayout::FormatRange> formatsOf(const std::vector<TextSpan>& spans,
                                          const BlockStyle& style,
                                          const QFont& font) {
    QList<QTextLayout::FormatRange> ranges;
    for (const TextSpan& span : spans) {
        unsigned all = span.style;
        for (const TextSpan& outer : spans) {
            if (outer.begin <= span.begin && outer.end >= span.end) {
                all |= outer.style;
            }
        }
        TextSpan merged = span;
        merged.style = all;
        QTextLayout::FormatRange range;
        range.start = span.begin;
        range.length = span.end - span.begin;
        range.format = formatOf(merged, style, font);
        ranges.push_back(range);
    }
    // Inner spans after outer ones, so that they win.
    std::stable_sort(ranges.begin(), ranges.end(),
                     [](const auto& a, const auto& b) { return a.length > b.length; });
    for (const TextSpan& span : spans) {
        if ((span.style & (TextSpan::Code | TextSpan::Citation)) != 0U) {
            // The room of the pill's ends: after the character before it and after its last one.
            for (const int at : {span.begin - 1, span.end - 1}) {
                if (at >= 0) {
                    QTextLayout::FormatRange range;
                    range.start = at;
                    range.length = 1;
                    range.format.setFontLetterSpacingType(QFont::AbsoluteSpacing);
                    range.format.setFontLetterSpacing(kPillMargin);
                    ranges.push_back(range);
                }
            }
        }
    }
    return ranges;
}

}  // namespace

BlockLayout BlockLayout::make(const MarkdownBlock& block,
                              qreal width,
                              const BlockStyle& style,
                              BlockLayout* previous) {
    BlockLayout layout;
    layout.block_ = block;
    layout.theme_ = style.theme;
    layout.style_ = style;
    layout.width_ = width;
    switch (block.kind) {
        case MarkdownBlock::Kind::Paragraph:
        case MarkdownBlock::Kind::Heading:
            layout.makeText(style);
            break;
        case MarkdownBlock::Kind::Code:
            layout.makeCode(style, previous);
            break;
        case MarkdownBlock::Kind::Rule:
            layout.height_ = 9;
            break;
        case MarkdownBlock::Kind::Table:
            layout.makeTable(style);
            break;
    }
    return layout;
}

qreal BlockLayout::textLeft() const {
    return block_.quote * kQuoteWidth + block_.indent * static_cast<qreal>(theme_->sizes().indent);
}

BlockLayout::Piece BlockLayout::makePiece(const QString& text,
                                          const std::vector<TextSpan>& spans,
                                          QFont font,
                                          qreal line_height,
                                          qreal width,
                                          Qt::Alignment alignment,
                                          const BlockStyle& style) const {
    Piece piece;
    piece.layout = std::make_unique<QTextLayout>(text, font);
    QTextOption option(alignment);
    option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
    piece.layout->setTextOption(option);
    piece.layout->setCacheEnabled(true);
    piece.layout->setFormats(formatsOf(spans, style, font));
    placeLines(*piece.layout, width, line_height);
    for (const TextSpan& span : spans) {
        if ((span.style & (TextSpan::Code | TextSpan::Link | TextSpan::Citation)) != 0U) {
            piece.spans.push_back(span);
        }
    }
    return piece;
}

void BlockLayout::makeText(const BlockStyle& style) {
    const bool is_heading = block_.kind == MarkdownBlock::Kind::Heading;
    const Text text_style = is_heading ? headingStyle(block_.level) : style.text;
    const qreal line_height = theme_->lineHeight(text_style);
    plain_ = block_.text;
    Piece piece = makePiece(plain_, block_.spans, theme_->font(text_style), line_height,
                            std::max(40.0, width_ - textLeft()), Qt::AlignLeft, style);
    piece.position = QPointF(textLeft(), 0);
    const QTextLine last = piece.layout->lineAt(piece.layout->lineCount() - 1);
    height_ = std::max(
        line_height, std::ceil(last.isValid() ? last.y() + (last.height() + line_height) / 2 : 0));
    pieces_.push_back(std::move(piece));
}

void BlockLayout::makeCode(const BlockStyle& style, BlockLayout* previous) {
    const qreal left = textLeft();
    const qreal frame = style.has_code_frame ? kCodeHeader : 0;
    const qreal padding = style.has_code_frame ? kCodePadding : 0;
    const qreal line_height = theme_->lineHeight(style.code);
    const qreal width = std::max(40.0, width_ - left - 2 * padding);
    const QFont font = theme_->font(style.code);
    const Language language =
        block_.language.isEmpty() ? style.language : languageOfFence(block_.language);
    plain_ = block_.text;
    const auto lines = QStringView(plain_).split(QLatin1Char('\n'));
    const bool can_reuse =
        previous != nullptr && previous->width_ == width_ && previous->block_.kind == block_.kind &&
        previous->block_.language == block_.language && previous->textLeft() == left;
    qreal top = frame + (style.has_code_frame ? 2 : 0);
    HighlightState state = 0;
    int offset = 0;
    pieces_.reserve(static_cast<size_t>(lines.size()));
    for (size_t i = 0; i < static_cast<size_t>(lines.size()); ++i) {
        const QStringView line = lines[static_cast<qsizetype>(i)];
        const HighlightState state_before = state;
        const std::vector<CodeSpan> spans = highlightLine(line, language, state);
        Piece piece;
        Piece* old = can_reuse && i < previous->pieces_.size() ? &previous->pieces_[i] : nullptr;
        if (old != nullptr && old->layout && old->state_before == state_before &&
            QStringView(old->layout->text()) == line) {
            piece = std::move(*old);
        } else {
            piece.layout = std::make_unique<QTextLayout>(line.toString(), font);
            QTextOption option;
            option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
            option.setTabStopDistance(4 * QFontMetricsF(font).horizontalAdvance(QLatin1Char(' ')));
            piece.layout->setTextOption(option);
            piece.layout->setCacheEnabled(true);
            QList<QTextLayout::FormatRange> formats;
            for (const CodeSpan& span : spans) {
                QTextLayout::FormatRange range;
                range.start = span.begin;
                range.length = span.length;
                range.format.setForeground(theme_->colour(span.colour));
                formats.push_back(range);
            }
            piece.layout->setFormats(formats);
            placeLines(*piece.layout, width, line_height);
        }
        piece.state_before = state_before;
        piece.position = QPointF(left + padding, top);
        piece.offset = offset;
        top += layoutHeight(*piece.layout, line_height);
        offset += static_cast<int>(line.size()) + 1;
        pieces_.push_back(std::move(piece));
    }
    height_ = top + padding;
    if (style.has_code_frame) {
        copy_button_ = QRectF(width_ - 70, 4, 64, kCodeHeader - 8);
    }
}

void BlockLayout::makeTable(const BlockStyle& style) {
    size_t n_columns = 0;
    for (const auto& row : block_.rows) {
        n_columns = std::max(n_columns, row.size());
    }
    if (n_columns == 0) {
        return;
    }
    const qreal line_height = theme_->lineHeight(Text::Ui);
    const qreal available = std::max(80.0, width_ - textLeft());
    std::vector<qreal> widths(n_columns, 40);
    for (const auto& row : block_.rows) {
        for (size_t column = 0; column < row.size(); ++column) {
            const Piece unbroken =
                makePiece(row[column].text, row[column].spans, theme_->font(Text::UiStrong),
                          line_height, QWIDGETSIZE_MAX, Qt::AlignLeft, style);
            const qreal natural = std::ceil(unbroken.layout->maximumWidth());
            widths[column] = std::max(widths[column], natural + 2 * kCellPaddingX + 2);
        }
    }
    qreal total = 0;
    for (const qreal width : widths) {
        total += width;
    }
    if (total > available) {
        for (qreal& width : widths) {
            width = std::max(48.0, width * available / total);
        }
    }
    qreal top = 0;
    int offset = 0;
    for (size_t r = 0; r < block_.rows.size(); ++r) {
        qreal x = textLeft();
        qreal row_height = line_height;
        for (size_t column = 0; column < block_.rows[r].size(); ++column) {
            const TableCell& cell = block_.rows[r][column];
            Piece piece =
                makePiece(cell.text, cell.spans, theme_->font(r == 0 ? Text::UiStrong : Text::Ui),
                          line_height, widths[column] - 2 * kCellPaddingX, cell.alignment, style);
            piece.position = QPointF(x + kCellPaddingX, top + kCellPaddingY);
            piece.offset = offset;
            plain_ += cell.text +
                      (column + 1 < block_.rows[r].size() ? QLatin1Char('\t') : QLatin1Char('\n'));
            offset = static_cast<int>(plain_.size());
            row_height = std::max(row_height, layoutHeight(*piece.layout, line_height));
            x += widths[column];
            pieces_.push_back(std::move(piece));
        }
        top += row_height + 2 * kCellPaddingY;
        row_lines_.push_back(top);
    }
    plain_.chop(1);
    height_ = top;
}

void BlockLayout::paintSpans(QPainter& painter, const Piece& piece, QPointF origin) const {
    painter.setPen(Qt::NoPen);
    for (const TextSpan& span : piece.spans) {
        if ((span.style & (TextSpan::Code | TextSpan::Citation)) == 0U) {
            continue;
        }
        Colour fill = Colour::CodeInline;
        if ((span.style & TextSpan::Citation) != 0U) {
            const CitationState state = style_.citation_state ? style_.citation_state(span.target)
                                                              : CitationState::Unchecked;
            fill = state == CitationState::NotInContext ? Colour::WarningSoft
                   : state == CitationState::InContext  ? Colour::AccentSoft
                                                        : Colour::CodeInline;
        }
        painter.setBrush(theme_->colour(fill));
        for (int i = 0; i < piece.layout->lineCount(); ++i) {
            const QTextLine line = piece.layout->lineAt(i);
            const int begin = std::max(span.begin, line.textStart());
            const int end = std::min(span.end, line.textStart() + line.textLength());
            if (begin >= end) {
                continue;
            }
            const qreal x1 = line.cursorToX(begin);
            const qreal x2 = line.cursorToX(end);
            const QRectF rect(origin.x() + x1 - kPillMargin, origin.y() + line.y(),
                              x2 - x1 + kPillMargin + (end < span.end ? kPillMargin : 0),
                              line.height());
            painter.drawRoundedRect(rect, theme_->sizes().radius_small,
                                    theme_->sizes().radius_small);
        }
    }
}

void BlockLayout::paint(
    QPainter& painter, QPointF origin, const QRectF& clip, int begin, int end) const {
    const qreal left = textLeft();
    for (int depth = 0; depth < block_.quote; ++depth) {
        painter.fillRect(QRectF(origin.x() + depth * kQuoteWidth, origin.y(), 3, height_),
                         theme_->colour(Colour::Border));
    }
    if (!block_.marker.isEmpty()) {
        painter.setFont(theme_->font(style_.text));
        painter.setPen(theme_->colour(Colour::TextMuted));
        const qreal indent = theme_->sizes().indent;
        painter.drawText(QRectF(origin.x() + left - indent - 14, origin.y(), indent + 14 - 8,
                                theme_->lineHeight(style_.text)),
                         Qt::AlignRight | Qt::AlignVCenter, block_.marker);
    }
    if (block_.kind == MarkdownBlock::Kind::Rule) {
        painter.fillRect(QRectF(origin.x() + left, origin.y() + 4, width_ - left, 1),
                         theme_->colour(Colour::Border));
    }
    if (block_.kind == MarkdownBlock::Kind::Code && style_.has_code_frame) {
        painter.setPen(QPen(theme_->colour(Colour::Border), 1));
        painter.setBrush(theme_->colour(Colour::CodeBackground));
        painter.drawRoundedRect(
            QRectF(origin.x() + left + 0.5, origin.y() + 0.5, width_ - left - 1, height_ - 1),
            theme_->sizes().radius, theme_->sizes().radius);
        painter.setFont(theme_->font(Text::Caption));
        painter.setPen(theme_->colour(Colour::TextMuted));
        painter.drawText(
            QRectF(origin.x() + left + kCodePadding, origin.y(), width_ - 100, kCodeHeader),
            Qt::AlignVCenter | Qt::AlignLeft,
            block_.language.isEmpty() ? QCoreApplication::translate("Transcript", "text")
                                      : block_.language);
    }
    for (const qreal y : row_lines_) {
        painter.fillRect(QRectF(origin.x() + left, origin.y() + y, width_ - left, 1),
                         theme_->colour(Colour::Border));
    }
    for (const Piece& piece : pieces_) {
        const QRectF bounds = piece.layout->boundingRect().translated(piece.position);
        if (bounds.bottom() < clip.top()) {
            continue;
        }
        if (bounds.top() > clip.bottom() && block_.kind == MarkdownBlock::Kind::Code) {
            break;  // lines stand below each other
        }
        paintSpans(painter, piece, origin + piece.position);
        QList<QTextLayout::FormatRange> selections;
        const int length = static_cast<int>(piece.layout->text().size());
        const int from = std::clamp(begin - piece.offset, 0, length);
        const int to = std::clamp(end - piece.offset, 0, length);
        if (from < to) {
            QTextLayout::FormatRange range;
            range.start = from;
            range.length = to - from;
            range.format.setBackground(theme_->colour(Colour::Selection));
            selections.push_back(range);
        }
        painter.setPen(theme_->colour(style_.colour));
        piece.layout->draw(&painter, origin + piece.position, selections);
    }
}

const BlockLayout::Piece* BlockLayout::pieceAt(QPointF point) const {
    const Piece* best = nullptr;
    qreal best_distance = 0;
    for (const Piece& piece : pieces_) {
        const QRectF bounds = piece.layout->boundingRect().translated(piece.position);
        const qreal dy = std::max({0.0, bounds.top() - point.y(), point.y() - bounds.bottom()});
        const qreal dx = std::max({0.0, bounds.left() - point.x(), point.x() - bounds.right()});
        const qreal distance = dy * 1000 + dx;  // the line first, then the column
        if (best == nullptr || distance < best_distance) {
            best = &piece;
            best_distance = distance;
        }
    }
    return best;
}

int BlockLayout::offsetAt(QPointF point) const {
    const Piece* piece = pieceAt(point);
    if (piece == nullptr) {
        return 0;
    }
    const QPointF inside = point - piece->position;
    for (int i = 0; i < piece->layout->lineCount(); ++i) {
        const QTextLine line = piece->layout->lineAt(i);
        if (inside.y() < line.y() + line.height() || i + 1 == piece->layout->lineCount()) {
            return piece->offset + line.xToCursor(inside.x());
        }
    }
    return piece->offset;
}

const TextSpan* BlockLayout::spanAt(QPointF point) const {
    for (const Piece& piece : pieces_) {
        for (const TextSpan& span : piece.spans) {
            if ((span.style & (TextSpan::Link | TextSpan::Citation)) == 0U) {
                continue;
            }
            for (int i = 0; i < piece.layout->lineCount(); ++i) {
                const QTextLine line = piece.layout->lineAt(i);
                const int begin = std::max(span.begin, line.textStart());
                const int end = std::min(span.end, line.textStart() + line.textLength());
                if (begin < end) {
                    const QRectF rect(piece.position.x() + line.cursorToX(begin) - kPillMargin,
                                      piece.position.y() + line.y() - 2,
                                      line.cursorToX(end) - line.cursorToX(begin) + 2 * kPillMargin,
                                      line.height() + 4);
                    if (rect.contains(point)) {
                        return &span;
                    }
                }
            }
        }
    }
    return nullptr;
}

std::vector<TextSpan> BlockLayout::targets() const {
    std::vector<TextSpan> targets;
    for (const Piece& piece : pieces_) {
        std::copy_if(piece.spans.begin(), piece.spans.end(), std::back_inserter(targets),
                     [](const TextSpan& span) {
                         return (span.style & (TextSpan::Link | TextSpan::Citation)) != 0U;
                     });
    }
    return targets;
}

QRectF BlockLayout::spanRect(const TextSpan& wanted) const {
    for (const Piece& piece : pieces_) {
        for (const TextSpan& span : piece.spans) {
            if (span == wanted) {
                const QTextLine line = piece.layout->lineForTextPosition(span.begin);
                const int end = std::min(span.end, line.textStart() + line.textLength());
                const qreal left = line.cursorToX(span.begin);
                return {piece.position.x() + left, piece.position.y() + line.y(),
                        line.cursorToX(end) - left, line.height()};
            }
        }
    }
    return {};
}

QString BlockLayout::copyText(int begin, int end) const {
    QString text;
    int at = begin;
    if (block_.kind != MarkdownBlock::Kind::Table) {
        for (const TextSpan& span : block_.spans) {
            if ((span.style & TextSpan::Citation) != 0U && span.begin >= at && span.end <= end) {
                text += QStringView(plain_).mid(at, span.begin - at);
                text += QLatin1Char('[') + span.target + QLatin1Char(']');
                at = span.end;
            }
        }
    }
    text += QStringView(plain_).mid(at, end - at);
    text.replace(QChar(QChar::LineSeparator), QLatin1Char('\n'));
    if (begin == 0 && !block_.marker.isEmpty()) {
        text.prepend(
            QString(std::max(0, block_.indent - 1) * 2, QLatin1Char(' ')) +
            (block_.marker == QString(QChar(0x2022)) ? QStringLiteral("-") : block_.marker) +
            QLatin1Char(' '));
    }
    return text;
}

}  // namespace belvedere::app
