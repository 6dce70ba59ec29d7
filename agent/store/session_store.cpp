// SPDX-License-Identifier: Apache-2.0
//
// The session store on SQLite.
//
// Words: see session_store.h. Invariants:
//  1. Only the writer thread touches the database (writer_thread.h).
//  2. A call that returns without an error is on disk: WAL with synchronous=FULL flushes each
//  commit.
//  3. Of the turns of a session only the newest may lack a turn_finished row while it runs.
//  beginTurn closes an older one that
//     a crash left open: its draft becomes an assistant message marked incomplete, and a
//     turn_finished row says "interrupted".
//  4. A turn has a draft only until the message it belongs to, or the turn's end, is in the log.
//  5. The search table holds the title (turn 0) and each user and assistant message of every
//  session, and nothing else.
#include "agent/store/session_store.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "agent/store/migrations.h"
#include "agent/store/sqlite.h"
#include "agent/store/writer_thread.h"
#include "kernels/base/log.h"

namespace belvedere::agent {

namespace {

constexpr size_t kMaxTitleBytes = 80;
constexpr size_t kMaxSearchWords = 16;

int64_t nowMs() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string newSessionId() {
    std::random_device random;
    const auto word = [&] { return (uint64_t{random()} << 32) | random(); };
    return fmt::format("{:016x}{:016x}", word(), word());
}

/// Invalid UTF-8 is shown as U+FFFD instead of making the whole event unwritable.
std::string toText(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The first line, cut after a word within kMaxTitleBytes.
std::string titleFrom(const std::string& text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string::npos) {
        return {};
    }
    std::string title = text.substr(begin, text.find('\n', begin) - begin);
    title.erase(title.find_last_not_of(" \t\r") + 1);
    if (title.size() > kMaxTitleBytes) {
        size_t end = title.rfind(' ', kMaxTitleBytes);
        if (end == std::string::npos || end == 0) {
            end = kMaxTitleBytes;
            while (end > 0 && (static_cast<unsigned char>(title[end]) & 0xC0U) == 0x80U) {
                --end;  // not inside a character
            }
        }
        title = title.substr(0, end) + "…";
    }
    return title;
}

/// Words as quoted prefixes, so that no FTS5 syntax is left: `foo_bar(` -> "foo_bar(" *
std::string matchExpression(std::string_view query) {
    std::string expression;
    size_t n_words = 0;
    for (size_t pos = 0; pos < query.size() && n_words < kMaxSearchWords;) {
        const size_t begin = query.find_first_not_of(" \t\r\n", pos);
        if (begin == std::string_view::npos) {
            break;
        }
        pos = std::min(query.find_first_of(" \t\r\n", begin), query.size());
        const std::string_view word = query.substr(begin, pos - begin);
        const bool has_letter = std::any_of(word.begin(), word.end(), [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                   static_cast<unsigned char>(c) >= 0x80U;
        });
        if (!has_letter) {
            continue;
        }
        expression += expression.empty() ? "\"" : " \"";
        for (const char c : word) {
            if (c != '\0') {
                expression += c == '"' ? std::string("\"\"") : std::string(1, c);
            }
        }
        expression += "\"*";
        ++n_words;
    }
    return expression;
}

std::string withoutMarks(const std::string& text) {
    std::string clean = text;
    std::erase_if(clean, [](char c) { return c == '\x01' || c == '\x02'; });
    return clean;
}

Result<void> addToSearch(Database& database,
                         const std::string& session,
                         TurnId turn,
                         const std::string& text) {
    if (text.empty()) {
        return {};
    }
    Statement insert =
        BV_TRY(database.prepare("INSERT INTO search(text, session_id, turn_id) VALUES (?, ?, ?)"));
    return insert.run(withoutMarks(text), session, turn);
}

Result<int64_t> insertEvent(Database& database,
                            const std::string& session,
                            TurnId turn,
                            const std::string& type,
                            const Json& payload) {
    const int64_t now = nowMs();
    Statement insert =
        BV_TRY(database.prepare("INSERT INTO events(session_id, turn_id, time_ms, type, payload) "
                                "SELECT session_id, id, ?, ?, ? FROM turns "
                                "WHERE id = ? AND session_id = ?"));
    BV_TRY(insert.run(now, type, toText(payload), turn, session));
    if (database.changedRows() == 0) {
        return fail(ErrorCode::NotFound, "session {} has no turn {}: it was deleted", session,
                    turn);
    }
    const int64_t id = database.lastInsertId();
    if (type == "assistant_message" || type == "user_message") {
        const auto text = payload.find("text");
        if (text != payload.end() && text->is_string()) {
            BV_TRY(addToSearch(database, session, turn, text->get<std::string>()));
        }
    }
    if (type == "assistant_message" || type == "turn_finished") {
        Statement remove = BV_TRY(database.prepare("DELETE FROM drafts WHERE turn_id = ?"));
        BV_TRY(remove.run(turn));
    }
    Statement touch = BV_TRY(database.prepare("UPDATE sessions SET updated_ms = ? WHERE id = ?"));
    BV_TRY(touch.run(now, session));
    return id;
}

/// Invariant 3.
Result<void> closeInterruptedTurns(Database& database, const std::string& session) {
    struct Open {
        TurnId turn;
        std::string draft;
    };

    std::vector<Open> open;
    Statement select =
        BV_TRY(database.prepare("SELECT t.id, coalesce(d.text, '') FROM turns t LEFT JOIN drafts d "
                                "ON d.turn_id = t.id WHERE t.session_id = ? AND "
                                "NOT EXISTS (SELECT 1 FROM events e WHERE e.turn_id = t.id AND "
                                "e.type = 'turn_finished') ORDER BY t.id"));
    select.bindAll(session);
    while (BV_TRY(select.step())) {
        open.push_back({static_cast<TurnId>(select.integer(0)), select.text(1)});
    }
    for (const Open& entry : open) {
        if (!entry.draft.empty()) {
            BV_TRY(insertEvent(database, session, entry.turn, "assistant_message",
                               {{"text", entry.draft}, {"is_complete", false}}));
        }
        BV_TRY(
            insertEvent(database, session, entry.turn, "turn_finished", {{"end", "interrupted"}}));
    }
    return {};
}

SessionSummary summaryFromRow(const Statement& row) {
    SessionSummary summary;
    summary.id = row.text(0);
    summary.title = row.text(1);
    summary.repository = row.text(2);
    summary.model = row.text(3);
    summary.created_ms = row.integer(4);
    summary.updated_ms = row.integer(5);
    summary.n_turns = static_cast<size_t>(row.integer(6));
    return summary;
}

constexpr const char* kSelectSessions =
    "SELECT id, title, repository, model, created_ms, updated_ms, (SELECT count(*) FROM turns "
    "WHERE session_id = sessions.id) "
    "FROM sessions ORDER BY updated_ms DESC, rowid DESC";
constexpr const char* kSelectSession =
    "SELECT id, title, repository, model, created_ms, updated_ms, (SELECT count(*) FROM turns "
    "WHERE session_id = sessions.id) "
    "FROM sessions WHERE id = ?";

tl::unexpected<Error> noSession(const std::string& id) {
    return fail(ErrorCode::NotFound, "there is no session {}", id);
}

/// Requires that the statement changed exactly the rows of session `id`.
Result<void> requireChanged(const Database& database, const std::string& id) {
    if (database.changedRows() == 0) {
        return noSession(id);
    }
    return {};
}

Result<void> setTitle(Database& database,
                      const std::string& id,
                      const std::string& title,
                      bool by_user) {
    Statement update =
        BV_TRY(database.prepare("UPDATE sessions SET title = ?, has_user_title = ? WHERE id = ?"));
    BV_TRY(update.run(title, by_user ? 1 : 0, id));
    BV_TRY(requireChanged(database, id));
    Statement remove =
        BV_TRY(database.prepare("DELETE FROM search WHERE session_id = ? AND turn_id = 0"));
    BV_TRY(remove.run(id));
    return addToSearch(database, id, 0, title);
}

Result<void> readEvents(Database& database, StoredSession& session) {
    Statement select = BV_TRY(database.prepare(
        "SELECT id, turn_id, time_ms, type, payload FROM events WHERE session_id = ? ORDER BY id"));
    select.bindAll(session.summary.id);
    while (BV_TRY(select.step())) {
        StoredEvent event;
        event.id = select.integer(0);
        event.turn = static_cast<TurnId>(select.integer(1));
        event.time_ms = select.integer(2);
        event.type = select.text(3);
        event.payload = Json::parse(select.text(4), nullptr, false);
        if (!event.payload.is_object()) {
            return fail(ErrorCode::Corrupt,
                        "the session database {}: event {} is not a JSON object; delete session {} "
                        "or restore a copy of the file",
                        database.file(), event.id, session.summary.id);
        }
        session.events.push_back(std::move(event));
    }
    return {};
}

class SqliteSessionStore : public SessionStore {
  public:
    explicit SqliteSessionStore(std::unique_ptr<Database> database)
        : writer_(std::move(database)) {}

