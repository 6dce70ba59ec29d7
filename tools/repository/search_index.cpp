// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/search_index.h"

#include <cstring>
#include <system_error>

#include "kernels/base/check.h"
#include "kernels/base/log.h"
#include "tools/repository/definitions.h"
#include "tools/repository/source_text.h"
#include "tools/repository/words.h"

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kSchemaVersion = 1;
/// Changes with the tables, the words, or the rules of the filter.
constexpr int64_t kVersion = kSchemaVersion * 1000 + kWordsVersion;

/// The words can be searched, not read back (content=''). They are ASCII in lower case already and
/// other bytes are letters, so the plain tokenizer does. Positions are kept (detail=full): without
/// them FTS5's bm25 is zero everywhere.
constexpr const char* kTables = R"sql(
CREATE TABLE info(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  path TEXT NOT NULL UNIQUE,
  size_bytes INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  hash INTEGER NOT NULL,
  text_bytes INTEGER NOT NULL,
  n_repaired INTEGER NOT NULL,
  skip INTEGER NOT NULL,
  detail TEXT NOT NULL,
  pieces BLOB NOT NULL);
CREATE TABLE text(file INTEGER PRIMARY KEY, text BLOB NOT NULL);
CREATE TABLE name(
  name TEXT NOT NULL,
  row INTEGER NOT NULL,
  weight REAL NOT NULL,
  spelled TEXT NOT NULL,
  PRIMARY KEY(name, row, spelled)) WITHOUT ROWID;
CREATE VIRTUAL TABLE piece USING fts5(path, definitions, text, content='', tokenize="ascii tokenchars '_'");
CREATE VIRTUAL TABLE piece_words USING fts5vocab(piece, row);
INSERT INTO piece(piece, rank) VALUES('rank', 'bm25(2.0, 4.0, 1.0)');
INSERT INTO piece(piece, rank) VALUES('hashsize', 8000000);
)sql";

std::string encodePieces(const std::vector<PieceRecord>& pieces) {
    return {reinterpret_cast<const char*>(pieces.data()), pieces.size() * sizeof(PieceRecord)};
}

/// The bytes come from a file: checked before use.
Result<std::vector<PieceRecord>> decodePieces(std::string_view bytes) {
    if (bytes.size() % sizeof(PieceRecord) != 0) {
        return fail(ErrorCode::Corrupt, "search database: {} bytes of pieces", bytes.size());
    }
    std::vector<PieceRecord> pieces(bytes.size() / sizeof(PieceRecord));
    if (!bytes.empty()) {
        std::memcpy(pieces.data(), bytes.data(), bytes.size());
    }
    uint32_t last_line = 0;
    for (const PieceRecord& piece : pieces) {
        if (piece.first_line != last_line + 1 || piece.last_line < piece.first_line ||
            piece.last_line == UINT32_MAX) {
            return fail(ErrorCode::Corrupt, "search database: piece {}-{} after line {}",
                        piece.first_line, piece.last_line, last_line);
        }
        last_line = piece.last_line;
    }
    return pieces;
}

Result<FileRecord> readRecord(const Statement& row) {
    constexpr auto kLastReason = static_cast<int64_t>(SkipReason::NotCheckedOut);
    FileRecord record;
    record.id = row.integer(0);
    record.path = row.text(1);
    record.stamp = {static_cast<uint64_t>(row.integer(2)), row.integer(3),
                    static_cast<uint64_t>(row.integer(4))};
    record.hash = static_cast<uint64_t>(row.integer(5));
    record.n_bytes = static_cast<uint64_t>(row.integer(6));
    record.n_repaired = static_cast<size_t>(row.integer(7));
    const int64_t skip = row.integer(8);
    if (skip > kLastReason) {
        return fail(ErrorCode::Corrupt, "search database: reason {}", skip);
    }
    if (skip >= 0) {
        record.skip = static_cast<SkipReason>(skip);
    }
    record.detail = row.text(9);
    record.pieces = BV_TRY(decodePieces(row.text(10)));
    return record;
}

void removeFiles(const fs::path& file) {
    std::error_code code;
    for (const char* ending : {"", "-wal", "-shm", "-journal"}) {
        fs::remove(fs::path(file.native() + ending), code);
    }
}

}  // namespace

