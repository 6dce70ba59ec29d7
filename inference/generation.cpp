// SPDX-License-Identifier: Apache-2.0
#include "inference/generation.h"

#include <algorithm>
#include <utility>

#include "inference/prompt_media.h"
#include "kernels/base/log.h"

namespace belvedere::inference {
namespace {

using Clock = std::chrono::steady_clock;

/// The decoder looks at the stop token twice a layer: chunks shrink until that is this often.
constexpr std::chrono::milliseconds kStopInterval{50};
constexpr size_t kMinChunk = 16;

/// Of one more row in a pass of few, as a share of a pass of one: measured 0.10 to 0.22 with the
/// default model at 500 to 6,000 tokens. Experts are read for each row anew: 0.17 to 0.30 with 8 of
/// them, more with more.
constexpr double kRowCost = 0.2;
constexpr double kRowCostOfExperts = 0.5;

double rowCost(const ModelConfig& config) {
    const bool has_experts =
        std::any_of(config.layers.begin(), config.layers.end(),
                    [](const LayerConfig& layer) { return layer.mlp == MlpKind::Experts; });
    return has_experts ? kRowCostOfExperts : kRowCost;
}

/// The ban of a request as the cache compares it: none is one value, and what binds the answer
/// begins with the last token of the prompt, from which the first token of the answer comes.
BlockBan effectiveBan(const GenerateRequest& request) {
    BlockBan ban = request.ban;
    std::sort(ban.blocks.begin(), ban.blocks.end());
    ban.blocks.erase(std::unique(ban.blocks.begin(), ban.blocks.end()), ban.blocks.end());
    ban.begin =
        ban.blocks.empty() ? BlockBan::kAnswer : std::min(ban.begin, request.prompt.size() - 1);
    return ban;
}

/// By block of the whole window.
std::vector<uint8_t> bannedMask(const BlockBan& ban, const ModelInfo& info) {
    if (ban.blocks.empty()) {
        return {};
    }
    std::vector<uint8_t> mask(info.blockCount(), 0);
    for (const uint32_t block : ban.blocks) {
        mask[block] = 1;
    }
    return mask;
}

}  // namespace

Generation::Generation(const GenerationContext& context, GenerationJob& job, size_t part)
    : context_(context),
      job_(job),
      part_index_(part),
      part_(job.parts[part]),
      chunk_(std::clamp<size_t>(context.prefill_chunk, 1, context.model.decoder().maxTokens())),
      sampler_(part_.request.sampling,
               std::min(context.tokenizer.vocabSize(), context.model.config().vocab_size),
               context.banned,
               context.model.kernels()),
      drafter_(rowCost(context.model.config())),
      answer_(context.tokenizer, part_.request.stop_strings, part_.request.show_special_tokens),
      shares_(context.model.config(), part_.request.share_layers),
      ban_(effectiveBan(part_.request)),
      banned_(bannedMask(ban_, context.model.info())),
      tokens_(part_.request.prompt),
      cache_ids_(cacheIds(part_.request.prompt, part_.request.media, context.model.towerKey())) {
    tokens_.reserve(
        tokens_.size() +
        std::min(part_.request.max_tokens, context.model.info().context_tokens - tokens_.size()) +
        1);
}

Generation::~Generation() {
    leave();
}

void Generation::leave() {
    if (std::exchange(is_in_use_, false)) {
        context_.cache.end(part_.request.sequence);
    }
}

void Generation::begin() {
    Result<void> result = prefill();
    // Nothing was said yet: what a damaged snapshot held is computed like any prompt.
    while (!result.has_value() && result.error().code == ErrorCode::Corrupt &&
           context_.cache.forgetDamaged()) {
        const std::string& damage = result.error().message;
        BV_LOG(LogLevel::Warn, "inference", "{}: computed anew", damage);
        send(NoticeMessage{fmt::format("{}. What it held is computed anew.", damage)});
        leave();
        result = prefill();
    }
    decode_begin_ = Clock::now();
    if (!result.has_value()) {
        giveUp(std::move(result).error());
        return;
    }
    if (part_.request.max_tokens == 0) {
        finish(FinishReason::MaxTokens);
        return;
    }
    const size_t last_row = pass_tokens_.size() - 1;
    Result<std::span<float>> logits = context_.model.decoder().logits(last_row, 1);
    if (!logits.has_value()) {
        giveUp(std::move(logits).error());
        return;
    }
    pass_tokens_.resize(1);
    sampleRows(*logits, last_row, 1);
}

Result<void> Generation::prefill() {
    BV_TRY(context_.model.checkWhole());
    stats_.n_prompt = tokens_.size();
    stats_.n_cached = BV_TRY(context_.cache.begin(part_.request.sequence, cache_ids_, ban_));
    is_in_use_ = true;
    n_computed_ = stats_.n_cached;
    const auto begin = Clock::now();
    send(PrefillMessage{n_computed_, tokens_.size()});
    while (n_computed_ < tokens_.size()) {
        if (part_.stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "stopped in the prompt");
        }
        BV_TRY(context_.model.checkWhole());
        // No pass reaches over the begin of a ban.
        const size_t end =
            n_computed_ < ban_.begin ? std::min(ban_.begin, tokens_.size()) : tokens_.size();
        const size_t n = std::min(chunk_, end - n_computed_);
        BV_TRY(encodeImages(n));
        const auto chunk_begin = Clock::now();
        BV_TRY(forward(n));
        const auto step = (Clock::now() - chunk_begin) / (2 * context_.model.config().n_layers);
        if (step > kStopInterval && chunk_ > kMinChunk) {
            chunk_ = std::max(kMinChunk, chunk_ / 2);
        }
        stats_.n_prefilled = n_computed_ - stats_.n_cached;
        stats_.prefill = Clock::now() - begin;
        send(PrefillMessage{n_computed_, tokens_.size()});
    }
    images_.clear();
    return {};
}

