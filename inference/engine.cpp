// SPDX-License-Identifier: Apache-2.0
// The engine: a queue of jobs and the thread that runs them.
//
// Words. A job is one call of generate(), generateTogether(), saveSnapshot() or openSnapshot(). It
// is waiting (in the queue), running (taken by the engine thread) or done.
//
//     waiting --takeJob()--> running --its function--> done
//        `------receive(), stopped by its caller-----------^
//
// Invariants
//  1. Only the engine thread runs the decoder and touches page memory.
//  2. A job is done exactly once, by whoever took it from the queue; its outcome is written before
//  its channel closes.
//  3. The call returns only when its job is done, so nothing of a request outlives the call.

#include "inference/engine.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "inference/cache/kv_cache.h"
#include "inference/cache/snapshot.h"
#include "inference/chat/fallback.h"
#include "inference/generation.h"
#include "inference/model/model.h"
#include "inference/prompt_builder.h"
#include "inference/prompt_media.h"
#include "kernels/base/log.h"

namespace belvedere::inference {
namespace {

using GenerationPointer = std::shared_ptr<GenerationJob>;  // shared by the caller and the engine
                                                           // thread until both are through

struct Job {
    std::function<void()> run;                  ///< on the engine thread; does not throw
    const GenerationJob* generation = nullptr;  ///< which can be taken out of the queue
};

/// Ids that the model has rows for but that mean nothing.
std::vector<TokenId> unusedTokens(const Tokenizer& tokenizer, size_t n_rows) {
    std::vector<TokenId> ids;
    for (size_t id = 0; id < std::min(tokenizer.vocabSize(), n_rows); ++id) {
        if (tokenizer.kind(static_cast<TokenId>(id)) == TokenKind::Unused) {
            ids.push_back(static_cast<TokenId>(id));
        }
    }
    return ids;
}

Result<ChatTemplate> chatTemplateOf(const ModelSource& source) {
    const std::optional<TemplateText> text = BV_TRY(source.chatTemplate());
    return text ? ChatTemplate::compile(text->text, {}, text->name) : fallbackTemplate();
}

class EngineImpl final : public Engine {
  public:
    EngineImpl(std::unique_ptr<Model> model,
               std::unique_ptr<Tokenizer> tokenizer,
               Result<ChatTemplate> chat_template,
               const PlaceholderIds& placeholders,
               const EngineConfig& config)
        : model_(std::move(model)),
          tokenizer_(std::move(tokenizer)),
          chat_template_(std::move(chat_template)),
          placeholders_(placeholders),
          unused_(unusedTokens(*tokenizer_, model_->config().vocab_size)),
          prefill_chunk_(config.prefill_chunk),
          drafts_(config.drafts),
          cache_(model_->backend(), config.cache_budget_bytes),
          embeddings_(config.embedding_budget_bytes),
          thread_([this](const std::stop_token& stop) { runJobs(stop); }) {}

    [[nodiscard]] const ModelInfo& info() const override { return model_->info(); }

    [[nodiscard]] const Tokenizer& tokenizer() const override { return *tokenizer_; }

    [[nodiscard]] Result<Prompt> buildPrompt(const PromptRequest& request) const override;

    SequenceId openSequence() override { return cache_.open(); }

    Result<SequenceId> fork(SequenceId sequence, size_t n_tokens) override {
        return cache_.fork(sequence, n_tokens);
    }

    void closeSequence(SequenceId sequence) override;

    [[nodiscard]] size_t cachedPrefix(SequenceId sequence,
                                      std::span<const TokenId> prompt,
                                      std::span<const MediaSpan> media) const override {
        return checkMedia(media, prompt.size()).has_value()
                   ? cache_.cachedPrefix(sequence, cacheIds(prompt, media, model_->towerKey()))
                   : 0;
    }

    Result<GenerationStats> generate(const GenerateRequest& request,
                                     GenerationSink& sink,
                                     std::stop_token stop) override {
        const GenerationItem item = {request, &sink, std::move(stop)};
        return std::move(generateTogether(std::span(&item, 1)).front());
    }

    std::vector<Result<GenerationStats>> generateTogether(
        std::span<const GenerationItem> items) override;

    Result<uint64_t> saveSnapshot(SequenceId sequence,
                                  const std::string& path,
                                  std::stop_token stop) override;
    Result<SequenceId> openSnapshot(const std::string& path, std::stop_token stop) override;

