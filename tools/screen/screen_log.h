// SPDX-License-Identifier: Apache-2.0
#pragma once

// The coordinate record of each session's latest screenshot: what the numbers in the next click
// mean. Any thread.

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tools/screen/coordinates.h"

namespace belvedere::tools {

class ScreenLog {
  public:
    void note(const std::string& session_id, const CoordinateRecord& record) {
        const std::lock_guard lock(mutex_);
        records_[session_id] = record;
    }

    [[nodiscard]] std::optional<CoordinateRecord> latest(const std::string& session_id) const {
        const std::lock_guard lock(mutex_);
        const auto found = records_.find(session_id);
        return found == records_.end() ? std::nullopt : std::optional(found->second);
    }

  private:
    mutable std::mutex mutex_;
    std::map<std::string, CoordinateRecord> records_;
};

}  // namespace belvedere::tools