Result<void> Generation::encodeImages(size_t n) {
    for (const MediaSpan& span : part_.request.media) {
        const bool is_needed =
            span.token_begin < n_computed_ + n && span.token_begin + span.n_tokens > n_computed_;
        if (is_needed && !images_.contains(span.media.get())) {
            images_[span.media.get()] = BV_TRY(encode(*span.media));
        }
    }
    return {};
}

Result<Embeddings> Generation::encode(const Media& media) {
    ++stats_.n_images;
    if (Embeddings known = context_.embeddings.find(media.hash)) {
        return known;
    }
    const auto begin = Clock::now();
    TowerOutput output =
        BV_TRY(context_.model.tower()->encode(media.frames, TowerRows::Drop, part_.stop));
    auto embeddings = std::make_shared<const std::vector<float>>(std::move(output.embeddings));
    ++stats_.n_encoded;
    stats_.encoding += Clock::now() - begin;
    context_.embeddings.add(media.hash, embeddings);
    return embeddings;
}

/// Runs the next n tokens of the prompt and keeps them in the cache.
Result<void> Generation::forward(size_t n) {
    const std::span<const PageId> pages = BV_TRY(context_.cache.prepare(part_.request.sequence, n));
    const auto tokens = std::span<const TokenId>(cache_ids_).subspan(n_computed_, n);
    const PassRun one = run(n, pages);
    const std::vector<GivenRows> given =
        givenRows(part_.request.media, n_computed_, n, context_.model.config().dim,
                  [&](const Media& media) { return std::span<const float>(*images_.at(&media)); });
    BV_TRY(
        context_.model.decoder().forward(tokens, std::span(&one, 1), part_.stop, nullptr, given));
    BV_TRY(context_.model.backend().await());
    context_.cache.commit(part_.request.sequence, tokens);
    pass_tokens_.assign(tokens.begin(), tokens.end());
    n_computed_ += n;
    return {};
}

PassRun Generation::run(size_t n_tokens, std::span<const PageId> pages) const {
    return {
        n_tokens, n_computed_, pages,
        n_computed_ >= ban_.begin ? std::span<const uint8_t>(banned_) : std::span<const uint8_t>()};
}

std::optional<Generation::Part> Generation::prepare(size_t n_max) {
    if (!is_over_ && part_.stop.stop_requested()) {
        finish(FinishReason::Cancelled);
    }
    if (is_over_) {
        return std::nullopt;
    }
    pass_tokens_.assign(1, tokens_.back());
    if (context_.drafts && part_.request.drafts) {
        // The last token that may come needs no row of its own.
        const size_t n_left = std::min(part_.request.max_tokens - stats_.n_generated,
                                       context_.model.info().context_tokens + 1 - tokens_.size());
        const auto draft = drafter_.draft(tokens_, std::min(n_max, n_left) - 1);
        pass_tokens_.insert(pass_tokens_.end(), draft.begin(), draft.end());
    }
    const Result<std::span<const PageId>> pages =
        context_.cache.prepare(part_.request.sequence, pass_tokens_.size());
    if (!pages.has_value()) {
        giveUp(pages.error());
        return std::nullopt;
    }
    return Part{pass_tokens_, run(pass_tokens_.size(), *pages)};
}

void Generation::take(std::span<float> logits, size_t first_row) {
    const size_t n_rows = pass_tokens_.size();
    const size_t n_right = sampleRows(logits, first_row, n_rows);
    context_.cache.commit(part_.request.sequence,
                          std::span<const TokenId>(pass_tokens_).first(n_right));
    n_computed_ += n_right;
    ++stats_.n_passes;
    stats_.n_drafted += n_rows - 1;
    stats_.n_accepted += n_right - 1;
    drafter_.learn(n_right - 1);
}