std::vector<PieceWords> wordsOfPieces(std::string_view path,
                                      const std::vector<std::string_view>& lines,
                                      const std::vector<PieceLines>& pieces) {
    const Language language = languageOf(path);
    std::string path_words;
    appendWords(path, path_words);
    std::vector<PieceWords> all(pieces.size());
    std::vector<Definition> definitions;
    for (size_t i = 0; i < pieces.size(); ++i) {
        PieceWords& words = all[i];
        words.path = path_words;
        for (size_t line = pieces[i].first_line - 1; line < pieces[i].last_line; ++line) {
            definitions.clear();
            findDefinitions(language, lines[line],
                            line + 1 < lines.size() ? lines[line + 1] : std::string_view(),
                            definitions);
            for (const Definition& definition : definitions) {
                words.names.push_back({std::string(definition.name), definition.weight});
                if (definition.weight > 0.5F) {
                    appendWords(definition.name, words.definitions);
                }
            }
            appendWords(lines[line], words.text);
        }
    }
    return all;
}

Result<Database> SearchIndex::openDatabase(const fs::path& file, const std::string& root) {
    Database database = BV_TRY(Database::open(file.native()));
    if (!file.empty()) {
        BV_TRY(database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"));
    }
    BV_TRY(database.execute("PRAGMA cache_size=-16000; PRAGMA temp_store=MEMORY;"));
    const int64_t version = BV_TRY(database.queryInteger("PRAGMA user_version"));
    if (version == 0) {
        BV_TRY(database.execute("BEGIN IMMEDIATE"));
        BV_TRY(database.execute(kTables));
        BV_TRY(database.execute(fmt::format("PRAGMA user_version={}", kVersion).c_str()));
        Statement put = BV_TRY(database.prepare("INSERT INTO info VALUES('root', ?1)"));
        BV_TRY(put.bind(1, std::string_view(root)).run());
        BV_TRY(database.execute("COMMIT"));
    } else if (version != kVersion) {
        return fail(ErrorCode::Corrupt, "search database {}: version {}, this program has {}",
                    file.native(), version, kVersion);
    }
    Statement stored = BV_TRY(database.prepare("SELECT value FROM info WHERE key='root'"));
    if (!BV_TRY(stored.step()) || stored.text(0) != root) {
        return fail(ErrorCode::Corrupt, "search database {}: of another folder", file.native());
    }
    return database;
}

Result<std::shared_ptr<SearchIndex>> SearchIndex::open(const fs::path& file,
                                                       const std::string& root) {
    std::shared_ptr<SearchIndex> index(new SearchIndex(file, root));
    Result<Database> database = openDatabase(file, root);
    if (!database.has_value() && database.error().code == ErrorCode::Corrupt && !file.empty()) {
        BV_LOG(LogLevel::Warn, "tools", "search index is made anew: {}", database.error().message);
        removeFiles(file);
        database = openDatabase(file, root);
    }
    if (!database.has_value()) {
        return tl::unexpected<Error>(database.error());
    }
    index->database_ = std::move(*database);
    BV_TRY(index->prepare());
    return index;
}

Result<void> SearchIndex::recreate() {
    match_.reset();
    count_.reset();
    names_.reset();
    text_.reset();
    database_.reset();
    removeFiles(file_);
    database_ = BV_TRY(openDatabase(file_, root_));
    return prepare();
}

Result<void> SearchIndex::prepare() {
    match_ = BV_TRY(database_->prepare(
        "SELECT rowid, -rank FROM piece WHERE piece MATCH ?1 ORDER BY rank, rowid LIMIT ?2"));
    count_ = BV_TRY(database_->prepare("SELECT doc FROM piece_words WHERE term = ?1"));
    names_ = BV_TRY(database_->prepare(
        "SELECT row, weight, spelled FROM name WHERE name = ?1 ORDER BY row LIMIT ?2"));
    text_ = BV_TRY(database_->prepare("SELECT text FROM text WHERE file = ?1"));
    return {};
}

Result<std::vector<FileRecord>> SearchIndex::files() {
    Statement rows =
        BV_TRY(database_->prepare("SELECT id, path, size_bytes, mtime_ns, inode, hash, text_bytes, "
                                  "n_repaired, skip, detail, pieces FROM file ORDER BY path"));
    std::vector<FileRecord> files;
    while (BV_TRY(rows.step())) {
        files.push_back(BV_TRY(readRecord(rows)));
    }
    return files;
}

Result<std::string> SearchIndex::counterKey() {
    Statement row = BV_TRY(database_->prepare("SELECT value FROM info WHERE key='counter'"));
    return BV_TRY(row.step()) ? std::string(row.text(0)) : std::string();
}

Result<std::vector<PieceMatch>> SearchIndex::match(const std::vector<std::string>& words,
                                                   size_t limit) {
    std::string query;
    for (const std::string& word : words) {
        query += query.empty() ? "\"" : " OR \"";
        query += word;  // word bytes only: nothing to escape
        query += '"';
    }
    std::vector<PieceMatch> matches;
    if (query.empty()) {
        return matches;
    }
    match_->reset();
    match_->bind(1, std::string_view(query)).bind(2, static_cast<int64_t>(limit));
    while (BV_TRY(match_->step())) {
        matches.push_back({match_->integer(0), match_->real(1)});
    }
    match_->reset();
    return matches;
}

Result<size_t> SearchIndex::pieceCount(std::string_view word) {
    count_->reset();
    const size_t n =
        BV_TRY(count_->bind(1, word).step()) ? static_cast<size_t>(count_->integer(0)) : 0;
    count_->reset();
    return n;
}

Result<std::vector<NameMatch>> SearchIndex::definitionsOf(std::string_view name, size_t limit) {
    const std::string lower = lowered(name);
    std::vector<NameMatch> matches;
    names_->reset();
    names_->bind(1, std::string_view(lower)).bind(2, static_cast<int64_t>(limit));
    while (BV_TRY(names_->step())) {
        matches.push_back({names_->integer(0), names_->real(1), std::string(names_->text(2))});
    }
    names_->reset();
    return matches;
}

Result<std::string> SearchIndex::text(int64_t file_id) {
    text_->reset();
    if (!BV_TRY(text_->bind(1, file_id).step())) {
        return fail(ErrorCode::Corrupt, "search database: no text of file {}", file_id);
    }
    std::string text(text_->text(0));
    text_->reset();
    return text;
}

Result<std::unique_ptr<IndexUpdate>> SearchIndex::beginUpdate() {
    std::shared_ptr<SearchIndex> next(new SearchIndex(file_, root_));
    if (file_.empty()) {
        next->database_ = BV_TRY(Database::open(""));
        BV_TRY(next->database_->copyFrom(*database_));
    } else {
        next->database_ = BV_TRY(openDatabase(file_, root_));
    }
    BV_TRY(next->database_->execute("BEGIN IMMEDIATE"));
    BV_TRY(next->prepare());
    std::unique_ptr<IndexUpdate> update(new IndexUpdate(std::move(next)));
    BV_TRY(update->prepare());
    return update;
}

Result<void> IndexUpdate::prepare() {
    Database& database = *index_->database_;
    put_file_ =
        BV_TRY(database.prepare("INSERT INTO file(id, path, size_bytes, mtime_ns, inode, hash, "
                                "text_bytes, n_repaired, skip, detail, pieces) "
                                "VALUES(nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) "
                                "ON CONFLICT(id) DO UPDATE SET size_bytes=?3, mtime_ns=?4, "
                                "inode=?5, hash=?6, text_bytes=?7, n_repaired=?8, skip=?9, "
                                "detail=?10, pieces=?11 RETURNING id"));
    put_text_ = BV_TRY(database.prepare("INSERT OR REPLACE INTO text(file, text) VALUES(?1, ?2)"));
    put_words_ = BV_TRY(database.prepare(
        "INSERT INTO piece(rowid, path, definitions, text) VALUES(?1, ?2, ?3, ?4)"));
    put_name_ = BV_TRY(database.prepare(
        "INSERT OR IGNORE INTO name(name, row, weight, spelled) VALUES(?1, ?2, ?3, ?4)"));
    take_words_ =
        BV_TRY(database.prepare("INSERT INTO piece(piece, rowid, path, definitions, text) "
                                "VALUES('delete', ?1, ?2, ?3, ?4)"));
    take_names_ = BV_TRY(database.prepare("DELETE FROM name WHERE name = ?1 AND row = ?2"));
    take_text_ = BV_TRY(database.prepare("DELETE FROM text WHERE file = ?1"));
    take_file_ = BV_TRY(database.prepare("DELETE FROM file WHERE id = ?1"));
    return {};
}

Result<void> IndexUpdate::put(FileRecord& record, const DigestedContent* content) {
    if (record.id != 0 && content != nullptr) {
        BV_TRY(removeWords(record.id, record.path));
    }
    const std::string pieces = encodePieces(record.pieces);
    put_file_->bind(1, record.id).bind(2, std::string_view(record.path));
    put_file_->bind(3, static_cast<int64_t>(record.stamp.size_bytes))
        .bind(4, record.stamp.mtime_ns);
    put_file_->bind(5, static_cast<int64_t>(record.stamp.inode))
        .bind(6, static_cast<int64_t>(record.hash));
    put_file_->bind(7, static_cast<int64_t>(record.n_bytes))
        .bind(8, static_cast<int64_t>(record.n_repaired));
    put_file_->bind(9, record.skip ? static_cast<int64_t>(*record.skip) : int64_t{-1});
    put_file_->bind(10, std::string_view(record.detail)).bindBlob(11, pieces);
    if (!BV_TRY(put_file_->step())) {
        return fail(ErrorCode::Internal, "search database: no id for {}", record.path);
    }
    record.id = put_file_->integer(0);
    BV_TRY(put_file_->run());
    if (content == nullptr || record.skip) {
        return {};
    }
    BV_TRY(put_text_->bind(1, record.id).bindBlob(2, content->text).run());
    return addWords(record.id, content->words);
}

Result<void> IndexUpdate::addWords(int64_t file_id, const std::vector<PieceWords>& words) {
    BV_CHECK(words.size() < (size_t{1} << kPieceBits));
    for (size_t i = 0; i < words.size(); ++i) {
        const int64_t row = (file_id << kPieceBits) + static_cast<int64_t>(i);
        put_words_->bind(1, row).bind(2, std::string_view(words[i].path));
        put_words_->bind(3, std::string_view(words[i].definitions))
            .bind(4, std::string_view(words[i].text));
        BV_TRY(put_words_->run());
        for (const PieceWords::Name& name : words[i].names) {
            const std::string lower = lowered(name.name);
            put_name_->bind(1, std::string_view(lower)).bind(2, row);
            put_name_->bind(3, static_cast<double>(name.weight))
                .bind(4, std::string_view(name.name));
            BV_TRY(put_name_->run());
        }
    }
    return {};
}

/// A table without content must be told what it held: the same text gives the same words.
Result<void> IndexUpdate::removeWords(int64_t file_id, std::string_view path) {
    index_->text_->reset();
    if (!BV_TRY(index_->text_->bind(1, file_id).step())) {
        index_->text_->reset();
        return {};  // it was skipped the last time
    }
    const std::string text(index_->text_->text(0));
    index_->text_->reset();
    const std::vector<PieceWords> words =
        wordsOfPieces(path, splitLines(text), cutIntoPieces(text));
    for (size_t i = 0; i < words.size(); ++i) {
        const int64_t row = (file_id << kPieceBits) + static_cast<int64_t>(i);
        take_words_->bind(1, row).bind(2, std::string_view(words[i].path));
        take_words_->bind(3, std::string_view(words[i].definitions))
            .bind(4, std::string_view(words[i].text));
        BV_TRY(take_words_->run());
        for (const PieceWords::Name& name : words[i].names) {
            const std::string lower = lowered(name.name);
            BV_TRY(take_names_->bind(1, std::string_view(lower)).bind(2, row).run());
        }
    }
    return take_text_->bind(1, file_id).run();
}

Result<void> IndexUpdate::remove(const FileRecord& record) {
    BV_TRY(removeWords(record.id, record.path));
    return take_file_->bind(1, record.id).run();
}

Result<std::shared_ptr<SearchIndex>> IndexUpdate::commit(std::string_view counter_key) {
    Database& database = *index_->database_;
    Statement put = BV_TRY(database.prepare("INSERT OR REPLACE INTO info VALUES('counter', ?1)"));
    BV_TRY(put.bind(1, counter_key).run());
    BV_TRY(database.execute("COMMIT"));
    return std::move(index_);
}

}  // namespace belvedere::tools
