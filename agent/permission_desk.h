// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a turn waits for the user's answer to a permission question. Answers are matched by call
// id; the wait ends when the turn is cancelled. Any thread.

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "agent/permission.h"

namespace belvedere::agent {

class PermissionDesk {
  public:
    /// Call before the question is shown, so that no answer comes too early.
    void open(const std::string& call_id);
    /// nullopt: cancelled. The question is closed then.
    [[nodiscard]] std::optional<PermissionAnswer> wait(const std::string& call_id,
                                                       std::stop_token stop);
    /// False where no such question is open.
    bool answer(const std::string& call_id, PermissionAnswer answer);

  private:
    std::mutex mutex_;
    std::condition_variable_any answered_;
    std::map<std::string, std::optional<PermissionAnswer>> questions_;
};

}  // namespace belvedere::agent