    [[nodiscard]] CacheUse cacheUse() const override { return cache_.use(); }

    [[nodiscard]] std::vector<SequenceUse> sequences() const override { return cache_.sequences(); }

    [[nodiscard]] EmbeddingCache::Use embeddingUse() const override { return embeddings_.use(); }

  private:
    [[nodiscard]] Result<void> check(const GenerateRequest& request) const;
    [[nodiscard]] Result<void> checkBlocks(const GenerateRequest& request) const;
    void submit(Job job);
    void receive(const GenerationPointer& job,
                 std::span<const GenerationItem> items,
                 std::span<const size_t> item_of_part);
    bool removeWaiting(const GenerationJob& job);
    void runJobs(const std::stop_token& stop);
    [[nodiscard]] std::optional<Job> takeJob(const std::stop_token& stop);
    void runGeneration(GenerationJob& job);
    template <class T>
    [[nodiscard]] Result<T> runAndWait(const std::function<Result<T>()>& work);
    [[nodiscard]] SnapshotKey snapshotKey();

    const std::unique_ptr<Model> model_;
    const std::unique_ptr<Tokenizer> tokenizer_;
    const Result<ChatTemplate> chat_template_;
    const PlaceholderIds placeholders_;
    const std::vector<TokenId> unused_;
    const size_t prefill_chunk_;
    const bool drafts_;
    KvCache cache_;
    EmbeddingCache embeddings_;

    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::deque<Job> waiting_;
    bool release_pages_ = false;
    std::jthread thread_;  // last: joins before the state above dies
};

Result<Prompt> EngineImpl::buildPrompt(const PromptRequest& request) const {
    if (!chat_template_.has_value()) {
        return tl::unexpected<Error>(chat_template_.error());
    }
    Prompt prompt = BV_TRY(inference::buildPrompt(*chat_template_, *tokenizer_, request));
    BV_TRY(expandMedia(*tokenizer_, placeholders_, request.media, prompt));
    return prompt;
}

void EngineImpl::closeSequence(SequenceId sequence) {
    cache_.close(sequence);
    {
        const std::lock_guard lock(mutex_);
        release_pages_ = true;
    }
    wake_.notify_all();
}

Result<void> EngineImpl::check(const GenerateRequest& request) const {
    BV_TRY(checkSampling(request.sampling));
    const size_t n_prompt = request.prompt.size();
    if (n_prompt == 0) {
        return fail(ErrorCode::InvalidArgument, "the prompt is empty");
    }
    if (n_prompt + 1 > info().context_tokens) {
        return fail(ErrorCode::InvalidArgument,
                    "the prompt has {} tokens, the window of {} has room for {} and an answer: "
                    "shorten the prompt",
                    n_prompt, info().name, info().context_tokens - 1);
    }
    for (const TokenId id : request.prompt) {
        if (id < 0 || static_cast<size_t>(id) >= info().vocab_size) {
            return fail(ErrorCode::InvalidArgument, "the prompt holds id {}, the vocabulary has {}",
                        id, info().vocab_size);
        }
    }
    if (!request.media.empty() && model_->tower() == nullptr) {
        return fail(ErrorCode::InvalidArgument,
                    "{} reads text only: no vision tower in it or beside it (--mmproj FILE): leave "
                    "out the images",
                    info().name);
    }
    BV_TRY(checkMedia(request.media, n_prompt));
    return checkBlocks(request);
}

Result<void> EngineImpl::checkBlocks(const GenerateRequest& request) const {
    const bool has_msa = info().block_tokens > 0;
    if (!has_msa && !(request.ban.blocks.empty() && request.share_layers.empty())) {
        return fail(ErrorCode::InvalidArgument,
                    "{} attends densely: there are no blocks to ban or to count", info().name);
    }
    for (const uint32_t block : request.ban.blocks) {
        if (block >= info().blockCount()) {
            return fail(ErrorCode::InvalidArgument, "block {} is banned, the window has {}", block,
                        info().blockCount());
        }
    }
    const std::vector<size_t> layers = model_->config().msaLayers();
    for (const size_t layer : request.share_layers) {
        if (!std::binary_search(layers.begin(), layers.end(), layer)) {
            return fail(ErrorCode::InvalidArgument,
                        "layer {} is to be counted, but it chooses no blocks", layer);
        }
    }
    return {};
}

std::vector<Result<GenerationStats>> EngineImpl::generateTogether(
    std::span<const GenerationItem> items) {
    std::vector<Result<GenerationStats>> outcomes;
    std::vector<size_t> item_of_part;
    const auto job = std::make_shared<GenerationJob>();
    job->asked = std::chrono::steady_clock::now();
    for (const GenerationItem& item : items) {
        const Result<void> checked =
            items.size() <= kMaxTogether
                ? check(item.request)
                : Result<void>(fail(ErrorCode::InvalidArgument,
                                    "{} answers at once, at most {} are possible", items.size(),
                                    kMaxTogether));
        if (checked.has_value()) {
            item_of_part.push_back(outcomes.size());
            job->parts.push_back({item.request, item.stop});
            outcomes.emplace_back(GenerationStats());
        } else {
            outcomes.emplace_back(tl::unexpected<Error>(checked.error()));
        }
    }
    if (!job->parts.empty()) {
        submit({[this, job] {
                    runGeneration(*job);
                    job->channel.close();
                },
                job.get()});
        receive(job, items, item_of_part);
    }
    for (size_t part = 0; part < job->parts.size(); ++part) {
        outcomes[item_of_part[part]] = std::move(job->parts[part].outcome);
    }
    return outcomes;
}

void EngineImpl::submit(Job job) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(job));
    }
    wake_.notify_all();
}

