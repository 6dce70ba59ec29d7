// SPDX-License-Identifier: Apache-2.0
#include "tools/files/closest_match.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <optional>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>

#include "tools/files/text.h"

namespace belvedere::tools {
namespace {

using Lines = std::vector<std::string_view>;

constexpr size_t kMaxFileLines = 200'000;  // compared; an error message needs no more
constexpr size_t kMaxShownLines = 20;
constexpr size_t kMaxQuotedBytes = 200;
constexpr double kMinLikeness = 0.4;  // below, a line is not worth showing

std::string_view trimmed(std::string_view line) {
    const size_t first = line.find_first_not_of(" \t\r\n");
    return first == std::string_view::npos
               ? std::string_view()
               : line.substr(first, line.find_last_not_of(" \t\r\n") - first + 1);
}

/// Pairs of neighbouring bytes, hashed: enough to compare lines by what they contain.
using PairSet = std::bitset<1024>;

PairSet pairsOf(std::string_view text) {
    PairSet pairs;
    for (size_t i = 0; i + 1 < text.size(); ++i) {
        const unsigned a = static_cast<unsigned char>(text[i]);
        const unsigned b = static_cast<unsigned char>(text[i + 1]);
        pairs.set((a * 37 + b) % pairs.size());
    }
    return pairs;
}

/// Dice coefficient of the pairs, 0 to 1.
double likeness(const PairSet& a, const PairSet& b) {
    const size_t n = a.count() + b.count();
    return n == 0 ? 0 : 2.0 * static_cast<double>((a & b).count()) / static_cast<double>(n);
}

/// Where old_text would start if its lines stood where equal (trimmed) lines of the file are: each
/// such pair votes.
std::optional<size_t> startByVotes(const Lines& file, const Lines& wanted) {
    std::unordered_map<std::string_view, std::vector<size_t>> places;
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (trimmed(wanted[i]).size() > 2) {  // a lone brace says nothing
            places[trimmed(wanted[i])].push_back(i);
        }
    }
    std::vector<size_t> votes(file.size(), 0);
    for (size_t line = 0; line < file.size(); ++line) {
        const auto found = places.find(trimmed(file[line]));
        if (found == places.end()) {
            continue;
        }
        for (const size_t i : found->second) {
            if (i <= line) {
                ++votes[line - i];
            }
        }
    }
    const auto best = std::ranges::max_element(votes);
    return best != votes.end() && *best > 0
               ? std::optional(static_cast<size_t>(best - votes.begin()))
               : std::nullopt;
}

/// The line most like the first line of old_text that is not blank.
std::optional<size_t> startByLikeness(const Lines& file, const Lines& wanted) {
    const auto first =
        std::ranges::find_if(wanted, [](std::string_view line) { return !trimmed(line).empty(); });
    if (first == wanted.end()) {
        return std::nullopt;
    }
    const PairSet pairs = pairsOf(trimmed(*first));
    double best = kMinLikeness;
    std::optional<size_t> start;
    for (size_t line = 0; line < file.size(); ++line) {
        const double like = likeness(pairs, pairsOf(trimmed(file[line])));
        if (like > best) {
            best = like;
            start = line;
        }
    }
    const size_t offset = static_cast<size_t>(first - wanted.begin());
    return start ? std::optional(*start - std::min(*start, offset)) : std::nullopt;
}

std::string shownLine(std::string_view line) {
    const std::string shown = showText(withoutLineEnd(line)).text;
    return std::string(cutText(shown, kMaxQuotedBytes));
}

/// The first line that is not the same, and how.
std::string describeDifference(const Lines& file, const Lines& wanted, size_t start) {
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (start + i >= file.size()) {
            return fmt::format("the file ends before line {} of old_text\n", i + 1);
        }
        const std::string_view in_file = withoutLineEnd(file[start + i]);
        const std::string_view in_text = withoutLineEnd(wanted[i]);
        const bool is_partial = i == 0 ? in_file.ends_with(in_text)
                                       : i + 1 == wanted.size() && in_file.starts_with(in_text);
        if (in_file == in_text || is_partial) {
            continue;
        }
        return fmt::format("line {} differs{} from line {} of old_text: {}\n", start + i + 1,
                           trimmed(in_file) == trimmed(in_text) ? " in white space" : "", i + 1,
                           shownLine(in_text));
    }
    return {};
}

}  // namespace

std::string describeClosestMatch(std::string_view bytes, std::string_view old_text) {
    Lines file = linesWithEnds(bytes);
    file.resize(std::min(file.size(), kMaxFileLines));
    const Lines wanted = linesWithEnds(old_text);
    std::optional<size_t> start = startByVotes(file, wanted);
    if (!start) {
        start = startByLikeness(file, wanted);
    }
    if (!start) {
        return "no line of the file is like it: read the file again";
    }
    const size_t end = std::min({file.size(), *start + wanted.size(), *start + kMaxShownLines});
    std::string text = fmt::format("closest lines, {} to {}:\n", *start + 1, end);
    for (size_t i = *start; i < end; ++i) {
        text += fmt::format("{}\t{}\n", i + 1, shownLine(file[i]));
    }
    return text + describeDifference(file, wanted, *start);
}

}  // namespace belvedere::tools
