// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fills a budget of tokens with pieces: everything where it fits, else the best for the question.
// Pieces come out by path and line. One thread at a time per index.

#include <functional>
#include <memory>
#include <string>

#include "agent/context_source.h"
#include "agent/token_counter.h"
#include "tools/repository/ranking.h"

namespace belvedere::tools {

/// The places that answer best, best first: at most kMaxBestPieces, all in `chosen` (sorted).
inline constexpr size_t kMaxBestPieces = 3;

struct PlaceChoice {
    std::vector<PiecePlace> pieces;
    std::vector<PiecePlace> best;
    bool is_whole = false;
    size_t n_tokens = 0;
};

[[nodiscard]] PlaceChoice choosePlaces(const Catalog& catalog,
                                       const std::vector<RankedPiece>& ranked,
                                       size_t budget_tokens);

/// Pieces of one file as they stand in the prompt, with their ids; `text` is the file's.
[[nodiscard]] std::shared_ptr<const agent::SourcePiece> makePiece(
    const FileRecord& file,
    size_t piece,
    const std::vector<std::string_view>& lines,
    const agent::TokenCounter& counter);

}  // namespace belvedere::tools
