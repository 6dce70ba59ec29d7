// SPDX-License-Identifier: Apache-2.0
#pragma once

// For an edit that did not apply: the lines of the file that are most like the text looked for, so
// that the next try can be right. Pure function; any thread.

#include <string>
#include <string_view>

namespace belvedere::tools {

/// "closest lines, 12 to 14:\n12\t...\n", and what differs; or that nothing in the file is like it.
[[nodiscard]] std::string describeClosestMatch(std::string_view bytes, std::string_view old_text);

}  // namespace belvedere::tools