/// Hands out what the engine thread sends, until the job is done.
void EngineImpl::receive(const GenerationPointer& job,
                         std::span<const GenerationItem> items,
                         std::span<const size_t> item_of_part) {
    // Behind a long job a stop must not wait for its turn.
    const auto leaveQueue = [this, job] {
        const bool all_stopped =
            std::all_of(job->parts.begin(), job->parts.end(),
                        [](const GenerationJob::Part& part) { return part.stop.stop_requested(); });
        if (!all_stopped || !removeWaiting(*job)) {
            return;
        }
        for (GenerationJob::Part& part : job->parts) {
            GenerationStats stats;
            stats.n_prompt = part.request.prompt.size();
            stats.finish = FinishReason::Cancelled;
            part.outcome = std::move(stats);
        }
        job->channel.close();
    };
    std::deque<std::stop_callback<decltype(leaveQueue)>> callbacks;
    for (const GenerationJob::Part& part : job->parts) {
        callbacks.emplace_back(part.stop, leaveQueue);
    }
    while (std::optional<GenerationMessage> message = job->channel.receive()) {
        GenerationSink& sink = *items[item_of_part[message->part]].sink;
        if (const auto* prefill = std::get_if<PrefillMessage>(&message->what)) {
            sink.onPrefill(prefill->n_done, prefill->n_total);
            continue;
        }
        if (const auto* notice = std::get_if<NoticeMessage>(&message->what)) {
            sink.onNotice(notice->text);
            continue;
        }
        const auto& text = std::get<TextMessage>(message->what);
        for (const std::vector<BlockShare>& blocks : text.blocks) {
            sink.onBlocks(blocks);
        }
        sink.onText(text.text, text.ids);
    }
}

bool EngineImpl::removeWaiting(const GenerationJob& job) {
    const std::lock_guard lock(mutex_);
    return std::erase_if(waiting_, [&](const Job& other) { return other.generation == &job; }) > 0;
}

std::optional<Job> EngineImpl::takeJob(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [&] { return !waiting_.empty() || release_pages_; })) {
        if (release_pages_) {
            release_pages_ = false;
            lock.unlock();
            cache_.releaseFree();
            lock.lock();
            continue;
        }
        Job job = std::move(waiting_.front());
        waiting_.pop_front();
        return job;
    }
    return std::nullopt;
}

void EngineImpl::runJobs(const std::stop_token& stop) {
    while (const std::optional<Job> job = takeJob(stop)) {
        job->run();
    }
}

/// Runs `work` on the engine thread when its turn comes.
template <class T>
Result<T> EngineImpl::runAndWait(const std::function<Result<T>()>& work) {
    std::promise<Result<T>> outcome;
    submit({[&] {
        try {
            outcome.set_value(work());
        } catch (const std::exception& error) {
            outcome.set_value(fail(ErrorCode::Internal, "{}", error.what()));
        }
    }});
    return outcome.get_future().get();
}

