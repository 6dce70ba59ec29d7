// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thin layer over SQLite that closes and finalises by itself and turns codes into Results. One
// thread at a time: the store's.
//
//     Statement insert = BV_TRY(database.prepare("INSERT INTO t(a, b) VALUES (?, ?)"));
//     BV_TRY(insert.run(1, "text"));
//     Statement select = BV_TRY(database.prepare("SELECT a FROM t"));
//     while (BV_TRY(select.step())) { use(select.integer(0)); }

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace belvedere::agent {

class Statement {
  public:
    Statement(sqlite3* connection, sqlite3_stmt* statement, const std::string* file);

    /// Binds the values from the first placeholder on, runs to the end and resets.
    template <class... Values>
    Result<void> run(const Values&... values) {
        bindAll(values...);
        while (BV_TRY(step())) {
        }
        return {};
    }

    /// Binds and leaves the statement before its first row.
    template <class... Values>
    void bindAll(const Values&... values) {
        reset();
        int index = 0;
        (bind(++index, values), ...);
    }

    /// True where there is a row. A statement that has ended may be bound and run again.
    Result<bool> step();

    [[nodiscard]] int64_t integer(int column) const;
    [[nodiscard]] std::string text(int column) const;

  private:
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };

    void reset();
    void bind(int index, int64_t value);
    void bind(int index, std::string_view value);

    void bind(int index, uint64_t value) { bind(index, static_cast<int64_t>(value)); }

    void bind(int index, int value) { bind(index, static_cast<int64_t>(value)); }

    void bind(int index, const std::string& value) { bind(index, std::string_view(value)); }

    void bind(int index, const char* value) { bind(index, std::string_view(value)); }

    sqlite3* connection_;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
    const std::string* file_;  ///< for messages; owned by the Database
};

class Database {
  public:
    /// Opens or makes the file. The folder must exist.
    static Result<std::unique_ptr<Database>> open(const std::filesystem::path& file);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    [[nodiscard]] Result<Statement> prepare(const char* sql);
    Result<void> execute(const char* sql);  ///< any number of statements without values
    [[nodiscard]] Result<int64_t> queryInteger(const char* sql);
    [[nodiscard]] int64_t lastInsertId() const;
    [[nodiscard]] int64_t changedRows() const;
    /// False also after an error (full disk) that made SQLite roll back by itself.
    [[nodiscard]] bool inTransaction() const;

    /// From now on closing writes nothing to the file: for a damaged database that is to be left as
    /// it is.
    void keepFileUntouched();

    [[nodiscard]] const std::string& file() const { return file_; }

  private:
    explicit Database(std::string file);

    sqlite3* connection_ = nullptr;
    std::string file_;
};

/// Rolls back unless commit() succeeded. Takes the write lock at once, so that waiting for others
/// happens at the start.
class Transaction {
  public:
    static Result<Transaction> begin(Database& database);
    ~Transaction();
    Transaction(Transaction&& other) noexcept;
    Transaction& operator=(Transaction&&) = delete;

    Result<void> commit();

  private:
    explicit Transaction(Database& database) : database_(&database) {}

    Database* database_;  ///< nullptr: done
};

}  // namespace belvedere::agent
