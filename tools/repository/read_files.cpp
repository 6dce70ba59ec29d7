// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/read_files.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "kernels/base/log.h"
#include "tools/repository/filter.h"
#include "tools/repository/source_text.h"

namespace belvedere::tools {
namespace {

/// How far the workers may be ahead of the taker: at most so many files of max_file_bytes wait.
constexpr size_t kWindow = 64;

void skipFile(ReadResult& result, Skip skip) {
    result.record.skip = skip.reason;
    result.record.detail = std::move(skip.detail);
    result.record.pieces.clear();
    result.content = {};
}

bool isSameRecord(const FileRecord& a, const FileRecord& b) {
    return a.stamp == b.stamp && a.hash == b.hash && a.skip == b.skip && a.detail == b.detail;
}

/// Compares with the stored record, so that only differences are written.
void compare(ReadResult& result, const FileRecord* old) {
    if (old == nullptr) {
        result.is_changed = true;
        result.is_content_changed = true;
        return;
    }
    result.record.id = old->id;
    result.is_content_changed =
        old->hash != result.record.hash || old->skip.has_value() != result.record.skip.has_value();
    result.is_changed = result.is_content_changed || !isSameRecord(*old, result.record);
}

/// Text, pieces with their tokens, and words unless the stored ones stay.
void digest(const ReadJob& job,
            std::string_view bytes,
            bool needs_words,
            ReadResult& result,
            const std::stop_token& stop) {
    FileRecord& record = result.record;
    if (auto skip = skipByContent(bytes)) {
        return skipFile(result, std::move(*skip));
    }
    size_t bad_line = 0;
    std::optional<SourceText> source = readSourceText(bytes, bad_line);
    if (!source) {
        return skipFile(
            result,
            {SkipReason::NotText,
             fmt::format("invalid UTF-8 from line {} on: convert it to have it read", bad_line)});
    }
    record.n_repaired = source->n_repaired;
    record.n_bytes = source->text.size();
    const std::vector<std::string_view> lines = splitLines(source->text);
    const std::vector<PieceLines> pieces = cutIntoPieces(source->text);
    if (pieces.size() >= (size_t{1} << kPieceBits)) {
        return skipFile(result, {SkipReason::TooLarge, fmt::format("{} lines", lines.size())});
    }
    for (const PieceLines& piece : pieces) {
        if (stop.stop_requested()) {
            return;
        }
        const size_t n_tokens = job.counter.encode(pieceText(record.path, lines, piece)).size();
        record.pieces.push_back({static_cast<uint32_t>(piece.first_line),
                                 static_cast<uint32_t>(piece.last_line),
                                 static_cast<uint32_t>(n_tokens)});
    }
    if (needs_words) {
        result.content.words = wordsOfPieces(record.path, lines, pieces);
        result.content.text = std::move(source->text);
    }
}

/// Worker threads that read ahead, and a taker that sees their results in order.
class ReadAhead {
  public:
    ReadAhead(const ReadJob& job, const std::vector<FileTask>& tasks, const std::stop_token& stop)
        : job_(job), tasks_(tasks), slots_(kWindow), cancel_(stop, [this] { stopWorkers(); }) {
        size_t n_threads =
            job.config.n_threads != 0 ? job.config.n_threads : std::thread::hardware_concurrency();
        n_threads = std::clamp<size_t>(n_threads, 1, std::max<size_t>(tasks.size(), 1));
        for (size_t i = 0; i < n_threads; ++i) {
            workers_.emplace_back([this] { work(stop_workers_.get_token()); });
        }
    }

    ~ReadAhead() { stopWorkers(); }

    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    /// The next result in order; nullopt after a tenth of a second without one.
    std::optional<ReadResult> take() {
        constexpr std::chrono::milliseconds kPatience(100);
        std::unique_lock lock(mutex_);
        std::optional<ReadResult>& slot = slots_[n_taken_ % kWindow];
        if (!ready_.wait_for(lock, kPatience,
                             [&] { return slot.has_value() || stop_workers_.stop_requested(); }) ||
            !slot) {
            return std::nullopt;
        }
        std::optional<ReadResult> result = std::move(slot);
        slot.reset();
        ++n_taken_;
        lock.unlock();
        room_.notify_one();
        return result;
    }