SnapshotKey EngineImpl::snapshotKey() {
    return {model_->digest(), info().name, model_->backend().pageShape(), info().context_tokens,
            info().vocab_size};
}

Result<uint64_t> EngineImpl::saveSnapshot(SequenceId sequence,
                                          const std::string& path,
                                          std::stop_token stop) {
    return runAndWait<uint64_t>([&]() -> Result<uint64_t> {
        const SnapshotContent content = BV_TRY(cache_.hold(sequence));
        Result<uint64_t> written =
            content.tokens.empty()
                ? fail(ErrorCode::InvalidArgument, "sequence {} holds nothing to save", sequence)
                : writeSnapshot(path, snapshotKey(), content, model_->backend(), stop);
        cache_.forgetDamaged();
        cache_.end(sequence);
        return written;
    });
}

Result<SequenceId> EngineImpl::openSnapshot(const std::string& path, std::stop_token stop) {
    return runAndWait<SequenceId>([&]() -> Result<SequenceId> {
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "stopped before {} was opened", path);
        }
        return cache_.adopt(BV_TRY(SnapshotFile::open(path, snapshotKey())));
    });
}

void EngineImpl::runGeneration(GenerationJob& job) {
    model_->backend().setBusy(true);
    try {
        const GenerationContext context = {*model_,        cache_,  *tokenizer_, unused_,
                                           prefill_chunk_, drafts_, embeddings_};
        std::deque<Generation> generations;
        std::vector<Generation*> all;
        for (size_t part = 0; part < job.parts.size(); ++part) {
            all.push_back(&generations.emplace_back(context, job, part));
            all.back()->begin();
        }
        decodeTogether(*model_, all);
        for (size_t part = 0; part < job.parts.size(); ++part) {
            job.parts[part].outcome = all[part]->end();
        }
    } catch (const std::exception& error) {
        for (GenerationJob::Part& part : job.parts) {
            part.outcome = fail(ErrorCode::Internal, "generating: {}", error.what());
        }
    }
    model_->backend().setBusy(false);
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::load(const LoadRequest& request,
                                             const EngineConfig& config,
                                             const LoadProgress& progress,
                                             std::stop_token stop) {
    if (config.prefill_chunk == 0) {
        return fail(ErrorCode::InvalidArgument, "prefill_chunk is 0");
    }
    ModelOptions options;
    options.compute = config.compute;
    options.cache_type = config.cache_type;
    options.n_threads = config.n_threads;
    options.index_cache_type = config.index_cache_type;
    options.attention = config.attention;
    options.context_tokens = config.context_tokens;
    options.expert_budget_bytes = config.expert_budget_bytes;
    options.max_pass_tokens = std::max(config.prefill_chunk, kernels::kIndependentTokens);
    std::unique_ptr<Model> model = BV_TRY(Model::load(request, options, progress, stop));
    Result<std::unique_ptr<Tokenizer>> created =
        Tokenizer::create(BV_TRY(model->source().vocabulary()));
    if (!created.has_value()) {
        return failWithContext(std::move(created).error(), request.model_path);
    }
    std::unique_ptr<Tokenizer> tokenizer = std::move(*created);
    if (tokenizer->vocabSize() > model->config().vocab_size) {
        return fail(ErrorCode::Corrupt, "{}: {} tokens, but the embedding has {} rows",
                    request.model_path, tokenizer->vocabSize(), model->config().vocab_size);
    }
    const PlaceholderIds placeholders = BV_TRY(placeholderIds(model->source(), tokenizer.get()));
    Result<ChatTemplate> chat_template = chatTemplateOf(model->source());
    ModelInfo& info = model->info();
    if (!chat_template.has_value()) {
        info.notices.push_back(
            fmt::format("chat is not possible: {}", chat_template.error().message));
    }
    BV_LOG(LogLevel::Info, "inference",
           "loaded file={} architecture={} weights=\"{}\" context={} isa=\"{}\" threads={}",
           info.path, info.architecture, info.weight_types, info.context_tokens,
           info.instruction_set, info.n_threads);
    return std::unique_ptr<Engine>(std::make_unique<EngineImpl>(
        std::move(model), std::move(tokenizer), std::move(chat_template), placeholders, config));
}

}  // namespace belvedere::inference
