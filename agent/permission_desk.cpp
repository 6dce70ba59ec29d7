// SPDX-License-Identifier: Apache-2.0
#include "agent/permission_desk.h"

#include <utility>

namespace belvedere::agent {

void PermissionDesk::open(const std::string& call_id) {
    const std::lock_guard lock(mutex_);
    questions_.emplace(call_id, std::nullopt);
}

std::optional<PermissionAnswer> PermissionDesk::wait(const std::string& call_id,
                                                     std::stop_token stop) {
    std::unique_lock lock(mutex_);
    const auto it = questions_.find(call_id);
    if (it == questions_.end()) {
        return std::nullopt;
    }
    answered_.wait(lock, std::move(stop), [&] { return it->second.has_value(); });
    const std::optional<PermissionAnswer> answer = it->second;
    questions_.erase(it);
    return answer;
}

bool PermissionDesk::answer(const std::string& call_id, PermissionAnswer answer) {
    const std::lock_guard lock(mutex_);
    const auto it = questions_.find(call_id);
    if (it == questions_.end() || it->second.has_value()) {
        return false;
    }
    it->second = answer;
    answered_.notify_all();
    return true;
}

}  // namespace belvedere::agent
