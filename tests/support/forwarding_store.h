// SPDX-License-Identifier: Apache-2.0
#pragma once

// A session store that hands everything on to another one: tests override what they watch or break.
// Any thread.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/store/session_store.h"

namespace belvedere::testing {

class ForwardingStore : public agent::SessionStore {
  public:
    explicit ForwardingStore(std::unique_ptr<agent::SessionStore> store)
        : store_(std::move(store)) {}

    Result<agent::SessionSummary> createSession(const std::string& repository,
                                                const std::string& model) override {
        return store_->createSession(repository, model);
    }

    Result<std::vector<agent::SessionSummary>> listSessions() override {
        return store_->listSessions();
    }

    Result<agent::StoredSession> loadSession(const std::string& id) override {
        return store_->loadSession(id);
    }

    Result<void> renameSession(const std::string& id, const std::string& title) override {
        return store_->renameSession(id, title);
    }

    Result<void> deleteSession(const std::string& id) override { return store_->deleteSession(id); }

    Result<void> setRepository(const std::string& id, const std::string& repository) override {
        return store_->setRepository(id, repository);
    }

    Result<std::vector<agent::SearchHit>> search(std::string_view query, size_t limit) override {
        return store_->search(query, limit);
    }

    Result<agent::TurnId> beginTurn(const std::string& session_id,
                                    const std::string& user_text,
                                    const agent::Json& extra) override {
        return store_->beginTurn(session_id, user_text, extra);
    }

    Result<int64_t> append(const std::string& session_id,
                           agent::TurnId turn,
                           const std::string& type,
                           const agent::Json& payload) override {
        return store_->append(session_id, turn, type, payload);
    }

    void saveDraft(const std::string& session_id, agent::TurnId turn, std::string text) override {
        store_->saveDraft(session_id, turn, std::move(text));
    }

  private:
    std::unique_ptr<agent::SessionStore> store_;
};

}  // namespace belvedere::testing
