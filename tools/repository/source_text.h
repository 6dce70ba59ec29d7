// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes of a file as text the model reads: UTF-8 without byte order mark, LF line ends, no white
// space at the end. Pure functions; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/repository/repository.h"

namespace belvedere::tools {

struct SourceText {
    std::string text;
    size_t n_repaired = 0;  ///< invalid bytes read as U+FFFD
};

/// Largest share and number of invalid bytes that are repaired: a name in an old encoding in a
/// comment, not a foreign file.
inline constexpr size_t kMaxRepairedBytes = 64;
inline constexpr size_t kRepairedShare = 200;  ///< at most one byte in so many

/// nullopt with more invalid UTF-8 than may be repaired; `first_bad_line` then says where it begins
/// (from 1).
[[nodiscard]] std::optional<SourceText> readSourceText(std::string_view bytes,
                                                       size_t& first_bad_line);

/// The lines without their ends; "a\n" is one line, "" none.
[[nodiscard]] std::vector<std::string_view> splitLines(std::string_view text);

/// The piece as it stands in the prompt: "\n### path:first-last\n", the lines joined by newlines.
[[nodiscard]] std::string pieceText(std::string_view path,
                                    const std::vector<std::string_view>& lines,
                                    const PieceLines& piece);

/// A fast 64-bit fingerprint to notice changes; not against an adversary.
[[nodiscard]] uint64_t contentHash(std::string_view bytes);

}  // namespace belvedere::tools
