// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/ranking.h"

#include <algorithm>
#include <map>

#include "tools/repository/token_tree.h"
#include "tools/repository/words.h"

namespace belvedere::tools {
namespace {

// Scores: BM25 is scaled so that the best piece has 1; the rest is in the same unit. Chosen on the
// questions of tests/e2e/make_questions.py.
constexpr double kSureNameScore = 2.0;
constexpr double kPerhapsNameScore = 0.4;
constexpr double kOtherSpelling = 0.6;  ///< the case differs
constexpr double kTestShare = 0.7;
constexpr double kNeighbourShare = 0.45;
constexpr double kOverviewScore = 1.5;
constexpr size_t kNeighbourhoods = 3;

constexpr size_t kMaxMatches = 600;
constexpr size_t kMaxDefinitions = 2000;
constexpr size_t kMaxPerhapsDefinitions = 40;  ///< a word that names so many things is a word

using Scores = std::map<PiecePlace, RankedPiece>;

/// The place of a row; false where the index knows more than the catalog (it never should).
bool findPlace(const Catalog& catalog, int64_t row, PiecePlace& place) {
    const auto found = catalog.file_of_id.find(row >> kPieceBits);
    if (found == catalog.file_of_id.end()) {
        return false;
    }
    place = {found->second, static_cast<size_t>(row & ((int64_t{1} << kPieceBits) - 1))};
    return place.piece < catalog.files[place.file].pieces.size();
}

RankedPiece& at(Scores& scores, PiecePlace place) {
    RankedPiece& piece = scores[place];
    piece.place = place;
    return piece;
}

/// Words that stand nearly everywhere cost much and say little; they are left out where rarer ones
/// remain.
Result<std::vector<std::string>> dropCommonWords(const std::vector<std::string>& words,
                                                 size_t n_pieces,
                                                 SearchIndex& index) {
    constexpr size_t kFewPieces = 500;
    if (n_pieces < kFewPieces) {
        return words;
    }
    std::vector<std::string> rare;
    for (const std::string& word : words) {
        if (const size_t n = BV_TRY(index.pieceCount(word)); n > 0 && n <= n_pieces / 5) {
            rare.push_back(word);
        }
    }
    return rare.empty() ? words : rare;
}

Result<void> addWordScores(const Question& question,
                           const Catalog& catalog,
                           SearchIndex& index,
                           Scores& scores) {
    const std::vector<std::string> words =
        BV_TRY(dropCommonWords(question.words, catalog.n_pieces, index));
    const std::vector<PieceMatch> matches = BV_TRY(index.match(words, kMaxMatches));
    const double best = matches.empty() ? 1 : std::max(matches.front().score, 1e-9);
    for (const PieceMatch& match : matches) {
        if (PiecePlace place; findPlace(catalog, match.row, place)) {
            at(scores, place).score += match.score / best;
        }
    }
    return {};
}

Result<void> addNameScores(const Question& question,
                           const Catalog& catalog,
                           SearchIndex& index,
                           Scores& scores) {
    for (const Question::Name& name : question.names) {
        const std::vector<NameMatch> matches =
            BV_TRY(index.definitionsOf(name.name, kMaxDefinitions));
        if (!name.is_sure && matches.size() > kMaxPerhapsDefinitions) {
            continue;
        }
        std::map<PiecePlace, double> best;  // a piece that defines a name twice counts once
        for (const NameMatch& match : matches) {
            if (PiecePlace place; findPlace(catalog, match.row, place)) {
                const double weight =
                    match.weight * (match.name == name.name ? 1.0 : kOtherSpelling);
                best[place] = std::max(best[place], weight);
            }
        }
        for (const auto& [place, weight] : best) {
            RankedPiece& piece = at(scores, place);
            piece.score += weight * (name.is_sure ? kSureNameScore : kPerhapsNameScore);
            piece.defines_asked_name = piece.defines_asked_name || name.is_sure;
        }
    }
    return {};
}

bool isTestPath(std::string_view path) {
    return path.starts_with("test") || path.find("/test") != std::string_view::npos ||
           path.find("_test.") != std::string_view::npos ||
           path.find(".test.") != std::string_view::npos ||
           path.find("/spec/") != std::string_view::npos;
}

bool isReadme(std::string_view path) {
    return path.find('/') == std::string_view::npos &&
           (path.starts_with("README") || path.starts_with("readme"));
}

void addOverview(const Catalog& catalog, Scores& scores) {
    for (size_t file = 0; file < catalog.files.size(); ++file) {
        if (isReadme(catalog.files[file].path)) {
            for (size_t piece = 0; piece < catalog.files[file].pieces.size(); ++piece) {
                at(scores, {file, piece}).score += kOverviewScore / static_cast<double>(piece + 1);
            }
        }
    }
}

bool isBetter(const RankedPiece& a, const RankedPiece& b) {
    return a.score != b.score ? a.score > b.score : a.place < b.place;
}

/// The pieces around the best ones often hold the rest of a function or its comment.
void addNeighbours(const Catalog& catalog, Scores& scores) {
    std::vector<RankedPiece> ranked;
    for (const auto& [place, piece] : scores) {
        ranked.push_back(piece);
    }
    const size_t n_best = std::min(kNeighbourhoods, ranked.size());
    std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(n_best),
                      ranked.end(), isBetter);
    for (size_t i = 0; i < n_best; ++i) {
        const PiecePlace place = ranked[i].place;
        const double share = ranked[i].score * kNeighbourShare;
        if (place.piece + 1 < catalog.files[place.file].pieces.size()) {
            RankedPiece& next = at(scores, {place.file, place.piece + 1});
            next.score = std::max(next.score, share);
        }
        if (place.piece > 0) {
            RankedPiece& previous = at(scores, {place.file, place.piece - 1});
            previous.score = std::max(previous.score, share);
        }
    }
}

}  // namespace

