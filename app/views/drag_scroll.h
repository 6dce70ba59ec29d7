// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scrolls a view while a selection is dragged beyond its edge, also when the pointer rests there.
// GUI thread only.

#include <QPointF>
#include <QTimer>
#include <functional>

class QAbstractScrollArea;

namespace belvedere::app {

class DragScroll {
  public:
    /// on_scrolled(point) after each step: the selection reaches to this point of the viewport.
    DragScroll(QAbstractScrollArea& area, std::function<void(QPointF)> on_scrolled);

    /// The pointer stands at this point of the viewport, a button pressed.
    void moveTo(QPointF point);
    void stop();

  private:
    void step();

    QAbstractScrollArea& area_;
    std::function<void(QPointF)> on_scrolled_;
    QPointF point_;
    QTimer timer_;
};

}  // namespace belvedere::app
