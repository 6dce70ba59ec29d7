// SPDX-License-Identifier: Apache-2.0
#include "app/bridge/task_queue.h"

#include <exception>

#include "kernels/base/log.h"

namespace belvedere::app {

TaskQueue::TaskQueue() : thread_([this](std::stop_token stop) { run(std::move(stop)); }) {}

TaskQueue::~TaskQueue() {
    {
        const std::lock_guard lock(mutex_);
        tasks_.clear();
    }
    thread_.request_stop();
}

void TaskQueue::post(Task task) {
    {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
}

void TaskQueue::drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty() && !is_busy_; });
}

void TaskQueue::run(std::stop_token stop) {
    while (true) {
        Task task;
        {
            std::unique_lock lock(mutex_);
            is_busy_ = false;
            changed_.notify_all();
            if (!changed_.wait(lock, stop, [this] { return !tasks_.empty(); })) {
                return;
            }
            task = std::move(tasks_.front());
            tasks_.pop_front();
            is_busy_ = true;
        }
        try {
            task(stop);
        } catch (const std::exception& error) {
            BV_LOG(LogLevel::Error, "app", "background task failed error={}", error.what());
        }
    }
}

}  // namespace belvedere::app
