// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sessions and their event log in SQLite (WAL). One writer thread owns the connection; calls block
// until their transaction is on disk, so an event that append() acknowledged survives a crash. Any
// thread.
//
// Words: a session is a conversation; a turn is one user message and all that follows; an event is
// a row of the append-only log. Deltas are not events: the text of a streaming answer is saved as a
// draft, replaced as it grows and removed by the turn's end. A turn without a turn_finished row was
// interrupted.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/events.h"
#include "agent/message.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

struct SessionSummary {
    std::string id;
    std::string title;       ///< the user's, else the first words of the first question
    std::string repository;  ///< absolute path, empty: none
    std::string model;       ///< name of the model last used
    int64_t created_ms = 0;  ///< Unix time
    int64_t updated_ms = 0;
    size_t n_turns = 0;
};

/// One row of the log. `type` is one of: user_message, context, assistant_message, tool_call,
/// tool_result, permission, plan, citations, usage, notice, turn_finished.
struct StoredEvent {
    int64_t id = 0;  ///< ascending
    TurnId turn = 0;
    int64_t time_ms = 0;
    std::string type;
    Json payload;
};

struct StoredSession {
    SessionSummary summary;
    std::vector<StoredEvent> events;
    /// Text of the answer that was streaming when the program died, by turn; empty where all turns
    /// ended.
    std::string draft;
    TurnId draft_turn = 0;
};

struct SearchHit {
    std::string session_id;
    std::string session_title;
    TurnId turn = 0;
    std::string excerpt;  ///< the match between U+0001 and U+0002
};

class SessionStore {
  public:
    /// Opens or makes the database, checks its integrity and runs missing migrations.
    /// Errors: Io (read-only folder, full disk), Corrupt (integrity check: the damaged file is left
    /// as it is), Unsupported (made by a newer version), each naming the file and what to do.
    static Result<std::unique_ptr<SessionStore>> open(const std::filesystem::path& file);
    virtual ~SessionStore() = default;

    virtual Result<SessionSummary> createSession(const std::string& repository,
                                                 const std::string& model) = 0;
    [[nodiscard]] virtual Result<std::vector<SessionSummary>> listSessions() = 0;  ///< newest first
    [[nodiscard]] virtual Result<StoredSession> loadSession(const std::string& id) = 0;
    virtual Result<void> renameSession(const std::string& id, const std::string& title) = 0;
    virtual Result<void> deleteSession(const std::string& id) = 0;
    virtual Result<void> setRepository(const std::string& id, const std::string& repository) = 0;
    /// Full-text search over titles, user messages and answers; words are prefixes. Bad query
    /// syntax is text, not an error.
    [[nodiscard]] virtual Result<std::vector<SearchHit>> search(std::string_view query,
                                                                size_t limit) = 0;

    /// A new turn of the session, with its user message, in one transaction.
    virtual Result<TurnId> beginTurn(const std::string& session_id,
                                     const std::string& user_text,
                                     const Json& extra) = 0;
    virtual Result<int64_t> append(const std::string& session_id,
                                   TurnId turn,
                                   const std::string& type,
                                   const Json& payload) = 0;
    /// Replaces the turn's draft; returns at once, written in the background.
    virtual void saveDraft(const std::string& session_id, TurnId turn, std::string text) = 0;
};

}  // namespace belvedere::agent
