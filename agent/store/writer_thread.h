// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one thread that touches the database. Writes that wait at the same time share one transaction
// (group commit), each in a savepoint of its own, so that a failing one does not take the others
// with it. A call returns when its transaction is on disk. Callers: any thread but this one.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "agent/store/sqlite.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

class WriterThread {
  public:
    explicit WriterThread(std::unique_ptr<Database> database);
    /// Writes what is queued, drafts included.
    ~WriterThread();
    WriterThread(const WriterThread&) = delete;
    WriterThread& operator=(const WriterThread&) = delete;

    using Work = std::function<Result<void>(Database&)>;

    /// T(Database&) -> Result<Value>, run on the thread; blocks until it is committed.
    template <class Function>
    auto write(Function&& function) {
        return submit(std::forward<Function>(function), JobKind::Write);
    }

    template <class Function>
    auto read(Function&& function) {
        return submit(std::forward<Function>(function), JobKind::Read);
    }

    /// Written some time after, in any case before the next write of the same turn. A newer draft
    /// of the turn replaces an older one that is still waiting.
    void setDraft(uint64_t turn, std::string text);

  private:
    enum class JobKind { Read, Write };

    struct Job {
        JobKind kind = JobKind::Read;
        Work work;
        std::optional<Result<void>> result;  ///< guarded by mutex_; set when done
    };

    template <class Function>
    auto submit(Function&& function, JobKind kind) {
        using Answer = std::invoke_result_t<Function, Database&>;
        std::optional<Answer> answer;
        Job job;
        job.kind = kind;
        job.work = [&](Database& database) -> Result<void> {
            answer.emplace(function(database));
            return answer->has_value() ? Result<void>()
                                       : Result<void>(tl::unexpected<Error>(answer->error()));
        };
        Result<void> outcome = enqueueAndWait(job);
        if (!outcome.has_value()) {
            return Answer(tl::unexpected<Error>(std::move(outcome).error()));
        }
        return std::move(*answer);
    }

    Result<void> enqueueAndWait(Job& job);
    void run(std::stop_token stop);
    std::deque<Job*> takeBatch();
    void runBatch(const std::deque<Job*>& batch, const std::map<uint64_t, std::string>& drafts);
    Result<void> runWrites(const std::deque<Job*>& batch,
                           const std::map<uint64_t, std::string>& drafts,
                           std::deque<Result<void>>& results);

    std::unique_ptr<Database> database_;
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::condition_variable done_;
    std::deque<Job*> queue_;                  ///< jobs live on their callers' stacks
    std::map<uint64_t, std::string> drafts_;  ///< waiting, by turn
    std::jthread thread_;                     // last: joins before the state above dies
};

}  // namespace belvedere::agent
