// SPDX-License-Identifier: Apache-2.0
#pragma once

// Citations in an answer, [path:first-last] or [path:line], checked against what was in the
// context. Any thread.

#include <string_view>
#include <vector>

#include "agent/context/source_map.h"
#include "agent/events.h"

namespace belvedere::agent {

/// In order of the text. What only looks like one (a[i:3], [12:30]) is left out: the path must be
/// in the context or have a '/' or
/// '.' in it, and no letter, digit or closing bracket stands before.
[[nodiscard]] std::vector<Citation> findCitations(std::string_view answer,
                                                  const SourceMap& sources);

}  // namespace belvedere::agent
