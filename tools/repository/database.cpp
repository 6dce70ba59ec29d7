// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/database.h"

#include <sqlite3.h>

namespace belvedere::tools {
namespace {

tl::unexpected<Error> failWithSqlite(sqlite3* database) {
    const int code = sqlite3_errcode(database);
    const char* file = sqlite3_db_filename(database, "main");
    const std::string where = file == nullptr || *file == '\0'
                                  ? "search database in memory"
                                  : fmt::format("search database {}", file);
    switch (code & 0xFF) {
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return fail(ErrorCode::Corrupt, "{}: {}", where, sqlite3_errmsg(database));
        case SQLITE_NOMEM:
            return fail(ErrorCode::OutOfMemory, "{}: {}", where, sqlite3_errmsg(database));
        case SQLITE_FULL:
            return fail(ErrorCode::Io, "{}: the disk is full: free some space", where);
        case SQLITE_INTERRUPT:
            return fail(ErrorCode::Cancelled, "{}: cancelled", where);
        case SQLITE_ERROR:
        case SQLITE_MISUSE:
            return fail(ErrorCode::Internal, "{}: {}", where, sqlite3_errmsg(database));
        default:
            return fail(ErrorCode::Io, "{}: {} (code {})", where, sqlite3_errmsg(database),
                        sqlite3_extended_errcode(database));
    }
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

void Database::Close::operator()(sqlite3* database) const {
    sqlite3_close_v2(database);
}

// A failed bind (out of memory, a wrong number) leaves NULL; the step that follows reports it
// through its constraint.
Statement& Statement::bind(int parameter, int64_t value) {
    sqlite3_bind_int64(statement_.get(), parameter, value);
    return *this;
}

Statement& Statement::bind(int parameter, double value) {
    sqlite3_bind_double(statement_.get(), parameter, value);
    return *this;
}

Statement& Statement::bind(int parameter, std::string_view text) {
    const char* data = text.data() == nullptr ? "" : text.data();
    sqlite3_bind_text64(statement_.get(), parameter, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
    return *this;
}

Statement& Statement::bindBlob(int parameter, std::string_view bytes) {
    const char* data = bytes.data() == nullptr ? "" : bytes.data();
    sqlite3_bind_blob64(statement_.get(), parameter, data, bytes.size(), SQLITE_STATIC);
    return *this;
}

Result<bool> Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) {
        return true;
    }
    if (code == SQLITE_DONE) {
        return false;
    }
    const auto error = failWithSqlite(sqlite3_db_handle(statement_.get()));
    sqlite3_reset(statement_.get());
    return error;
}

Result<void> Statement::run() {
    while (BV_TRY(step())) {
    }
    reset();
    return {};
}

void Statement::reset() {
    sqlite3_reset(statement_.get());
}

int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
    return sqlite3_column_double(statement_.get(), column);
}

std::string_view Statement::text(int column) const {
    const void* bytes = sqlite3_column_blob(statement_.get(), column);
    const int n_bytes = sqlite3_column_bytes(statement_.get(), column);
    return bytes == nullptr
               ? std::string_view()
               : std::string_view(static_cast<const char*>(bytes), static_cast<size_t>(n_bytes));
}

Result<Database> Database::open(const std::string& path) {
    sqlite3* raw = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int code =
        sqlite3_open_v2(path.empty() ? ":memory:" : path.c_str(), &raw, flags, nullptr);
    Database database(raw);
    if (raw == nullptr) {
        return fail(ErrorCode::OutOfMemory, "search database {}: out of memory", path);
    }
    if (code != SQLITE_OK) {
        return fail(ErrorCode::Io, "search database {}: {}", path, sqlite3_errmsg(raw));
    }
    sqlite3_busy_timeout(raw, 5000);
    return database;
}

Result<void> Database::execute(const char* sql) {
    if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
        return failWithSqlite(database_.get());
    }
    return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                           SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) {
        return failWithSqlite(database_.get());
    }
    return Statement(statement);
}

Result<int64_t> Database::queryInteger(std::string_view sql) {
    Statement statement = BV_TRY(prepare(sql));
    return BV_TRY(statement.step()) ? statement.integer(0) : 0;
}

void Database::interrupt() {
    sqlite3_interrupt(database_.get());
}

Result<void> Database::copyFrom(Database& from) {
    sqlite3_backup* backup =
        sqlite3_backup_init(database_.get(), "main", from.database_.get(), "main");
    if (backup == nullptr) {
        return failWithSqlite(database_.get());
    }
    sqlite3_backup_step(backup, -1);
    if (sqlite3_backup_finish(backup) != SQLITE_OK) {
        return failWithSqlite(database_.get());
    }
    return {};
}

}  // namespace belvedere::tools
