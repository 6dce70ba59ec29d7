// SPDX-License-Identifier: Apache-2.0
#pragma once

// The search database of one repository: what each file was when it was read (so that an unchanged
// one is not read again), its text, its pieces, the words of each piece for BM25 (SQLite FTS5) and
// the names each piece defines.
//
// Words: a row is a piece: file id * 2^20 + number of the piece in its file. An update is one
// transaction: it becomes visible whole or not at all. A database that is damaged, of another
// version or another folder is made anew: it holds nothing that cannot be read again.
//
// Threads: one at a time per SearchIndex (the repository's lock); an update has a connection of its
// own.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"
#include "tools/repository/database.h"
#include "tools/repository/repository.h"
#include "tools/repository/safe_reader.h"

namespace belvedere::tools {

inline constexpr int kPieceBits =
    20;  ///< of a row; more pieces than 2^20 in a file are refused as too large

struct PieceRecord {
    uint32_t first_line = 0;
    uint32_t last_line = 0;
    uint32_t n_tokens = 0;
};

/// A file as the last ingestion found it; skipped ones too, so that they are not read again.
struct FileRecord {
    int64_t id = 0;
    std::string path;
    FileStamp stamp;
    uint64_t hash = 0;
    uint64_t n_bytes = 0;  ///< of the text
    size_t n_repaired = 0;
    std::optional<SkipReason> skip;
    std::string detail;
    std::vector<PieceRecord> pieces;
};

/// What the search compares of one piece.
struct PieceWords {
    struct Name {
        std::string name;
        float weight = 0;
    };

    std::string path;
    std::string definitions;
    std::string text;
    std::vector<Name> names;
};

/// The words of every piece; the same for the same path and text, so that they can be taken out of
/// the index again.
[[nodiscard]] std::vector<PieceWords> wordsOfPieces(std::string_view path,
                                                    const std::vector<std::string_view>& lines,
                                                    const std::vector<PieceLines>& pieces);

struct PieceMatch {
    int64_t row = 0;
    double score = 0;
};

struct NameMatch {
    int64_t row = 0;
    double weight = 0;
    std::string name;
};

class IndexUpdate;

class SearchIndex {
  public:
    /// `file` empty: in memory. Errors: Io.
    static Result<std::shared_ptr<SearchIndex>> open(const std::filesystem::path& file,
                                                     const std::string& root);

    /// Errors: Corrupt, Io.
    [[nodiscard]] Result<std::vector<FileRecord>> files();
    [[nodiscard]] Result<std::string> counterKey();

    /// Pieces with any of the words, best first, at most `limit`; greater scores are better.
    [[nodiscard]] Result<std::vector<PieceMatch>> match(const std::vector<std::string>& words,
                                                        size_t limit);

    /// In how many pieces a word stands.
    [[nodiscard]] Result<size_t> pieceCount(std::string_view word);

    /// Pieces that define `name`, compared in lower case.
    [[nodiscard]] Result<std::vector<NameMatch>> definitionsOf(std::string_view name, size_t limit);

    [[nodiscard]] Result<std::string> text(int64_t file_id);

    /// Throws away what is stored and begins empty: after Corrupt.
    [[nodiscard]] Result<void> recreate();

    /// From any thread: a query that runs ends with Cancelled.
    void interrupt() { database_->interrupt(); }

    [[nodiscard]] Result<std::unique_ptr<IndexUpdate>> beginUpdate();

  private:
    friend class IndexUpdate;

    SearchIndex(std::filesystem::path file, std::string root)
        : file_(std::move(file)), root_(std::move(root)) {}

    static Result<Database> openDatabase(const std::filesystem::path& file,
                                         const std::string& root);
    Result<void> prepare();

    std::filesystem::path file_;
    std::string root_;
    std::optional<Database> database_;
    std::optional<Statement> match_;
    std::optional<Statement> count_;
    std::optional<Statement> names_;
    std::optional<Statement> text_;
};

/// A file's text and the words of its pieces; both empty where the file is skipped.
struct DigestedContent {
    std::string text;
    std::vector<PieceWords> words;
};

/// Dropped without commit, it leaves no trace.
class IndexUpdate {
  public:
    /// Replaces the file's record; its text and words stay where `content` is null (only counts or
    /// times changed). A record with id 0 gets a new id.
    [[nodiscard]] Result<void> put(FileRecord& record, const DigestedContent* content);
    [[nodiscard]] Result<void> remove(const FileRecord& record);

    /// What the index is after the update; the old SearchIndex must not be used any more.
    [[nodiscard]] Result<std::shared_ptr<SearchIndex>> commit(std::string_view counter_key);

  private:
    friend class SearchIndex;

    explicit IndexUpdate(std::shared_ptr<SearchIndex> index) : index_(std::move(index)) {}

    Result<void> prepare();
    Result<void> removeWords(int64_t file_id, std::string_view path);
    Result<void> addWords(int64_t file_id, const std::vector<PieceWords>& words);

    std::shared_ptr<SearchIndex> index_;  ///< on the connection of the update
    std::optional<Statement> put_file_;
    std::optional<Statement> put_text_;
    std::optional<Statement> put_words_;
    std::optional<Statement> put_name_;
    std::optional<Statement> take_words_;
    std::optional<Statement> take_names_;
    std::optional<Statement> take_text_;
    std::optional<Statement> take_file_;
};

}  // namespace belvedere::tools
