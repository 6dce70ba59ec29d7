// SPDX-License-Identifier: Apache-2.0
#include "tools/files/read_log.h"

namespace belvedere::tools {

// FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923). It guards against accidents, not against somebody
// who looks for collisions.
ReadLog::Fingerprint ReadLog::fingerprintOf(std::string_view content) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : content) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return {content.size(), hash};
}

void ReadLog::noteSeen(const std::string& session_id,
                       const std::string& path,
                       std::string_view content) {
    const Fingerprint fingerprint = fingerprintOf(content);
    const std::lock_guard lock(mutex_);
    seen_[{session_id, path}] = fingerprint;
}

Result<void> ReadLog::checkSeen(const std::string& session_id,
                                const std::string& path,
                                std::string_view content) const {
    const Fingerprint now = fingerprintOf(content);
    const std::lock_guard lock(mutex_);
    const auto seen = seen_.find({session_id, path});
    if (seen == seen_.end()) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: exists and was not read in this session: call read_file first", path);
    }
    if (!(seen->second == now)) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: has changed since it was read: call read_file again", path);
    }
    return {};
}

}  // namespace belvedere::tools
