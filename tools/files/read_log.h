// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which files a session has seen, in which state. A file may be changed only by a session that read
// it and only while it still is what was read, so that nobody's work is overwritten unseen. Any
// thread.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/result.h"

namespace belvedere::tools {

class ReadLog {
  public:
    /// `path` is relative to the workspace.
    void noteSeen(const std::string& session_id, const std::string& path, std::string_view content);

    /// Errors: InvalidArgument: the session never read it, or it has changed since.
    [[nodiscard]] Result<void> checkSeen(const std::string& session_id,
                                         const std::string& path,
                                         std::string_view content) const;

  private:
    struct Fingerprint {
        uint64_t n_bytes = 0;
        uint64_t hash = 0;

        bool operator==(const Fingerprint&) const = default;
    };

    static Fingerprint fingerprintOf(std::string_view content);

    mutable std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, Fingerprint> seen_;  ///< by session and path
};

}  // namespace belvedere::tools
