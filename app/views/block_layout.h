// SPDX-License-Identifier: Apache-2.0
#pragma once

// One Markdown block laid out for a width: painted, hit-tested and selected by character. A block
// of code keeps a text layout a line, so that a growing block lays out its new lines only. GUI
// thread only.

#include <QPainter>
#include <QPointF>
#include <QString>
#include <QTextLayout>
#include <functional>
#include <memory>
#include <vector>

#include "app/theme/highlighter.h"
#include "app/theme/markdown.h"
#include "app/theme/theme.h"

namespace belvedere::app {

enum class CitationState { Unchecked, InContext, NotInContext };

/// How a block is drawn beside what it says.
struct BlockStyle {
    const Theme* theme = nullptr;
    Text text = Text::Body;
    Text code = Text::Code;
    Colour colour = Colour::Text;
    bool has_code_frame = true;           ///< language and copy button above code
    Language language = Language::Plain;  ///< of a code block without a fence word
    std::function<CitationState(const QString& target)> citation_state;
};

class BlockLayout {
  public:
    /// Lays a block out; takes over what `previous` (of the same place, width and style) has in
    /// common.
    static BlockLayout make(const MarkdownBlock& block,
                            qreal width,
                            const BlockStyle& style,
                            BlockLayout* previous);

    [[nodiscard]] const MarkdownBlock& block() const { return block_; }

    [[nodiscard]] qreal height() const { return height_; }

    [[nodiscard]] qreal width() const { return width_; }

    /// What selection offsets count.
    [[nodiscard]] const QString& plainText() const { return plain_; }

    /// For the clipboard: citations in brackets, list items with their marker.
    [[nodiscard]] QString copyText(int begin, int end) const;

    /// Characters [begin, end) are drawn as selected. Only lines that cut `clip` (block
    /// coordinates) are drawn.
    void paint(QPainter& painter, QPointF origin, const QRectF& clip, int begin, int end) const;

    /// Nearest character to a point in block coordinates.
    [[nodiscard]] int offsetAt(QPointF point) const;
    /// The link or citation under the point; nullptr: none.
    [[nodiscard]] const TextSpan* spanAt(QPointF point) const;
    /// Links and citations in reading order.
    [[nodiscard]] std::vector<TextSpan> targets() const;
    /// Where the span begins: its part on the first line.
    [[nodiscard]] QRectF spanRect(const TextSpan& span) const;

    /// The copy button of a block of code, empty for other blocks.
    [[nodiscard]] QRectF copyButton() const { return copy_button_; }

    // Where it stands in its row; set by the row.
    qreal row_x = 0;
    qreal row_y = 0;

  private:
    struct Piece {
        std::unique_ptr<QTextLayout> layout;
        QPointF position;
        int offset = 0;  ///< of its first character in plain_
        HighlightState state_before = 0;
        std::vector<TextSpan> spans;  ///< those that paint a background or react
    };

    void makeText(const BlockStyle& style);
    void makeCode(const BlockStyle& style, BlockLayout* previous);
    void makeTable(const BlockStyle& style);
    Piece makePiece(const QString& text,
                    const std::vector<TextSpan>& spans,
                    QFont font,
                    qreal line_height,
                    qreal width,
                    Qt::Alignment alignment,
                    const BlockStyle& style) const;
    void paintSpans(QPainter& painter, const Piece& piece, QPointF origin) const;
    [[nodiscard]] const Piece* pieceAt(QPointF point) const;
    [[nodiscard]] qreal textLeft() const;

    MarkdownBlock block_;
    const Theme* theme_ = nullptr;
    BlockStyle style_;
    qreal width_ = 0;
    qreal height_ = 0;
    QString plain_;
    std::vector<Piece> pieces_;
    std::vector<qreal> row_lines_;  ///< Table: y of the lines between rows
    QRectF copy_button_;
};

}  // namespace belvedere::app
