// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carries the agent's events from any thread to the GUI thread. post() appends to a vector under a
// mutex and schedules one call if none is pending; the GUI thread swaps the vector out and hands
// the whole batch on. Adjacent text deltas of a turn are merged, nothing else is. Batches are at
// least kFrame apart, so that a fast model does not take the processor it runs on for painting.

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <chrono>
#include <mutex>
#include <vector>

#include "agent/events.h"

namespace belvedere::app {

class EventBridge : public QObject, public agent::EventSink {
    Q_OBJECT

  public:
    explicit EventBridge(QObject* parent = nullptr);

    /// Any thread.
    void post(agent::Event event) override;

  Q_SIGNALS:
    /// On the thread of this object.
    void arrived(const std::vector<belvedere::agent::Event>& events);

  private:
    static constexpr int kFrame = 16;  // ms

    void schedule();
    void drain();

    std::mutex mutex_;
    std::vector<agent::Event> pending_;
    bool is_scheduled_ = false;
    QTimer timer_;
    QElapsedTimer since_drain_;
};

}  // namespace belvedere::app