Catalog makeCatalog(std::vector<FileRecord> files) {
    Catalog catalog;
    catalog.files = std::move(files);
    for (size_t i = 0; i < catalog.files.size(); ++i) {
        catalog.file_of_id.emplace(catalog.files[i].id, i);
        catalog.n_pieces += catalog.files[i].pieces.size();
        catalog.n_tokens += tokenCount(catalog.files[i]);
    }
    return catalog;
}

Result<std::vector<std::string>> absentNames(const Question& question, SearchIndex& index) {
    std::vector<std::string> absent;
    for (const Question::Name& name : question.names) {
        const std::string word = name.is_code ? wholeWord(name.name) : "";
        // "GitHub" may be written "Github": the one is listed whole, the other by its stem.
        if (!word.empty() && BV_TRY(index.pieceCount(word)) == 0 &&
            BV_TRY(index.pieceCount(stem(word))) == 0) {
            absent.push_back(name.name);
        }
    }
    return absent;
}

Result<std::vector<RankedPiece>> rankPieces(const Question& question,
                                            const Catalog& catalog,
                                            SearchIndex& index) {
    Scores scores;
    BV_TRY(addWordScores(question, catalog, index, scores));
    BV_TRY(addNameScores(question, catalog, index, scores));
    if (question.is_overview) {
        addOverview(catalog, scores);
    }
    if (!question.is_about_tests) {
        for (auto& [place, piece] : scores) {
            piece.score *= isTestPath(catalog.files[place.file].path) ? kTestShare : 1.0;
        }
    }
    addNeighbours(catalog, scores);
    std::vector<RankedPiece> ranked;
    ranked.reserve(scores.size());
    for (const auto& [place, piece] : scores) {
        ranked.push_back(piece);
    }
    std::sort(ranked.begin(), ranked.end(), isBetter);
    return ranked;
}

}  // namespace belvedere::tools
