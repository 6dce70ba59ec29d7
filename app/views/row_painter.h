// SPDX-License-Identifier: Apache-2.0
#pragma once

// Paints a row that is laid out. GUI thread only.

#include <QPainter>
#include <QPointF>
#include <QRectF>

#include "app/views/row_layout.h"

namespace belvedere::app {

/// Characters of a row that are selected: from `begin` in block first_block to `end` in last_block.
struct RowSelection {
    int first_block = 0;
    int begin = 0;
    int last_block = -1;  ///< below first_block: nothing is selected
    int end = 0;
};

/// `clip` in row coordinates: only what cuts it is painted. `hovered` is the area under the
/// pointer.
void paintRow(QPainter& painter,
              const RowLayout& row,
              QPointF origin,
              const QRectF& clip,
              const RowSelection& selection,
              const RowLayout::Area* hovered,
              const Theme& theme);

}  // namespace belvedere::app
