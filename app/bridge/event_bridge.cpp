// SPDX-License-Identifier: Apache-2.0
#include "app/bridge/event_bridge.h"

#include <utility>
#include <variant>

namespace belvedere::app {

namespace {

/// Appends `next` to `last` where both are the same kind of text of the same turn.
template <class Delta>
bool merged(agent::Event& last, const agent::Event& next) {
    auto* first = std::get_if<Delta>(&last.payload);
    const auto* second = std::get_if<Delta>(&next.payload);
    if (first == nullptr || second == nullptr || last.turn != next.turn) {
        return false;
    }
    first->text += second->text;
    return true;
}

}  // namespace

EventBridge::EventBridge(QObject* parent) : QObject(parent) {
    timer_.setSingleShot(true);
    timer_.setTimerType(Qt::PreciseTimer);
    connect(&timer_, &QTimer::timeout, this, &EventBridge::drain);
}

void EventBridge::post(agent::Event event) {
    {
        const std::lock_guard lock(mutex_);
        if (!pending_.empty() && (merged<agent::TextDelta>(pending_.back(), event) ||
                                  merged<agent::ThinkingDelta>(pending_.back(), event))) {
            return;  // something is pending, so a call is scheduled
        }
        pending_.push_back(std::move(event));
        if (std::exchange(is_scheduled_, true)) {
            return;
        }
    }
    QMetaObject::invokeMethod(this, &EventBridge::schedule, Qt::QueuedConnection);
}

void EventBridge::schedule() {
    if (since_drain_.isValid() && since_drain_.elapsed() < kFrame) {
        timer_.start(kFrame - static_cast<int>(since_drain_.elapsed()));
    } else {
        drain();
    }
}

void EventBridge::drain() {
    std::vector<agent::Event> events;
    {
        const std::lock_guard lock(mutex_);
        events.swap(pending_);
        is_scheduled_ = false;
    }
    since_drain_.start();
    Q_EMIT arrived(events);
}

}  // namespace belvedere::app
