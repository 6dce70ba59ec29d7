// SPDX-License-Identifier: Apache-2.0
#pragma once

// A door of its own: a folder read as a body of source text. attach() looks at it, ingest() walks,
// filters, cuts and tokenizes it in parallel on the caller's thread and a pool of its own, choose()
// picks pieces for a question, tree() is what the window shows. Any thread; ingest() one at a time.
//
// Words: a file is what git tracks, or does not ignore; a piece is at most 32 lines of one file; a
// skip is a file left out, with its reason.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/context_source.h"
#include "agent/token_counter.h"
#include "kernels/base/result.h"

namespace belvedere::tools {

struct RepositoryConfig {
    size_t n_threads = 0;                ///< 0: one per core
    uint64_t max_file_bytes = 1U << 20;  ///< larger files are skipped
    size_t max_files = 500'000;
    std::filesystem::path index_dir{};  ///< where the search database stands; empty: in memory
};

enum class SkipReason {
    Binary,
    TooLarge,
    Generated,
    Secret,
    Unreadable,
    NotText,
    Submodule,  ///< or another repository inside this one
    TooMany,
    OutsideLink,
    InsideLink,     ///< a link to something that is read under its own name, or is ignored
    LfsPointer,     ///< Git LFS: the content is not in the folder
    NotCheckedOut,  ///< tracked, but a sparse checkout left it out
};

[[nodiscard]] const char* skipReasonName(
    SkipReason reason);  ///< for people: "binary", "looks like a secret"

struct SkippedFile {
    std::string path;
    SkipReason reason = SkipReason::Binary;
    std::string detail;  ///< "3.2 MiB, limit 1 MiB", "private key header", the error of the system
};

struct IngestProgress {
    size_t n_files_done = 0;
    size_t n_files_total = 0;  ///< 0 while walking
    uint64_t n_bytes = 0;
    size_t n_tokens = 0;
};

struct IngestReport {
    size_t n_files = 0;
    size_t n_pieces = 0;
    uint64_t n_bytes = 0;
    size_t n_tokens = 0;
    size_t n_folders = 0;
    size_t n_read = 0;  ///< files read by this ingestion; the others are as the last one left them
    size_t n_repaired = 0;  ///< files in which a few invalid bytes of UTF-8 read as U+FFFD
    std::vector<SkippedFile> skipped;
    double walk_seconds = 0;
    double read_seconds = 0;   ///< read, filter, cut and tokenize
    double index_seconds = 0;  ///< search database
    bool is_git = false;
    std::string head;  ///< commit id, empty without git
};

/// Folders and files with their tokens; children follow their parent's index.
struct TreeNode {
    std::string name;
    std::string path;  ///< relative, "" for the root
    bool is_folder = false;
    size_t n_tokens = 0;
    size_t n_files = 0;
    int parent = -1;
    std::vector<int> children;  ///< folders first, then files, by name
};

class Repository : public agent::ContextSource {
  public:
    /// Errors: NotFound, InvalidArgument (no folder), Io (not readable).
    static Result<std::shared_ptr<Repository>> attach(
        const std::filesystem::path& root,
        const RepositoryConfig& config,
        std::shared_ptr<const agent::TokenCounter> counter);

    /// Reads everything. Progress is called about ten times a second from the calling thread. A
    /// cancelled or failed ingestion leaves the state of the one before.
    virtual Result<IngestReport> ingest(const std::function<void(const IngestProgress&)>& progress,
                                        std::stop_token stop) = 0;

    [[nodiscard]] virtual bool isIngested() const = 0;
    [[nodiscard]] virtual std::shared_ptr<const std::vector<TreeNode>> tree() const = 0;
    [[nodiscard]] virtual std::shared_ptr<const IngestReport> report() const = 0;

    /// The file as it is on disk now, as text with the lines that citations count: for the source
    /// view. Errors: NotFound, Io, InvalidArgument (outside the folder, larger than 64 MiB, not
    /// text).
    [[nodiscard]] virtual Result<std::string> readFile(std::string_view path) const = 0;
};

/// First and last line (from 1) of each piece of a text, by the rule the default model was trained
/// on.
struct PieceLines {
    size_t first_line = 0;
    size_t last_line = 0;
};

[[nodiscard]] std::vector<PieceLines> cutIntoPieces(std::string_view text);

}  // namespace belvedere::tools