  private:
    void stopWorkers() {
        stop_workers_.request_stop();
        room_.notify_all();
        ready_.notify_all();
    }

    void work(const std::stop_token& stop) {
        SafeReader reader(job_.root);
        while (true) {
            std::unique_lock lock(mutex_);
            const auto has_room = [this] {
                return n_claimed_ == tasks_.size() || n_claimed_ < n_taken_ + kWindow;
            };
            if (!room_.wait(lock, stop, has_room) || n_claimed_ == tasks_.size()) {
                room_.notify_all();  // the others shall see the end too
                return;
            }
            const size_t index = n_claimed_++;
            lock.unlock();
            std::optional<ReadResult> result =
                readOneFile(job_, reader, *tasks_[index].path, tasks_[index].old, stop);
            if (stop.stop_requested()) {
                return;
            }
            lock.lock();
            slots_[index % kWindow] = std::move(result);
            lock.unlock();
            ready_.notify_one();
        }
    }

    const ReadJob& job_;
    const std::vector<FileTask>& tasks_;
    std::mutex mutex_;
    std::condition_variable_any room_;
    std::condition_variable_any ready_;
    std::vector<std::optional<ReadResult>> slots_;  ///< of file i: slot i % kWindow
    size_t n_claimed_ = 0;
    size_t n_taken_ = 0;
    std::stop_source stop_workers_;
    std::stop_callback<std::function<void()>> cancel_;
    std::vector<std::jthread> workers_;  // last: joins before the state above dies
};

}  // namespace

ReadResult readOneFile(const ReadJob& job,
                       SafeReader& reader,
                       const std::string& path,
                       const FileRecord* old,
                       const std::stop_token& stop) {
    ReadResult result;
    result.record.path = path;
    if (auto skip = skipByName(path)) {
        skipFile(result, std::move(*skip));
        compare(result, old);
        return result;
    }
    const uint64_t max_bytes = job.config.max_file_bytes;
    Result<FileStamp> stamp = reader.stamp(path);
    const bool is_small = stamp.has_value() && stamp->size_bytes <= max_bytes;
    const bool is_kept = old != nullptr && is_small && old->stamp == *stamp &&
                         old->skip != SkipReason::TooLarge &&
                         (job.is_counter_same || old->skip.has_value());
    if (is_kept) {
        result.record = *old;
        return result;
    }
    std::string bytes;
    if (is_small) {
        stamp = reader.read(path, max_bytes, bytes);
        result.was_read = stamp.has_value();
    }
    if (!stamp.has_value()) {
        skipFile(result, {SkipReason::Unreadable, stamp.error().message});
        compare(result, old);
        return result;
    }
    if (!is_small) {
        skipFile(result, skipTooLarge(stamp->size_bytes, max_bytes));
        compare(result, old);
        return result;
    }
    result.record.stamp = stamp->mtime_ns < job.unsettled_since_ns ? *stamp : FileStamp{};
    result.record.hash = contentHash(bytes);
    const bool is_same_content =
        old != nullptr && old->hash == result.record.hash && !old->skip.has_value();
    if (is_same_content && job.is_counter_same) {
        const FileStamp new_stamp = result.record.stamp;
        result.record = *old;
        result.record.stamp = new_stamp;
        result.is_changed = new_stamp != old->stamp;
        return result;
    }
    digest(job, bytes, !is_same_content, result, stop);
    compare(result, old);
    result.is_changed = true;
    return result;
}

Result<void> readFiles(const ReadJob& job,
                       const std::vector<FileTask>& tasks,
                       const std::function<Result<void>(ReadResult&&)>& take,
                       const std::function<void()>& idle,
                       const std::stop_token& stop) {
    ReadAhead ahead(job, tasks, stop);
    for (size_t n_taken = 0; n_taken < tasks.size();) {
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "reading {}: cancelled", job.root.native());
        }
        if (std::optional<ReadResult> result = ahead.take()) {
            ++n_taken;
            BV_TRY(take(std::move(*result)));
        }
        idle();
    }
    return {};
}

}  // namespace belvedere::tools
