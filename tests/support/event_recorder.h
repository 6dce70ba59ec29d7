// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collects the events of an agent and waits for them. Any thread.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "agent/events.h"

namespace belvedere::testing {

class EventRecorder : public agent::EventSink {
  public:
    void post(agent::Event event) override {
        {
            const std::lock_guard lock(mutex_);
            events_.push_back(std::move(event));
        }
        changed_.notify_all();
    }

    [[nodiscard]] std::vector<agent::Event> events() const {
        const std::lock_guard lock(mutex_);
        return events_;
    }

    /// Until the events so far are as wanted; false after a minute.
    bool waitUntil(const std::function<bool(const std::vector<agent::Event>&)>& wanted) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return wanted(events_); });
    }

    /// Until an event of type T was posted `count` times; false after a minute.
    template <class T>
    bool waitFor(size_t count = 1) {
        return waitUntil([count](const std::vector<agent::Event>& events) {
            size_t n = 0;
            for (const agent::Event& event : events) {
                n += std::holds_alternative<T>(event.payload) ? 1U : 0U;
            }
            return n >= count;
        });
    }

    /// Copies of all payloads of type T, in order.
    template <class T>
    [[nodiscard]] std::vector<T> all() const {
        const std::lock_guard lock(mutex_);
        std::vector<T> found;
        for (const agent::Event& event : events_) {
            if (const T* payload = std::get_if<T>(&event.payload)) {
                found.push_back(*payload);
            }
        }
        return found;
    }

  private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<agent::Event> events_;
};

}  // namespace belvedere::testing
