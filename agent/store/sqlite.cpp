// SPDX-License-Identifier: Apache-2.0
#include "agent/store/sqlite.h"

#include <cstring>
#include <utility>

#include <sqlite3.h>

#include "kernels/base/log.h"

namespace belvedere::agent {

namespace {

constexpr int kBusyTimeoutMs = 10'000;  // another program instance may be writing

/// What a person can do about it, by SQLite's primary result code.
struct Advice {
    int code;
    ErrorCode error;
    const char* what;
    const char* to_do;
};

constexpr Advice kAdvice[] = {
    {SQLITE_NOTADB, ErrorCode::Corrupt, "is not a database",
     "move it away, or set BV_DATA_DIR to another folder"},
    {SQLITE_CORRUPT, ErrorCode::Corrupt, "is damaged",
     "it was left as it is; restore a copy or move it away, then start again"},
    {SQLITE_FULL, ErrorCode::Io, "cannot grow: the disk is full", "free some space and try again"},
    {SQLITE_READONLY, ErrorCode::Io, "cannot be written",
     "make the file and its folder writable, or set BV_DATA_DIR to another folder"},
    {SQLITE_CANTOPEN, ErrorCode::Io, "cannot be opened",
     "make the folder writable, or set BV_DATA_DIR to another folder"},
    {SQLITE_PERM, ErrorCode::Io, "may not be opened", "change the file's permissions"},
    {SQLITE_BUSY, ErrorCode::Io, "is locked by another program",
     "close the other program and try again"},
    {SQLITE_LOCKED, ErrorCode::Io, "is locked", "try again"},
    {SQLITE_IOERR, ErrorCode::Io, "cannot be read or written",
     "check the disk and its free space, then try again"},
    {SQLITE_NOMEM, ErrorCode::OutOfMemory, "needs more memory than there is",
     "close other programs"},
    {SQLITE_TOOBIG, ErrorCode::InvalidArgument, "cannot hold a text of this size",
     "send less at once"},
};

tl::unexpected<Error> failFrom(sqlite3* connection, int code, const std::string& file) {
    const char* detail = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
    const int system_error = connection != nullptr ? sqlite3_system_errno(connection) : 0;
    for (const Advice& advice : kAdvice) {
        if (advice.code == (code & 0xff)) {
            const bool has_system_error = system_error != 0 && advice.error == ErrorCode::Io;
            return fail(advice.error, "the session database {} {} ({}): {}", file, advice.what,
                        has_system_error ? std::strerror(system_error) : detail, advice.to_do);
        }
    }
    return fail(ErrorCode::Internal, "the session database {}: {} (code {})", file, detail, code);
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

Statement::Statement(sqlite3* connection, sqlite3_stmt* statement, const std::string* file)
    : connection_(connection), statement_(statement), file_(file) {}

void Statement::reset() {
    sqlite3_reset(statement_.get());
    sqlite3_clear_bindings(statement_.get());
}

void Statement::bind(int index, int64_t value) {
    sqlite3_bind_int64(statement_.get(), index, value);
}

void Statement::bind(int index, std::string_view value) {
    sqlite3_bind_text64(statement_.get(), index, value.data() != nullptr ? value.data() : "",
                        value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

Result<bool> Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) {
        return true;
    }
    if (code == SQLITE_DONE) {
        sqlite3_reset(statement_.get());
        return false;
    }
    auto error = failFrom(connection_, code, *file_);
    sqlite3_reset(statement_.get());
    return error;
}

int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
}

std::string Statement::text(int column) const {
    const unsigned char* text = sqlite3_column_text(statement_.get(), column);
    const int n_bytes = sqlite3_column_bytes(statement_.get(), column);
    return text == nullptr
               ? std::string()
               : std::string(reinterpret_cast<const char*>(text), static_cast<size_t>(n_bytes));
}

Database::Database(std::string file) : file_(std::move(file)) {}

Result<std::unique_ptr<Database>> Database::open(const std::filesystem::path& file) {
    std::unique_ptr<Database> database(new Database(file.string()));
    // NOMUTEX: the store's thread is the only one that uses the connection.
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const int code =
        sqlite3_open_v2(database->file_.c_str(), &database->connection_, flags, nullptr);
    if (code != SQLITE_OK) {
        return failFrom(database->connection_, code, database->file_);
    }
    sqlite3_busy_timeout(database->connection_, kBusyTimeoutMs);
    return database;
}

Database::~Database() {
    if (sqlite3_close(connection_) != SQLITE_OK) {
        BV_LOG(LogLevel::Error, "agent", "database closed with open statements file={}", file_);
    }
}

Result<Statement> Database::prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v2(connection_, sql, -1, &statement, nullptr);
    if (code != SQLITE_OK) {
        return failFrom(connection_, code, file_);
    }
    return Statement(connection_, statement, &file_);
}

Result<void> Database::execute(const char* sql) {
    const int code = sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) {
        return failFrom(connection_, code, file_);
    }
    return {};
}

Result<int64_t> Database::queryInteger(const char* sql) {
    Statement statement = BV_TRY(prepare(sql));
    const bool has_row = BV_TRY(statement.step());
    return has_row ? statement.integer(0) : 0;
}

int64_t Database::lastInsertId() const {
    return sqlite3_last_insert_rowid(connection_);
}

int64_t Database::changedRows() const {
    return sqlite3_changes64(connection_);
}

bool Database::inTransaction() const {
    return sqlite3_get_autocommit(connection_) == 0;
}

void Database::keepFileUntouched() {
    sqlite3_db_config(connection_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Result<Transaction> Transaction::begin(Database& database) {
    BV_TRY(database.execute("BEGIN IMMEDIATE"));
    return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
    if (database_ != nullptr && database_->inTransaction()) {
        const Result<void> rolled_back = database_->execute("ROLLBACK");
        if (!rolled_back.has_value()) {
            BV_LOG(LogLevel::Error, "agent", "rollback failed reason={}",
                   rolled_back.error().message);
        }
    }
}

Result<void> Transaction::commit() {
    BV_TRY(database_->execute("COMMIT"));
    database_ = nullptr;
    return {};
}

}  // namespace belvedere::agent
