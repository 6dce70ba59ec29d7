// SPDX-License-Identifier: Apache-2.0
#include "agent/context/source_map.h"

#include <algorithm>

namespace belvedere::agent {

SourceMap::SourceMap(std::span<const std::shared_ptr<const SourcePiece>> pieces) {
    for (const std::shared_ptr<const SourcePiece>& piece : pieces) {
        ranges_[piece->path].push_back({piece->first_line, piece->last_line});
    }
    for (auto& [path, ranges] : ranges_) {
        std::sort(ranges.begin(), ranges.end(),
                  [](const Range& a, const Range& b) { return a.first < b.first; });
        std::vector<Range> merged;
        for (const Range& range : ranges) {
            if (merged.empty() || range.first > merged.back().last + 1) {
                merged.push_back(range);
            } else {
                merged.back().last = std::max(merged.back().last, range.last);
            }
        }
        ranges = std::move(merged);
    }
}

bool SourceMap::covers(std::string_view path, size_t first, size_t last) const {
    const auto it = ranges_.find(path);
    if (it == ranges_.end() || first > last) {
        return false;
    }
    return std::any_of(it->second.begin(), it->second.end(), [&](const Range& range) {
        return range.first <= first && last <= range.last;
    });
}

}  // namespace belvedere::agent
