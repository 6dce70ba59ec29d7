// SPDX-License-Identifier: Apache-2.0
#pragma once

// One generation on the engine thread: prefix from the cache, prefill in chunks, then a token at a
// time. Private to inference/. States: begin -> prefill (chunk after chunk) -> decode (sample,
// stream, forward) -> end, which every way out passes.

#include <chrono>
#include <memory>
#include <stop_token>
#include <variant>
#include <vector>

#include "inference/cache/kv_cache.h"
#include "inference/channel.h"
#include "inference/engine.h"
#include "inference/model/model.h"
#include "inference/sampling/answer_stream.h"
#include "inference/sampling/sampler.h"

namespace belvedere::inference {

/// What the engine thread tells the caller of generate().
struct PrefillMessage {
    size_t n_done = 0;
    size_t n_total = 0;
};

struct TextMessage {
    std::string text;
    std::vector<TokenId> ids;
};

using GenerationMessage = std::variant<PrefillMessage, TextMessage>;

/// A request on its way. The caller waits on the channel; the engine thread writes the outcome
/// before it closes it.
struct GenerationJob {
    GenerateRequest request;
    std::stop_token stop;
    std::chrono::steady_clock::time_point asked;
    Channel<GenerationMessage> channel{64};
    Result<GenerationStats> outcome = GenerationStats();
};

class Generation {
  public:
    Generation(Model& model,
               KvCache& cache,
               const Tokenizer& tokenizer,
               std::span<const TokenId> banned,
               size_t prefill_chunk,
               GenerationJob& job);

    [[nodiscard]] Result<GenerationStats> run();

  private:
    [[nodiscard]] Result<void> prefill();
    [[nodiscard]] Result<void> decode();
    /// Runs tokens_[begin, begin + n) and keeps them in the cache.
    [[nodiscard]] Result<void> forward(size_t begin, size_t n);
    [[nodiscard]] bool accept(TokenId id);
    void deliver(bool always);

    Model& model_;
    KvCache& cache_;
    const Tokenizer& tokenizer_;
    GenerationJob& job_;
    size_t chunk_;
    Sampler sampler_;
    AnswerStream answer_;
    std::vector<TokenId> tokens_;       ///< prompt and answer
    std::vector<TokenId> undelivered_;  ///< tokens since the last text
    size_t last_row_ = 0;               ///< of the newest pass, where the last token is
    GenerationStats stats_;
};

}  // namespace belvedere::inference
