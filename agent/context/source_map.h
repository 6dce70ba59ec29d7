// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which lines of which files stand in the context. A value; any thread.

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/message.h"

namespace belvedere::agent {

class SourceMap {
  public:
    SourceMap() = default;
    explicit SourceMap(std::span<const std::shared_ptr<const SourcePiece>> pieces);

    [[nodiscard]] bool hasFile(std::string_view path) const {
        return ranges_.find(path) != ranges_.end();
    }

    /// Is every line of [first, last] in the context? Lines count from 1.
    [[nodiscard]] bool covers(std::string_view path, size_t first, size_t last) const;

    [[nodiscard]] size_t fileCount() const { return ranges_.size(); }

  private:
    struct Range {
        size_t first;
        size_t last;
    };

    std::map<std::string, std::vector<Range>, std::less<>>
        ranges_;  ///< ascending, neither overlapping nor touching
};

}  // namespace belvedere::agent
