// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names of the parts of a split GGUF: STEM-00001-of-00003.gguf. They are derived from the path
// that was opened; nothing in a file names another. Private to inference/format. Pure functions.

#include <cstddef>
#include <optional>
#include <string>

namespace belvedere::inference {

struct SplitName {
    std::string stem;  ///< with the folder
    size_t part = 0;   ///< from 1
    size_t n_parts = 0;

    [[nodiscard]] std::string pathOf(size_t of_part) const;
};

/// nullopt where the path is not the name of a part.
[[nodiscard]] std::optional<SplitName> parseSplitName(const std::string& path);

}  // namespace belvedere::inference
