// SPDX-License-Identifier: Apache-2.0
#include "inference/sampling/drafter.h"

#include <algorithm>
#include <cmath>

namespace belvedere::inference {
namespace {

/// Tokens that name a chain.
constexpr size_t kPair = 2;
/// Places of a chain that are looked at: pairs of white space stand everywhere.
constexpr size_t kMaxPlaces = 64;

/// How much the past counts after one more token was tried: the last ten or so matter.
constexpr double kFading = 0.9;
/// And after a pass without a draft.
constexpr double kFadingIdle = 0.98;

/// Chance that a drafted token is right, before there is experience, by tokens in common: fewer
/// than 3, than 4, than 6, than 9, more.
constexpr double kPrior[] = {0.3, 0.45, 0.6, 0.75, 0.9};
/// Tokens of experience that it weighs as much as.
constexpr double kPriorWeight = 2.0;

uint64_t pairKey(std::span<const TokenId> tokens, size_t last) {
    return uint64_t{static_cast<uint32_t>(tokens[last - 1])} << 32 |
           static_cast<uint32_t>(tokens[last]);
}

}  // namespace

DraftLength::DraftLength(double row_cost) : row_cost_(row_cost), classes_(std::size(kPrior)) {}

size_t DraftLength::classOf(size_t n_common) {
    constexpr size_t kBelow[] = {3, 4, 6, 9};
    return static_cast<size_t>(std::upper_bound(std::begin(kBelow), std::end(kBelow), n_common) -
                               std::begin(kBelow));
}

double DraftLength::chance(size_t n_common) const {
    const Experience& seen = classes_[classOf(n_common)];
    return (seen.n_right + kPriorWeight * kPrior[classOf(n_common)]) /
           (seen.n_tried + kPriorWeight);
}

size_t DraftLength::choose(size_t n_common, size_t n_max) const {
    const double one = chance(n_common);
    size_t n = 0;
    for (double all = one; n < n_max && all > row_cost_; all *= one) {
        ++n;
    }
    return n;
}

void DraftLength::learn(size_t n_common, size_t n_drafted, size_t n_accepted) {
    Experience& seen = classes_[classOf(n_common)];
    // What stands behind the first wrong token was not tried.
    const auto n_tried = static_cast<double>(std::min(n_accepted + 1, n_drafted));
    const double fading = n_drafted > 0 ? std::pow(kFading, n_tried) : kFadingIdle;
    seen.n_tried = fading * seen.n_tried + n_tried;
    seen.n_right = fading * seen.n_right + static_cast<double>(n_accepted);
}

std::span<const TokenId> Drafter::draft(std::span<const TokenId> tokens, size_t n_max) {
    index(tokens);
    draft_.clear();
    n_common_ = 0;
    if (n_max == 0) {
        return draft_;
    }
    const Match match = longestMatch(tokens);
    n_common_ = match.n_common;
    if (match.n_common < kPair) {
        return draft_;
    }
    const size_t n = length_.choose(match.n_common, n_max);
    // A draft that reaches the end goes on with itself: what repeats, repeats again.
    for (size_t i = match.next; draft_.size() < n; ++i) {
        draft_.push_back(i < tokens.size() ? tokens[i] : draft_[i - tokens.size()]);
    }
    return draft_;
}

void Drafter::learn(size_t n_accepted) {
    if (n_common_ >= kPair) {
        length_.learn(n_common_, draft_.size(), n_accepted);
    }
}

/// The pair at the very end is indexed with the next token: it must not be found as its own past.
void Drafter::index(std::span<const TokenId> tokens) {
    before_.resize(std::max<size_t>(before_.size(), 1));
    for (size_t last = before_.size(); last + 1 < tokens.size(); ++last) {
        uint32_t& newest = newest_[pairKey(tokens, last)];
        before_.push_back(newest);
        newest = static_cast<uint32_t>(last);
    }
}

Drafter::Match Drafter::longestMatch(std::span<const TokenId> tokens) const {
    Match best;
    if (tokens.size() < kPair) {
        return best;
    }
    const size_t end = tokens.size() - 1;
    const auto found = newest_.find(pairKey(tokens, end));
    size_t last = found != newest_.end() ? found->second : 0;
    for (size_t i = 0; i < kMaxPlaces && last != 0; ++i, last = before_[last]) {
        size_t n = kPair;
        while (n < DraftLength::kMaxCommon && n <= last && tokens[last - n] == tokens[end - n]) {
            ++n;
        }
        if (n > best.n_common) {
            best = {last + 1, n};
        }
    }
    return best;
}

}  // namespace belvedere::inference
