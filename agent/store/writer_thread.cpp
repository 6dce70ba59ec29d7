// SPDX-License-Identifier: Apache-2.0
#include "agent/store/writer_thread.h"

#include <chrono>

#include "kernels/base/log.h"

namespace belvedere::agent {

namespace {

// A draft is worth a disk flush a few times a second: what a crash may cost is this much of an
// unfinished answer.
constexpr std::chrono::milliseconds kDraftInterval{250};

Result<void> writeDraft(Database& database, uint64_t turn, const std::string& text) {
    // A turn that is gone or has ended keeps no draft.
    Statement statement =
        BV_TRY(database.prepare("INSERT INTO drafts(turn_id, text) SELECT id, ?2 FROM turns WHERE "
                                "id = ?1 AND NOT EXISTS (SELECT 1 FROM events "
                                "WHERE turn_id = ?1 AND type = 'turn_finished') ON "
                                "CONFLICT(turn_id) DO UPDATE SET text = excluded.text"));
    return statement.run(turn, text);
}

/// Runs `work` so that its failure leaves no trace and the transaction goes on.
Result<void> inSavepoint(Database& database, const WriterThread::Work& work) {
    BV_TRY(database.execute("SAVEPOINT job"));
    Result<void> result = work(database);
    if (!result.has_value() && database.inTransaction()) {
        BV_TRY(database.execute("ROLLBACK TO job"));
    }
    if (database.inTransaction()) {
        BV_TRY(database.execute("RELEASE job"));
    }
    return result;
}

}  // namespace

WriterThread::WriterThread(std::unique_ptr<Database> database)
    : database_(std::move(database)),
      thread_([this](std::stop_token stop) { run(std::move(stop)); }) {}

WriterThread::~WriterThread() = default;

Result<void> WriterThread::enqueueAndWait(Job& job) {
    std::unique_lock lock(mutex_);
    queue_.push_back(&job);
    wake_.notify_one();
    done_.wait(lock, [&] { return job.result.has_value(); });
    return std::move(*job.result);
}

void WriterThread::setDraft(uint64_t turn, std::string text) {
    const std::lock_guard lock(mutex_);
    drafts_[turn] = std::move(text);
    wake_.notify_one();
}

void WriterThread::run(std::stop_token stop) {
    auto next_draft = std::chrono::steady_clock::now();
    for (;;) {
        std::deque<Job*> batch;
        std::map<uint64_t, std::string> drafts;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, stop, [this] { return !queue_.empty() || !drafts_.empty(); });
            if (queue_.empty() && !stop.stop_requested()) {
                wake_.wait_until(lock, stop, next_draft, [this] { return !queue_.empty(); });
            }
            if (queue_.empty() && drafts_.empty()) {
                return;  // stopping, and nothing is left
            }
            batch = takeBatch();
            if (batch.empty() || batch.front()->kind == JobKind::Write) {
                drafts.swap(drafts_);
                next_draft = std::chrono::steady_clock::now() + kDraftInterval;
            }
        }
        runBatch(batch, drafts);
    }
}

/// The longest run of jobs of one kind at the front of the queue; reads go one by one. Requires:
/// mutex_ held.
std::deque<WriterThread::Job*> WriterThread::takeBatch() {
    std::deque<Job*> batch;
    while (!queue_.empty()) {
        Job* job = queue_.front();
        if (!batch.empty() &&
            (job->kind == JobKind::Read || batch.front()->kind == JobKind::Read)) {
            break;
        }
        batch.push_back(job);
        queue_.pop_front();
    }
    return batch;
}

void WriterThread::runBatch(const std::deque<Job*>& batch,
                            const std::map<uint64_t, std::string>& drafts) {
    std::deque<Result<void>> results;
    if (!batch.empty() && batch.front()->kind == JobKind::Read) {
        results.push_back(batch.front()->work(*database_));
    } else {
        const Result<void> committed = runWrites(batch, drafts, results);
        if (!committed.has_value()) {
            if (batch.empty()) {
                BV_LOG(LogLevel::Warn, "agent", "draft not saved reason={}",
                       committed.error().message);
            }
            results.assign(batch.size(), committed);
        }
    }
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < batch.size(); ++i) {
        batch[i]->result = std::move(results[i]);
    }
    done_.notify_all();
}

/// One transaction. An error is that of the whole; `results` holds one answer a job.
Result<void> WriterThread::runWrites(const std::deque<Job*>& batch,
                                     const std::map<uint64_t, std::string>& drafts,
                                     std::deque<Result<void>>& results) {
    Transaction transaction = BV_TRY(Transaction::begin(*database_));
    for (const auto& [turn, text] : drafts) {
        const Result<void> saved = inSavepoint(
            *database_, [&](Database& database) { return writeDraft(database, turn, text); });
        if (!saved.has_value()) {
            BV_LOG(LogLevel::Warn, "agent", "draft not saved turn={} reason={}", turn,
                   saved.error().message);
            if (!database_->inTransaction()) {
                return saved;
            }
        }
    }
    for (const Job* job : batch) {
        results.push_back(inSavepoint(*database_, job->work));
        if (!database_->inTransaction()) {  // rolled back as a whole: nobody's work is in the file
            return results.back();
        }
    }
    return transaction.commit();
}

}  // namespace belvedere::agent