/// Samples what follows each row, as long as it is what the next row holds; returns how many rows
/// hold what was sampled.
size_t Generation::sampleRows(std::span<float> logits, size_t first_row, size_t n_rows) {
    const size_t width = logits.size() / n_rows;
    for (size_t row = 0;; ++row) {
        const TokenId id = sampler_.sample(logits.subspan(row * width, width), tokens_);
        accept(id, first_row + row);
        if (!is_over_ && part_.stop.stop_requested()) {
            finish(FinishReason::Cancelled);
        }
        if (is_over_ || row + 1 == n_rows || pass_tokens_[row + 1] != id) {
            return row + 1;
        }
    }
}

/// Takes a token, sampled from a row of the pass, into the answer, unless it ends it.
void Generation::accept(TokenId id, size_t row) {
    if (stats_.n_generated == 0) {
        stats_.first_token = Clock::now() - job_.asked;
    }
    if (context_.tokenizer.isEndOfGeneration(id) && !part_.request.ignore_end_of_turn) {
        finish(FinishReason::EndOfTurn);
        return;
    }
    ++stats_.n_generated;
    tokens_.push_back(id);
    undelivered_.push_back(id);
    if (context_.model.info().block_tokens > 0) {
        undelivered_blocks_.push_back(shares_.add(context_.model.decoder(), row));
    }
    const bool stopped = answer_.push(id);
    deliver(false);
    if (stopped) {
        finish(FinishReason::StopString);
    } else if (stats_.n_generated == part_.request.max_tokens) {
        finish(FinishReason::MaxTokens);
    } else if (tokens_.size() > context_.model.info().context_tokens) {
        finish(FinishReason::ContextFull);
    }
}

void Generation::finish(FinishReason reason) {
    stats_.finish = reason;
    stats_.generation = Clock::now() - decode_begin_;
    is_over_ = true;
    answer_.finish();
    deliver(!undelivered_.empty());
}

void Generation::giveUp(Error error) {
    finish(FinishReason::Cancelled);
    if (error.code == ErrorCode::Corrupt && context_.cache.forgetDamaged()) {
        error.message += ": ask again, what it held is then computed anew";
    }
    if (error.code != ErrorCode::Cancelled) {
        error_ = std::move(error);
    }
}

Result<GenerationStats> Generation::end() {
    if (error_) {
        return tl::unexpected<Error>(*error_);
    }
    stats_.blocks = shares_.mean();
    return stats_;
}

void Generation::deliver(bool always) {
    std::string text = answer_.take();
    if (text.empty() && !always) {
        return;
    }
    send(TextMessage{std::move(text), std::move(undelivered_), std::move(undelivered_blocks_)});
    undelivered_.clear();
    undelivered_blocks_.clear();
}

void Generation::send(MessageContent what) {
    job_.channel.send({part_index_, std::move(what)}, part_.stop);
}

void decodeTogether(Model& model, std::span<Generation* const> generations) {
    const size_t n_rows_max = std::min(kernels::kIndependentTokens, model.decoder().maxTokens());
    std::vector<Generation*> live;
    std::vector<PassRun> runs;
    std::vector<TokenId> tokens;
    while (true) {
        const auto n_live = static_cast<size_t>(
            std::count_if(generations.begin(), generations.end(),
                          [](const Generation* generation) { return !generation->isOver(); }));
        live.clear();
        runs.clear();
        tokens.clear();
        for (Generation* generation : generations) {
            if (const auto part = generation->prepare(n_rows_max / std::max<size_t>(n_live, 1))) {
                live.push_back(generation);
                runs.push_back(part->run);
                tokens.insert(tokens.end(), part->tokens.begin(), part->tokens.end());
            }
        }
        if (live.empty()) {
            return;
        }
        // One that is stopped must not take the pass away from the others.
        const std::stop_token stop = live.size() == 1 ? live.front()->stop() : std::stop_token();
        Result<void> ran =
            model.decoder().forward(tokens, runs, stop, nullptr, {}, PassKind::Generation);
        Result<std::span<float>> logits =
            ran.has_value() ? model.decoder().logits(0, tokens.size())
                            : Result<std::span<float>>(tl::unexpected<Error>(ran.error()));
        const size_t width = model.config().vocab_size;
        size_t row = 0;
        for (size_t i = 0; i < live.size(); ++i) {
            if (logits.has_value()) {
                live[i]->take(logits->subspan(row * width, runs[i].n_tokens * width), row);
            } else {
                live[i]->giveUp(logits.error());
            }
            row += runs[i].n_tokens;
        }
    }
}

}  // namespace belvedere::inference
