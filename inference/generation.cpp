// SPDX-License-Identifier: Apache-2.0
#include "inference/generation.h"

#include <algorithm>

namespace belvedere::inference {
namespace {

using Clock = std::chrono::steady_clock;

/// The decoder looks at the stop token twice a layer: chunks shrink until that is this often.
constexpr std::chrono::milliseconds kStopInterval{50};
constexpr size_t kMinChunk = 16;

/// Ends the use of a sequence on every way out.
class SequenceUse {
  public:
    SequenceUse(KvCache& cache, SequenceId id) : cache_(cache), id_(id) {}

    ~SequenceUse() { cache_.end(id_); }

    SequenceUse(const SequenceUse&) = delete;
    SequenceUse& operator=(const SequenceUse&) = delete;

  private:
    KvCache& cache_;
    SequenceId id_;
};

}  // namespace

Generation::Generation(Model& model,
                       KvCache& cache,
                       const Tokenizer& tokenizer,
                       std::span<const TokenId> banned,
                       size_t prefill_chunk,
                       GenerationJob& job)
    : model_(model),
      cache_(cache),
      tokenizer_(tokenizer),
      job_(job),
      chunk_(std::clamp<size_t>(prefill_chunk, 1, model.decoder().maxTokens())),
      sampler_(job.request.sampling,
               std::min(tokenizer.vocabSize(), model.config().vocab_size),
               banned,
               model.kernels()),
      answer_(tokenizer, job.request.stop_strings, job.request.show_special_tokens),
      tokens_(job.request.prompt) {
    tokens_.reserve(tokens_.size() +
                    std::min(job.request.max_tokens, model.info().context_tokens - tokens_.size()) +
                    1);
}

Result<GenerationStats> Generation::run() {
    BV_TRY(model_.checkWhole());
    stats_.n_prompt = tokens_.size();
    stats_.n_cached = BV_TRY(cache_.begin(job_.request.sequence, tokens_));
    const SequenceUse use(cache_, job_.request.sequence);
    Result<void> result = prefill();
    if (result.has_value()) {
        const auto begin = Clock::now();
        result = decode();
        stats_.generation = Clock::now() - begin;
    }
    if (!result.has_value()) {
        if (result.error().code != ErrorCode::Cancelled) {
            return tl::unexpected<Error>(std::move(result).error());
        }
        stats_.finish = FinishReason::Cancelled;
    }
    answer_.finish();
    deliver(!undelivered_.empty());
    return stats_;
}

Result<void> Generation::forward(size_t begin, size_t n) {
    const std::span<const PageId> pages = BV_TRY(cache_.prepare(job_.request.sequence, n));
    const std::span<const TokenId> tokens = std::span<const TokenId>(tokens_).subspan(begin, n);
    BV_TRY(model_.decoder().forward(tokens, begin, pages, job_.stop));
    cache_.commit(job_.request.sequence, tokens);
    last_row_ = n - 1;
    return {};
}

Result<void> Generation::prefill() {
    const auto begin = Clock::now();
    size_t n_done = stats_.n_cached;
    job_.channel.send(PrefillMessage{n_done, tokens_.size()}, job_.stop);
    while (n_done < tokens_.size()) {
        if (job_.stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "stopped in the prompt");
        }
        const size_t n = std::min(chunk_, tokens_.size() - n_done);
        const auto chunk_begin = Clock::now();
        BV_TRY(model_.checkWhole());
        BV_TRY(forward(n_done, n));
        const auto step = (Clock::now() - chunk_begin) / (2 * model_.config().n_layers);
        if (step > kStopInterval && chunk_ > kMinChunk) {
            chunk_ = std::max(kMinChunk, chunk_ / 2);
        }
        n_done += n;
        stats_.n_prefilled += n;
        stats_.prefill = Clock::now() - begin;
        job_.channel.send(PrefillMessage{n_done, tokens_.size()}, job_.stop);
    }
    return {};
}

Result<void> Generation::decode() {
    stats_.finish = FinishReason::MaxTokens;
    while (stats_.n_generated < job_.request.max_tokens) {
        if (job_.stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "stopped in the answer");
        }
        const std::span<float> logits = BV_TRY(model_.decoder().logits(last_row_, 1));
        const TokenId id = sampler_.sample(logits, tokens_);
        if (!accept(id)) {
            return {};
        }
        if (stats_.n_generated == job_.request.max_tokens) {
            return {};
        }
        if (tokens_.size() > model_.info().context_tokens) {
            stats_.finish = FinishReason::ContextFull;
            return {};
        }
        BV_TRY(forward(tokens_.size() - 1, 1));
    }
    return {};
}

/// Takes a sampled token into the answer; false where it ends it.
bool Generation::accept(TokenId id) {
    if (stats_.n_generated == 0) {
        stats_.first_token = Clock::now() - job_.asked;
    }
    if (tokenizer_.isEndOfGeneration(id) && !job_.request.ignore_end_of_turn) {
        stats_.finish = FinishReason::EndOfTurn;
        return false;
    }
    ++stats_.n_generated;
    tokens_.push_back(id);
    undelivered_.push_back(id);
    const bool stopped = answer_.push(id);
    deliver(false);
    if (stopped) {
        stats_.finish = FinishReason::StopString;
    }
    return !stopped;
}

void Generation::deliver(bool always) {
    std::string text = answer_.take();
    if (text.empty() && !always) {
        return;
    }
    job_.channel.send(TextMessage{std::move(text), std::move(undelivered_)}, job_.stop);
    undelivered_.clear();
}

}  // namespace belvedere::inference
