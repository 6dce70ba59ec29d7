// SPDX-License-Identifier: Apache-2.0
#pragma once

// File name patterns: * (within a folder), ** (across folders), ?, [a-z], {a,b}. A pattern without
// '/' is matched with the last part of the path, any other with the whole. Immutable; any thread.

#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace re2 {
class RE2;
}

namespace belvedere::tools {

class Glob {
  public:
    /// Errors: InvalidArgument naming the pattern.
    static Result<Glob> parse(const std::string& pattern);

    [[nodiscard]] bool matches(std::string_view path) const;  ///< with '/'

  private:
    Glob(std::shared_ptr<const re2::RE2> expression, bool is_whole_path)
        : expression_(std::move(expression)), is_whole_path_(is_whole_path) {}

    std::shared_ptr<const re2::RE2> expression_;  ///< shared by copies, immutable
    bool is_whole_path_;
};

}  // namespace belvedere::tools
