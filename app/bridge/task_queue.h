// SPDX-License-Identifier: Apache-2.0
#pragma once

// Work that a widget must not wait for: one thread, jobs in order. runTask() gives a job's value
// back on the GUI thread. The destructor asks the running job to stop, drops the waiting ones and
// joins.

#include <QCoreApplication>
#include <QObject>
#include <QPointer>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace belvedere::app {

class TaskQueue {
  public:
    using Task = std::function<void(std::stop_token)>;

    TaskQueue();
    ~TaskQueue();
    TaskQueue(const TaskQueue&) = delete;
    TaskQueue& operator=(const TaskQueue&) = delete;

    /// Any thread. A task that throws is logged.
    void post(Task task);

    /// Waits until every task posted so far has run. For tearing down and tests.
    void drain();

  private:
    void run(std::stop_token stop);

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Task> tasks_;
    bool is_busy_ = false;
    std::jthread thread_;  // last: joins before the state above dies
};

/// Calls function on the GUI thread, from any thread.
template <class Function>
void postToGui(Function function) {
    QMetaObject::invokeMethod(qApp, std::move(function), Qt::QueuedConnection);
}

/// Runs work(stop) on the queue and then(value) on the GUI thread, if `context` is alive by then.
template <class Work, class Then>
void runTask(TaskQueue& queue, QObject* context, Work work, Then then) {
    const QPointer<QObject> guard(context);
    queue.post(
        [guard, work = std::move(work), then = std::move(then)](std::stop_token stop) mutable {
            // Shared only to let the value travel in a copyable function: one owner at a time.
            using Value = decltype(work(stop));
            auto value = std::make_shared<Value>(work(stop));
            postToGui([guard, value = std::move(value), then = std::move(then)]() mutable {
                if (guard) {
                    then(std::move(*value));
                }
            });
        });
}

}  // namespace belvedere::app
