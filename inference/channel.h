// SPDX-License-Identifier: Apache-2.0
#pragma once

// A bounded queue from one thread to another: the sender waits while it is full, the receiver while
// it is empty.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace belvedere::inference {

template <class T>
class Channel {
  public:
    explicit Channel(size_t capacity) : capacity_(capacity) {}

    /// False where `stop` came before there was room: the value is dropped.
    bool send(T value, const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return queue_.size() < capacity_; })) {
            return false;
        }
        queue_.push_back(std::move(value));
        lock.unlock();
        changed_.notify_all();
        return true;
    }

    /// No more values will come.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        changed_.notify_all();
    }

    /// nullopt when the channel is closed and empty.
    std::optional<T> receive() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
        if (queue_.empty()) {
            return std::nullopt;
        }
        T value = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        changed_.notify_all();
        return value;
    }

  private:
    const size_t capacity_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<T> queue_;
    bool closed_ = false;
};

}  // namespace belvedere::inference
