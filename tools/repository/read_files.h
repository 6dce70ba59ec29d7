// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parallel part of an ingestion: reads files, filters them, cuts them into pieces, counts their
// tokens and makes their words. Results arrive one by one in the order of the list on the calling
// thread, so that ingesting twice gives the same; memory is bounded, as the workers stay at most
// kWindow files ahead.

#include <chrono>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/token_counter.h"
#include "tools/repository/search_index.h"

namespace belvedere::tools {

struct ReadResult {
    FileRecord record;
    bool is_changed = false;          ///< the stored record must be replaced
    bool is_content_changed = false;  ///< and the stored text and words
    bool was_read = false;
    DigestedContent content;
};

struct ReadJob {
    const std::filesystem::path& root;
    const RepositoryConfig& config;
    const agent::TokenCounter& counter;
    bool is_counter_same = false;  ///< the stored counts are of this tokenizer
    /// Files changed from here on (nanoseconds since the epoch) may change again with the same
    /// time: their stamp is not kept.
    int64_t unsettled_since_ns = 0;
};

/// One file; `old` is its stored record or null. Never fails: what cannot be read is a skip. `stop`
/// leaves it half done.
[[nodiscard]] ReadResult readOneFile(const ReadJob& job,
                                     SafeReader& reader,
                                     const std::string& path,
                                     const FileRecord* old,
                                     const std::stop_token& stop);

struct FileTask {
    const std::string* path = nullptr;
    const FileRecord* old = nullptr;
};

/// Calls `take` for each task in order; `idle` at least ten times a second. Errors: Cancelled, or
/// the first of `take`.
[[nodiscard]] Result<void> readFiles(const ReadJob& job,
                                     const std::vector<FileTask>& tasks,
                                     const std::function<Result<void>(ReadResult&&)>& take,
                                     const std::function<void()>& idle,
                                     const std::stop_token& stop);

}  // namespace belvedere::tools
