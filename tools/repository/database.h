// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thin owner of one SQLite connection and its statements, errors as Result. One thread at a time
// per connection.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace belvedere::tools {

class Statement {
  public:
    /// Parameters count from 1. Texts and blobs must live until the next reset.
    Statement& bind(int parameter, int64_t value);
    Statement& bind(int parameter, double value);
    Statement& bind(int parameter, std::string_view text);
    Statement& bindBlob(int parameter, std::string_view bytes);

    /// True where a row stands ready, false at the end.
    [[nodiscard]] Result<bool> step();

    /// Runs to the end and makes ready for the next run.
    [[nodiscard]] Result<void> run();

    void reset();

    [[nodiscard]] int64_t integer(int column) const;
    [[nodiscard]] double real(int column) const;
    /// Valid until the next step.
    [[nodiscard]] std::string_view text(int column) const;

  private:
    friend class Database;

    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };

    explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
  public:
    /// `path` empty: in memory. Errors: Corrupt (no database, damaged), Io.
    static Result<Database> open(const std::string& path);

    [[nodiscard]] Result<void> execute(const char* sql);
    [[nodiscard]] Result<Statement> prepare(std::string_view sql);
    [[nodiscard]] Result<int64_t> queryInteger(std::string_view sql);

    /// Everything in `from` into this empty database.
    [[nodiscard]] Result<void> copyFrom(Database& from);

    /// From any thread: what runs on this connection ends with Cancelled.
    void interrupt();

  private:
    struct Close {
        void operator()(sqlite3* database) const;
    };

    explicit Database(sqlite3* database) : database_(database) {}

    std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace belvedere::tools
