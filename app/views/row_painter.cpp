// SPDX-License-Identifier: Apache-2.0
#include "app/views/row_painter.h"

#include <limits>

namespace belvedere::app {

namespace {

void paintBox(QPainter& painter, const RowLayout::Box& box, QPointF origin, const Theme& theme) {
    painter.setPen(box.stroke ? QPen(theme.colour(*box.stroke), 1) : QPen(Qt::NoPen));
    painter.setBrush(theme.colour(box.fill));
    painter.drawRoundedRect(box.rect.translated(origin), box.radius, box.radius);
}

void paintHover(QPainter& painter,
                const RowLayout::Area& area,
                QPointF origin,
                const Theme& theme) {
    QColor shade = theme.colour(Colour::Text);
    shade.setAlpha(16);
    painter.setPen(Qt::NoPen);
    painter.setBrush(shade);
    const qreal radius = theme.sizes().radius_small;
    painter.drawRoundedRect(area.rect.translated(origin), radius, radius);
}

void paintBlocks(QPainter& painter,
                 const RowLayout& row,
                 QPointF origin,
                 const QRectF& clip,
                 const RowSelection& selection) {
    for (size_t i = 0; i < row.blocks.size(); ++i) {
        const BlockLayout& block = row.blocks[i];
        if (block.row_y + block.height() < clip.top() || block.row_y > clip.bottom()) {
            continue;
        }
        const int index = static_cast<int>(i);
        const bool is_selected = index >= selection.first_block && index <= selection.last_block;
        const int begin = index == selection.first_block ? selection.begin : 0;
        const int end =
            index == selection.last_block ? selection.end : std::numeric_limits<int>::max();
        block.paint(painter, origin + QPointF(block.row_x, block.row_y),
                    clip.translated(-block.row_x, -block.row_y), is_selected ? begin : 0,
                    is_selected ? end : 0);
    }
}

}  // namespace

void paintRow(QPainter& painter,
              const RowLayout& row,
              QPointF origin,
              const QRectF& clip,
              const RowSelection& selection,
              const RowLayout::Area* hovered,
              const Theme& theme) {
    painter.setRenderHint(QPainter::Antialiasing);
    for (const RowLayout::Box& box : row.boxes) {
        paintBox(painter, box, origin, theme);
    }
    paintBlocks(painter, row, origin, clip, selection);
    if (hovered != nullptr && hovered->is_button) {
        paintHover(painter, *hovered, origin, theme);
    }
    const qreal ratio = painter.device()->devicePixelRatioF();
    for (const RowLayout::Icon& icon : row.icons) {
        painter.drawPixmap(origin + icon.position,
                           theme.pixmap(icon.name, icon.colour, icon.size, ratio));
    }
    for (const RowLayout::Label& label : row.labels) {
        painter.setFont(theme.font(label.style));
        painter.setPen(theme.colour(label.colour));
        painter.drawText(label.rect.translated(origin),
                         static_cast<int>(label.alignment | Qt::TextSingleLine), label.text);
    }
}

}  // namespace belvedere::app
