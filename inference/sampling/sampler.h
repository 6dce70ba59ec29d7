// SPDX-License-Identifier: Apache-2.0
#pragma once

// Picks the next token from logits. In this order: ids that are no tokens are left out; the
// repetition penalty divides positive and multiplies negative logits of recent tokens (Keskar et
// al. 2019, arXiv:1909.05858); temperature 0 takes the largest logit, the lowest id on a tie; else
// temperature, top-k, softmax, top-p (nucleus, Holtzman et al. 2020, arXiv:1904.09751: the fewest
// tokens whose probabilities reach top_p), min-p (relative to the largest probability), and a draw
// from what is left. The same logits, parameters and seed give the same token everywhere. One
// thread at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "inference/engine.h"
#include "inference/sampling/random.h"
#include "kernels/kernels.h"

namespace belvedere::inference {

/// Errors: InvalidArgument, naming the parameter and its range.
[[nodiscard]] Result<void> checkSampling(const SamplingParams& params);

class Sampler {
  public:
    /// `banned`: ids that must never come out, also every id from n_tokens on. Requires: checked
    /// parameters.
    Sampler(const SamplingParams& params,
            size_t n_tokens,
            std::span<const TokenId> banned,
            const kernels::KernelTable& kernels);

    /// Changes logits in place. `recent`: the sequence so far, newest last.
    [[nodiscard]] TokenId sample(std::span<float> logits, std::span<const TokenId> recent);

  private:
    struct Candidate {
        float logit;
        TokenId id;
    };

    void penalize(std::span<float> logits, std::span<const TokenId> recent);
    [[nodiscard]] TokenId draw(std::span<const float> logits);
    void keepLikely(std::span<const float> logits, float largest);

    const SamplingParams params_;
    const size_t n_tokens_;
    const std::vector<TokenId> banned_;
    const kernels::KernelTable& kernels_;
    Random random_;
    std::vector<Candidate> candidates_;  ///< scratch, reserved for the whole vocabulary
    std::vector<double> weights_;
    std::vector<TokenId> penalized_;
};

}  // namespace belvedere::inference
