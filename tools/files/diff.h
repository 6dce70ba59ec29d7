// SPDX-License-Identifier: Apache-2.0
#pragma once

// The difference of two texts by lines, as a unified diff. Pure functions; any thread.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace belvedere::tools {

/// A stretch of lines; counts from 0. Equal: both ranges have the same lines; Change: one of them
/// may be empty.
struct DiffRun {
    enum class Kind { Equal, Change };
    Kind kind = Kind::Equal;
    size_t old_first = 0;
    size_t n_old = 0;
    size_t new_first = 0;
    size_t n_new = 0;
};

/// Covers both texts in order; equal and changed runs alternate. Source: Myers 1986, "An O(ND)
/// Difference Algorithm and Its Variations", the greedy algorithm. Past kMaxDifferences differing
/// lines the middle is one change: still right, not least.
[[nodiscard]] std::vector<DiffRun> diffLines(const std::vector<std::string_view>& old_lines,
                                             const std::vector<std::string_view>& new_lines);

/// "--- a/PATH", "+++ b/PATH" and hunks with three lines of context; empty where the texts are
/// equal. A file that is not there is nullptr ("/dev/null"). Always valid UTF-8: other bytes are
/// shown as \xNN.
[[nodiscard]] std::string unifiedDiff(const std::string& path,
                                      const std::string* old_text,
                                      const std::string* new_text);

}  // namespace belvedere::tools
