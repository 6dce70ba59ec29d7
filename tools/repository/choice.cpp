// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/choice.h"

#include <algorithm>

#include "tools/repository/source_text.h"

namespace belvedere::tools {
namespace {

/// Nothing matches the question: begin where a person would, with the README and the files at the
/// top.
std::vector<PiecePlace> startingPlaces(const Catalog& catalog) {
    constexpr size_t kMaxFiles = 200;
    std::vector<size_t> order(catalog.files.size());
    for (size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    const auto key = [&](size_t file) {
        const std::string& path = catalog.files[file].path;
        const bool is_readme = path.starts_with("README") || path.starts_with("readme");
        return std::pair(is_readme ? 0 : 1 + std::count(path.begin(), path.end(), '/'), file);
    };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
    std::vector<PiecePlace> places;
    for (size_t i = 0; i < std::min(order.size(), kMaxFiles); ++i) {
        for (size_t piece = 0; piece < catalog.files[order[i]].pieces.size(); ++piece) {
            places.push_back({order[i], piece});
        }
    }
    return places;
}

std::vector<PiecePlace> bestPlaces(const std::vector<RankedPiece>& ranked,
                                   const std::vector<PiecePlace>& chosen) {
    constexpr double kClearlyHigh = 0.75;  // of the best score
    std::vector<PiecePlace> best;
    for (const RankedPiece& piece : ranked) {
        if (best.size() == kMaxBestPieces || piece.score < kClearlyHigh * ranked.front().score) {
            break;
        }
        if (std::binary_search(chosen.begin(), chosen.end(), piece.place)) {
            best.push_back(piece.place);
        }
    }
    return best;
}

}  // namespace

PlaceChoice choosePlaces(const Catalog& catalog,
                         const std::vector<RankedPiece>& ranked,
                         size_t budget_tokens) {
    PlaceChoice choice;
    choice.is_whole = catalog.n_tokens <= budget_tokens;
    const auto add = [&](PiecePlace place) {
        const size_t n_tokens = catalog.files[place.file].pieces[place.piece].n_tokens;
        if (n_tokens <= budget_tokens - choice.n_tokens) {
            choice.pieces.push_back(place);
            choice.n_tokens += n_tokens;
        }
    };
    if (choice.is_whole) {
        for (size_t file = 0; file < catalog.files.size(); ++file) {
            for (size_t piece = 0; piece < catalog.files[file].pieces.size(); ++piece) {
                add({file, piece});
            }
        }
    } else if (ranked.empty()) {
        for (const PiecePlace place : startingPlaces(catalog)) {
            add(place);
        }
    } else {
        for (const RankedPiece& piece : ranked) {
            add(piece.place);
        }
    }
    std::sort(choice.pieces.begin(), choice.pieces.end());
    choice.best = bestPlaces(ranked, choice.pieces);
    return choice;
}

std::shared_ptr<const agent::SourcePiece> makePiece(const FileRecord& file,
                                                    size_t piece,
                                                    const std::vector<std::string_view>& lines,
                                                    const agent::TokenCounter& counter) {
    const PieceRecord& record = file.pieces[piece];
    auto made = std::make_shared<agent::SourcePiece>();
    made->path = file.path;
    made->first_line = record.first_line;
    made->last_line = record.last_line;
    made->text = pieceText(file.path, lines, {record.first_line, record.last_line});
    made->ids = std::make_shared<const std::vector<int32_t>>(counter.encode(made->text));
    return made;
}

}  // namespace belvedere::tools
