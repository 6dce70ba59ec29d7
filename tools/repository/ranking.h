// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which pieces fit a question best: BM25 over words, raised where a piece defines a name that the
// question asks for. The same question on the same index always gives the same order. One thread at
// a time per index.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/repository/search_index.h"

namespace belvedere::tools {

/// Files with a text, in byte order of their paths, and how to find one by its id.
struct Catalog {
    std::vector<FileRecord> files;
    std::unordered_map<int64_t, size_t> file_of_id;
    size_t n_pieces = 0;
    size_t n_tokens = 0;
};

[[nodiscard]] Catalog makeCatalog(std::vector<FileRecord> files);

/// Place of a piece: index of the file in the catalog, number of the piece in the file.
struct PiecePlace {
    size_t file = 0;
    size_t piece = 0;

    auto operator<=>(const PiecePlace&) const = default;
};

struct RankedPiece {
    PiecePlace place;
    double score = 0;
    bool defines_asked_name = false;
};

struct Question {
    struct Name {
        std::string name;
        bool is_sure = false;  ///< by its form or its place in the sentence, an identifier; else
                               ///< perhaps an ordinary word
        bool is_code = false;  ///< by its form no word of a language: snake_case, camelCase, `name`
                               ///< or name()
    };

    std::vector<std::string> words;
    std::vector<Name> names;
    bool is_about_tests = false;
    bool is_overview = false;  ///< "what does this project do?"
};

[[nodiscard]] Question readQuestion(std::string_view text);

/// Names of code in the question that stand in no file, neither in its text nor in its path.
/// Errors: Corrupt, Io, Cancelled.
[[nodiscard]] Result<std::vector<std::string>> absentNames(const Question& question,
                                                           SearchIndex& index);

/// Best first; empty where nothing of the question occurs. Errors: Corrupt, Io, Cancelled.
[[nodiscard]] Result<std::vector<RankedPiece>> rankPieces(const Question& question,
                                                          const Catalog& catalog,
                                                          SearchIndex& index);

}  // namespace belvedere::tools
