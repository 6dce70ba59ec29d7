// SPDX-License-Identifier: Apache-2.0
#include "inference/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

/// exp(-40) < 2^-53: a token this far below the largest cannot change a sum in f64.
constexpr float kNegligible = 40.0F;

}  // namespace

Result<void> checkSampling(const SamplingParams& params) {
    if (!(params.temperature >= 0.0F && params.temperature <= 100.0F)) {
        return fail(ErrorCode::InvalidArgument, "temperature {} is not between 0 and 100",
                    params.temperature);
    }
    if (!(params.top_p > 0.0F && params.top_p <= 1.0F)) {
        return fail(ErrorCode::InvalidArgument, "top_p {} is not above 0 and at most 1",
                    params.top_p);
    }
    if (!(params.min_p >= 0.0F && params.min_p <= 1.0F)) {
        return fail(ErrorCode::InvalidArgument, "min_p {} is not between 0 and 1", params.min_p);
    }
    if (!(params.repetition_penalty > 0.0F && params.repetition_penalty <= 100.0F)) {
        return fail(ErrorCode::InvalidArgument,
                    "repetition_penalty {} is not above 0 and at most 100",
                    params.repetition_penalty);
    }
    return {};
}

Sampler::Sampler(const SamplingParams& params,
                 size_t n_tokens,
                 std::span<const TokenId> banned,
                 const kernels::KernelTable& kernels)
    : params_(params),
      n_tokens_(n_tokens),
      banned_(banned.begin(), banned.end()),
      kernels_(kernels),
      random_(params.seed) {
    if (params.temperature > 0.0F) {
        candidates_.reserve(n_tokens);
        weights_.reserve(n_tokens);
    }
    penalized_.reserve(params.repetition_window);
}

TokenId Sampler::sample(std::span<float> logits, std::span<const TokenId> recent) {
    BV_CHECK(logits.size() >= n_tokens_ && n_tokens_ > 0);
    const std::span<float> real = logits.first(n_tokens_);
    for (const TokenId id : banned_) {
        real[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
    }
    penalize(real, recent);
    if (params_.temperature == 0.0F) {
        return static_cast<TokenId>(kernels_.arg_max(real.data(), real.size()));
    }
    return draw(real);
}

void Sampler::penalize(std::span<float> logits, std::span<const TokenId> recent) {
    if (params_.repetition_penalty == 1.0F) {
        return;
    }
    const size_t n = std::min<size_t>(recent.size(), params_.repetition_window);
    penalized_.assign(recent.end() - static_cast<std::ptrdiff_t>(n), recent.end());
    std::sort(penalized_.begin(), penalized_.end());
    penalized_.erase(std::unique(penalized_.begin(), penalized_.end()), penalized_.end());
    for (const TokenId id : penalized_) {
        if (static_cast<size_t>(id) < logits.size()) {
            float& logit = logits[static_cast<size_t>(id)];
            logit = logit > 0.0F ? logit / params_.repetition_penalty
                                 : logit * params_.repetition_penalty;
        }
    }
}

/// The candidates in falling order of logit, rising order of id, cut by top-k and by what cannot
/// matter.
void Sampler::keepLikely(std::span<const float> logits, float largest) {
    const float floor = largest - kNegligible * params_.temperature;
    candidates_.clear();
    for (size_t id = 0; id < logits.size(); ++id) {
        if (logits[id] >= floor) {
            candidates_.push_back({logits[id], static_cast<TokenId>(id)});
        }
    }
    const auto likelier = [](const Candidate& a, const Candidate& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    };
    if (params_.top_k > 0 && params_.top_k < candidates_.size()) {
        const auto cut = candidates_.begin() + static_cast<std::ptrdiff_t>(params_.top_k);
        std::nth_element(candidates_.begin(), cut, candidates_.end(), likelier);
        candidates_.erase(cut, candidates_.end());
    }
    std::sort(candidates_.begin(), candidates_.end(), likelier);
}

TokenId Sampler::draw(std::span<const float> logits) {
    const size_t best = kernels_.arg_max(logits.data(), logits.size());
    const float largest = logits[best];
    if (!std::isfinite(largest)) {
        return static_cast<TokenId>(best);
    }
    keepLikely(logits, largest);
    double total = 0.0;
    weights_.clear();
    for (const Candidate& candidate : candidates_) {
        weights_.push_back(
            std::exp(static_cast<double>((candidate.logit - largest) / params_.temperature)));
        total += weights_.back();
    }
    size_t n_kept = 0;
    double kept = 0.0;
    while (n_kept < weights_.size() &&
           (n_kept == 0 || kept < static_cast<double>(params_.top_p) * total)) {
        kept += weights_[n_kept++];
    }
    while (n_kept > 1 && weights_[n_kept - 1] < static_cast<double>(params_.min_p)) {
        kept -= weights_[--n_kept];
    }
    double remaining = random_.nextUnit() * kept;
    for (size_t i = 0; i < n_kept; ++i) {
        remaining -= weights_[i];
        if (remaining < 0.0) {
            return candidates_[i].id;
        }
    }
    return candidates_[n_kept - 1].id;
}

}  // namespace belvedere::inference
