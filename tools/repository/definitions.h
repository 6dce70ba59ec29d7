// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the names that lines of source define, by cheap rules on single lines: enough to rank the
// piece that defines a symbol before those that use it. Not a parser; a wrong guess costs a place
// in the ranking. Pure functions; any thread.

#include <string_view>
#include <vector>

namespace belvedere::tools {

struct Definition {
    std::string_view name;  ///< view into the line
    float weight = 0;       ///< 1: a definition surely; less: a declaration, a field, a local
};

enum class Language { CLike, Python, Script, Rust, Go, Shell, Other };

[[nodiscard]] Language languageOf(std::string_view path);

/// Appends the names that `line` defines; `next_line` tells a declaration from a definition ("" at
/// the end).
void findDefinitions(Language language,
                     std::string_view line,
                     std::string_view next_line,
                     std::vector<Definition>& definitions);

}  // namespace belvedere::tools