    Result<SessionSummary> createSession(const std::string& repository,
                                         const std::string& model) override;
    Result<std::vector<SessionSummary>> listSessions() override;
    Result<StoredSession> loadSession(const std::string& id) override;
    Result<void> renameSession(const std::string& id, const std::string& title) override;
    Result<void> deleteSession(const std::string& id) override;
    Result<void> setRepository(const std::string& id, const std::string& repository) override;
    Result<std::vector<SearchHit>> search(std::string_view query, size_t limit) override;
    Result<TurnId> beginTurn(const std::string& session_id,
                             const std::string& user_text,
                             const Json& extra) override;
    Result<int64_t> append(const std::string& session_id,
                           TurnId turn,
                           const std::string& type,
                           const Json& payload) override;

    void saveDraft(const std::string&, TurnId turn, std::string text) override {
        writer_.setDraft(turn, std::move(text));
    }

  private:
    WriterThread writer_;
};

Result<SessionSummary> SqliteSessionStore::createSession(const std::string& repository,
                                                         const std::string& model) {
    SessionSummary summary;
    summary.id = newSessionId();
    summary.repository = repository;
    summary.model = model;
    summary.created_ms = nowMs();
    summary.updated_ms = summary.created_ms;
    return writer_.write([&](Database& database) -> Result<SessionSummary> {
        Statement insert =
            BV_TRY(database.prepare("INSERT INTO sessions(id, title, repository, model, "
                                    "created_ms, updated_ms) VALUES (?, '', ?, ?, ?, ?)"));
        BV_TRY(insert.run(summary.id, repository, model, summary.created_ms, summary.updated_ms));
        return summary;
    });
}

Result<std::vector<SessionSummary>> SqliteSessionStore::listSessions() {
    return writer_.read([](Database& database) -> Result<std::vector<SessionSummary>> {
        std::vector<SessionSummary> sessions;
        Statement select = BV_TRY(database.prepare(kSelectSessions));
        while (BV_TRY(select.step())) {
            sessions.push_back(summaryFromRow(select));
        }
        return sessions;
    });
}

Result<StoredSession> SqliteSessionStore::loadSession(const std::string& id) {
    return writer_.read([&](Database& database) -> Result<StoredSession> {
        StoredSession session;
        Statement select = BV_TRY(database.prepare(kSelectSession));
        select.bindAll(id);
        if (!BV_TRY(select.step())) {
            return noSession(id);
        }
        session.summary = summaryFromRow(select);
        BV_TRY(readEvents(database, session));
        Statement draft =
            BV_TRY(database.prepare("SELECT d.turn_id, d.text FROM drafts d JOIN turns t ON t.id = "
                                    "d.turn_id WHERE t.session_id = ? ORDER BY t.id DESC"));
        draft.bindAll(id);
        if (BV_TRY(draft.step())) {
            session.draft_turn = static_cast<TurnId>(draft.integer(0));
            session.draft = draft.text(1);
        }
        return session;
    });
}

Result<void> SqliteSessionStore::renameSession(const std::string& id, const std::string& title) {
    const std::string shown = titleFrom(title);
    if (shown.empty()) {
        return fail(ErrorCode::InvalidArgument, "a session needs a title that is not empty");
    }
    return writer_.write([&](Database& database) { return setTitle(database, id, shown, true); });
}

Result<void> SqliteSessionStore::deleteSession(const std::string& id) {
    return writer_.write([&](Database& database) -> Result<void> {
        Statement remove = BV_TRY(database.prepare("DELETE FROM sessions WHERE id = ?"));
        BV_TRY(remove.run(id));  // turns, events and drafts go with it
        BV_TRY(requireChanged(database, id));
        Statement unindex = BV_TRY(database.prepare("DELETE FROM search WHERE session_id = ?"));
        return unindex.run(id);
    });
}

Result<void> SqliteSessionStore::setRepository(const std::string& id,
                                               const std::string& repository) {
    return writer_.write([&](Database& database) -> Result<void> {
        Statement update =
            BV_TRY(database.prepare("UPDATE sessions SET repository = ? WHERE id = ?"));
        BV_TRY(update.run(repository, id));
        return requireChanged(database, id);
    });
}

Result<std::vector<SearchHit>> SqliteSessionStore::search(std::string_view query, size_t limit) {
    const std::string expression = matchExpression(query);
    if (expression.empty()) {
        return std::vector<SearchHit>{};
    }
    return writer_.read([&](Database& database) -> Result<std::vector<SearchHit>> {
        Statement select =
            BV_TRY(database.prepare("SELECT s.id, s.title, search.turn_id, snippet(search, 0, "
                                    "char(1), char(2), '…', 16) FROM search JOIN sessions s "
                                    "ON s.id = search.session_id WHERE search MATCH ? ORDER BY "
                                    "rank, s.updated_ms DESC LIMIT ?"));
        select.bindAll(expression, static_cast<int64_t>(std::min<size_t>(limit, 1000)));
        std::vector<SearchHit> hits;
        while (BV_TRY(select.step())) {
            hits.push_back({select.text(0), select.text(1), static_cast<TurnId>(select.integer(2)),
                            select.text(3)});
        }
        return hits;
    });
}

Result<TurnId> SqliteSessionStore::beginTurn(const std::string& session_id,
                                             const std::string& user_text,
                                             const Json& extra) {
    return writer_.write([&](Database& database) -> Result<TurnId> {
        BV_TRY(closeInterruptedTurns(database, session_id));
        Statement find = BV_TRY(database.prepare("SELECT title FROM sessions WHERE id = ?"));
        find.bindAll(session_id);
        if (!BV_TRY(find.step())) {
            return noSession(session_id);
        }
        if (find.text(0).empty()) {
            BV_TRY(setTitle(database, session_id, titleFrom(user_text), false));
        }
        Statement insert =
            BV_TRY(database.prepare("INSERT INTO turns(session_id, started_ms) VALUES (?, ?)"));
        BV_TRY(insert.run(session_id, nowMs()));
        const auto turn = static_cast<TurnId>(database.lastInsertId());
        Json payload = {{"text", user_text}};
        if (extra.is_object()) {
            payload.update(extra);
        }
        BV_TRY(insertEvent(database, session_id, turn, "user_message", payload));
        const auto model = payload.find("model");
        if (model != payload.end() && model->is_string()) {
            Statement update =
                BV_TRY(database.prepare("UPDATE sessions SET model = ? WHERE id = ?"));
            BV_TRY(update.run(model->get<std::string>(), session_id));
        }
        return turn;
    });
}

Result<int64_t> SqliteSessionStore::append(const std::string& session_id,
                                           TurnId turn,
                                           const std::string& type,
                                           const Json& payload) {
    return writer_.write(
        [&](Database& database) { return insertEvent(database, session_id, turn, type, payload); });
}

/// Errors: Corrupt with what the check found.
Result<void> checkIntegrity(Database& database) {
    Statement check = BV_TRY(database.prepare("PRAGMA quick_check(1)"));
    const bool has_row = BV_TRY(check.step());
    if (!has_row || check.text(0) != "ok") {
        return fail(ErrorCode::Corrupt,
                    "the session database {} is damaged ({}): it was left as it is; restore a copy "
                    "or move it away, then start again",
                    database.file(), has_row ? check.text(0) : "no answer");
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<SessionStore>> SessionStore::open(const std::filesystem::path& file) {
    std::error_code error;
    if (file.has_parent_path()) {
        std::filesystem::create_directories(file.parent_path(), error);
        if (error) {
            return fail(ErrorCode::Io,
                        "the folder {} cannot be made ({}): make its parent writable, or set "
                        "BV_DATA_DIR to another folder",
                        file.parent_path().string(), error.message());
        }
    }
    std::unique_ptr<Database> database = BV_TRY(Database::open(file));
    // Before anything is written: a damaged file is left as it is.
    const Result<void> intact = checkIntegrity(*database);
    if (!intact.has_value()) {
        database->keepFileUntouched();
        return tl::unexpected<Error>(intact.error());
    }
    const int64_t newest = migrations().back().version;
    if (BV_TRY(database->queryInteger("PRAGMA user_version")) <= newest) {
        BV_TRY(database->execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON"));
    }
    BV_TRY(migrate(*database));
    return std::unique_ptr<SessionStore>(std::make_unique<SqliteSessionStore>(std::move(database)));
}

}  // namespace belvedere::agent
