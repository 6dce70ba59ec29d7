// SPDX-License-Identifier: Apache-2.0
#pragma once

// Replacing a piece of text in the bytes of a file: exact, or exact but for the kind of line ends;
// every byte outside the piece stays as it is. Pure functions; any thread.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace belvedere::tools {

struct Replacement {
    std::string bytes;          ///< the whole new content
    std::vector<size_t> lines;  ///< where the pieces start, from 1, in the old content
};

enum class ReplaceCount { One, All };

/// `old_text` must occur in `bytes` exactly once, or at least once for All. Line feeds of both
/// texts stand for the line ends of the file unless old_text has carriage returns of its own.
/// Errors: InvalidArgument: empty or equal texts; no match (with the closest lines and their
/// numbers); several matches (with their lines); new_text has other than ASCII characters and the
/// file is not UTF-8.
[[nodiscard]] Result<Replacement> replaceText(std::string_view bytes,
                                              std::string_view old_text,
                                              std::string_view new_text,
                                              ReplaceCount count);

}  // namespace belvedere::tools
