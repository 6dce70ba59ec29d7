// SPDX-License-Identifier: Apache-2.0
#pragma once

// The schema of the session database as a list of steps. A new database is version 0 plus all of
// them: there is no other description of the schema. A step that has shipped is never changed.
// Store thread.

#include <span>

#include "agent/store/sqlite.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

struct Migration {
    int version;  ///< user_version after it
    const char* what;
    const char* sql;
};

[[nodiscard]] std::span<const Migration> migrations();

/// Runs the missing steps, each in one transaction with its user_version.
/// Errors: Unsupported where the file is of a newer version; those of SQLite.
Result<void> migrate(Database& database);

}  // namespace belvedere::agent
