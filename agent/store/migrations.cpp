// SPDX-License-Identifier: Apache-2.0
#include "agent/store/migrations.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "kernels/base/log.h"

namespace belvedere::agent {

namespace {

constexpr std::array<Migration, 3> kMigrations = {{
    {1, "sessions, turns and the event log", R"sql(
CREATE TABLE sessions(
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    has_user_title INTEGER NOT NULL DEFAULT 0,
    repository TEXT NOT NULL,
    model TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL) STRICT;
CREATE TABLE turns(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    started_ms INTEGER NOT NULL) STRICT;
CREATE INDEX turns_by_session ON turns(session_id);
CREATE TABLE events(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    turn_id INTEGER NOT NULL REFERENCES turns(id) ON DELETE CASCADE,
    time_ms INTEGER NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL) STRICT;
CREATE INDEX events_by_session ON events(session_id, id);
CREATE INDEX events_by_turn ON events(turn_id, type);
)sql"},
    {2, "drafts of streaming answers", R"sql(
CREATE TABLE drafts(
    turn_id INTEGER PRIMARY KEY REFERENCES turns(id) ON DELETE CASCADE,
    text TEXT NOT NULL) STRICT;
)sql"},
    // Rows of turn 0 are titles. U+0001 and U+0002 mark the match in an excerpt, so they may not be
    // in the text.
    {3, "full-text search", R"sql(
CREATE VIRTUAL TABLE search USING fts5(
    text, session_id UNINDEXED, turn_id UNINDEXED,
    tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3');
INSERT INTO search(text, session_id, turn_id)
    SELECT title, id, 0 FROM sessions WHERE title <> '';
INSERT INTO search(text, session_id, turn_id)
    SELECT replace(replace(json_extract(payload, '$.text'), char(1), ''), char(2), ''), session_id, turn_id
    FROM events
    WHERE type IN ('user_message', 'assistant_message') AND json_valid(payload)
        AND coalesce(json_extract(payload, '$.text'), '') <> '';
)sql"},
}};

}  // namespace

std::span<const Migration> migrations() {
    return kMigrations;
}

Result<void> migrate(Database& database) {
    const int64_t newest = kMigrations.back().version;
    int64_t version = BV_TRY(database.queryInteger("PRAGMA user_version"));
    if (version > newest) {
        database.keepFileUntouched();
        return fail(ErrorCode::Unsupported,
                    "the session database {} has version {}, this program knows up to {}: use the "
                    "newer program, or set "
                    "BV_DATA_DIR to another folder",
                    database.file(), version, newest);
    }
    for (const Migration& migration : kMigrations) {
        if (migration.version <= version) {
            continue;
        }
        Transaction transaction = BV_TRY(Transaction::begin(database));
        // Another instance may have run the step while this one waited for the lock.
        version = BV_TRY(database.queryInteger("PRAGMA user_version"));
        if (migration.version <= version) {
            continue;
        }
        BV_TRY(database.execute(migration.sql));
        BV_TRY(
            database.execute(fmt::format("PRAGMA user_version = {}", migration.version).c_str()));
        BV_TRY(transaction.commit());
        version = migration.version;
        BV_LOG(LogLevel::Info, "agent", "database migrated version={} what={}", version,
               migration.what);
    }
    return {};
}

}  // namespace belvedere::agent
