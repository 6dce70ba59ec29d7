// SPDX-License-Identifier: Apache-2.0
#include "app/views/drag_scroll.h"

#include <QAbstractScrollArea>
#include <QScrollBar>
#include <algorithm>
#include <utility>

namespace belvedere::app {

namespace {

constexpr int kStepMs = 30;
constexpr qreal kMaxStep = 120;

/// How far a coordinate lies outside [0, size).
qreal beyond(qreal at, int size) {
    return at < 0 ? at : std::max(0.0, at - size);
}

void scroll(QScrollBar* bar, qreal distance) {
    bar->setValue(bar->value() + static_cast<int>(std::clamp(distance, -kMaxStep, kMaxStep)));
}

}  // namespace

DragScroll::DragScroll(QAbstractScrollArea& area, std::function<void(QPointF)> on_scrolled)
    : area_(area), on_scrolled_(std::move(on_scrolled)) {
    timer_.setInterval(kStepMs);
    QObject::connect(&timer_, &QTimer::timeout, &area, [this] { step(); });
}

void DragScroll::moveTo(QPointF point) {
    point_ = point;
    const QSize size = area_.viewport()->size();
    const bool is_outside =
        beyond(point.y(), size.height()) != 0 || beyond(point.x(), size.width()) != 0;
    if (is_outside && !timer_.isActive()) {
        timer_.start();
    } else if (!is_outside) {
        timer_.stop();
    }
}

void DragScroll::stop() {
    timer_.stop();
}

void DragScroll::step() {
    const QSize size = area_.viewport()->size();
    scroll(area_.verticalScrollBar(), beyond(point_.y(), size.height()));
    scroll(area_.horizontalScrollBar(), beyond(point_.x(), size.width()));
    on_scrolled_(point_);
}

}  // namespace belvedere::app
