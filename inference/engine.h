// SPDX-License-Identifier: Apache-2.0
#pragma once

// The door of inference/: from (role, text) messages to streamed text. Owns the model, the KV cache
// and the engine thread. Every method may be called from any thread; jobs run in order on the
// engine thread. load() and generate() block the caller, who passes a stop token; the sink is
// called on the caller's thread.
//
//     auto engine = BV_TRY(Engine::load({"model.gguf"}, {}, nullptr, stop));
//     Prompt prompt = BV_TRY(engine->buildPrompt({chat, pieces}));
//     SequenceId sequence = engine->openSequence();
//     GenerationStats stats = BV_TRY(engine->generate({sequence, prompt.ids}, sink, stop));

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "inference/chat/conversation.h"
#include "inference/tokenizer/tokenizer.h"
#include "inference/vision/embedding_cache.h"
#include "inference/vision/media.h"
#include "kernels/base/result.h"
#include "kernels/formats.h"

namespace belvedere::inference {

/// Exact: f32 throughout, for comparing with a reference. Fast: what generation uses (8-bit or bf16
/// activations, 16-bit cache).
enum class Compute { Exact, Fast };

/// How layers with an MSA index branch attend: to the blocks it chooses, or to everything.
enum class Attention { Msa, Dense };

/// A LoRA adapter in GGUF; `scale` multiplies its lora_a and lora_b products only.
struct AdapterFile {
    std::string path;
    float scale = 1.0F;
};

struct LoadRequest {
    std::string model_path;
    std::vector<AdapterFile> adapters;
    std::string mmproj_path = {};  ///< the vision tower; empty: inside the model or beside it
};

struct EngineConfig {
    size_t n_threads = 0;       ///< 0: one per core this process may use
    size_t context_tokens = 0;  ///< 0: the model's own window
    Compute compute = Compute::Fast;
    kernels::CacheType cache_type = kernels::CacheType::F16;         ///< Exact always uses F32
    kernels::CacheType index_cache_type = kernels::CacheType::BF16;  ///< of MSA's index keys
    Attention attention = Attention::Msa;
    size_t cache_budget_bytes = size_t{4} << 30;  ///< sequences idle longest are evicted above it
    size_t expert_budget_bytes = 0;  ///< of MoE layers in memory, the others are read from the file
                                     ///< when they are chosen; 0: as much as fits
    size_t embedding_budget_bytes = size_t{256} << 20;  ///< of images, by what they show
    size_t prefill_chunk = 512;  ///< tokens between two looks at the stop token
    bool drafts = true;  ///< guess tokens that repeat earlier ones and confirm several in a pass;
                         ///< the output is the same without
};

/// Bytes that a model and its window take, known before it is loaded.
struct MemoryNeed {
    uint64_t weights = 0;     ///< in the layout of the kernels, norms and adapters included
    uint64_t experts = 0;     ///< of these, those of MoE layers
    uint64_t mapped = 0;      ///< weights read where they stand in the file, experts left out
    uint64_t scratch = 0;     ///< activations and working memory
    uint64_t images = 0;      ///< beside it while images are read, VisionTower::usualRows() at once
    uint64_t page_bytes = 0;  ///< of kernels::kPageTokens tokens of the cache
    uint64_t cache = 0;       ///< of the whole window

    [[nodiscard]] uint64_t total() const { return weights + mapped + scratch + images + cache; }

    /// Bytes of the cache of n_tokens.
    [[nodiscard]] uint64_t cacheBytes(size_t n_tokens) const {
        constexpr size_t kPage = kernels::kPageTokens;
        return (n_tokens / kPage + (n_tokens % kPage > 0 ? 1 : 0)) * page_bytes;
    }
};

/// What is loaded, for people and for the model picker.
struct ModelInfo {
    std::string path;
    std::string name;          ///< general.name, else the file's name
    std::string architecture;  ///< "llama"
    std::string weight_types;  ///< "Q4_1 (210), F32 (61), Q8_0 (1)"
    uint64_t n_parameters = 0;
    uint64_t file_bytes = 0;
    uint64_t resident_bytes = 0;  ///< repacked weights and adapters, beside the mapped file
    size_t context_tokens = 0;    ///< the window in force
    size_t trained_context_tokens = 0;
    size_t vocab_size = 0;
    size_t n_layers = 0;
    size_t block_tokens = 0;  ///< of a block that MSA layers choose; 0: attention is dense
    uint64_t cache_bytes_per_token = 0;
    std::string cache_types;  ///< "f16, index keys bf16"
    MemoryNeed memory;
    std::string vision;         ///< "mmproj-F16.gguf: 32 layers"; empty: the model reads text only
    std::string chat_template;  ///< "from the model file", "built-in ChatML"
    std::string instruction_set;
    size_t n_threads = 0;
    std::vector<AdapterFile> adapters;
    std::vector<std::string>
        notices;  ///< what the user should know: "layers 3-29 attend sparsely (MSA)"

    /// Of the whole window, and of one token beyond; only with MSA.
    [[nodiscard]] size_t blockCount() const { return context_tokens / block_tokens + 1; }
};

/// A stretch of prompt text whose ids are already known (a repository piece). Named by
/// ChatPart::source.
struct FixedPiece {
    int64_t source = -1;
    size_t n_bytes =
        0;  ///< of its text; the ids are used only where the template left all of it in place
    std::shared_ptr<const std::vector<TokenId>>
        ids;  ///< shared with the repository index, immutable
};

struct PromptRequest {
    ChatRequest chat;
    std::vector<FixedPiece> pieces;
    /// What the image and video parts of `chat` show, images and clips each in their order. Empty:
    /// their placeholders stay as the template writes them.
    std::vector<std::shared_ptr<const Media>> media = {};
};

/// Tokens [token_begin, token_end) of a prompt come from the text part with this source.
struct PromptRange {
    size_t token_begin = 0;
    size_t token_end = 0;
    int64_t source = -1;
};

struct Prompt {
    std::vector<TokenId> ids;
    std::vector<PromptRange> ranges;  ///< in order of tokens; parts without a source are left out
    std::vector<MediaSpan> media;     ///< in order of tokens
};

struct SamplingParams {
    float temperature = 0.0F;  ///< 0: greedy, the same for any number of threads
    uint32_t top_k = 0;        ///< 0: off
    float top_p = 1.0F;
    float min_p = 0.0F;
    float repetition_penalty = 1.0F;
    uint32_t repetition_window = 64;  ///< newest tokens that the penalty looks at
    uint64_t seed = 0;
};

using SequenceId = uint64_t;

/// Blocks of the context that MSA layers must not choose: block b holds the tokens [b, b + 1) *
/// ModelInfo::block_tokens. Binds every token from position `begin` on that the request computes,
/// in the prompt too; the block a token stands in itself is always open to it, and dense layers see
/// everything. What is computed under a ban is reused by requests with the same ban (blocks and
/// begin) and by no other, so an answer under a ban is what a cold run under it gives.
struct BlockBan {
    static constexpr size_t kAnswer = SIZE_MAX;

    std::vector<uint32_t> blocks;  ///< empty: no ban
    size_t begin = kAnswer;        ///< kAnswer: binds what is generated

    bool operator==(const BlockBan&) const = default;
};

/// How much a block was attended to: the share of (MSA layer, index head) pairs that chose it.
struct BlockShare {
    uint32_t block = 0;
    float share = 0.0F;  ///< in (0, 1]

    bool operator==(const BlockShare&) const = default;
};

struct GenerateRequest {
    SequenceId sequence = 0;
    std::vector<TokenId> prompt;  ///< the whole context; the part that the sequence already holds
                                  ///< is not computed again
    SamplingParams sampling;
    size_t max_tokens = 1024;
    std::vector<std::string> stop_strings;  ///< not part of the text that is streamed
    bool ignore_end_of_turn = false;        ///< go on to max_tokens: for benchmarks
    bool show_special_tokens = false;  ///< stream markers such as <think> that are hidden otherwise
    bool drafts = true;                ///< and EngineConfig::drafts
    BlockBan ban;
    std::vector<MediaSpan> media;      ///< tokens of the prompt that stand for images, ascending
    std::vector<size_t> share_layers;  ///< MSA layers that BlockShare counts; empty: all
};

enum class FinishReason { EndOfTurn, StopString, MaxTokens, ContextFull, Cancelled };

struct GenerationStats {
    size_t n_prompt = 0;
    size_t n_cached = 0;     ///< prompt tokens taken from the KV cache
    size_t n_prefilled = 0;  ///< prompt tokens computed
    size_t n_generated = 0;
    size_t n_images = 0;    ///< images and clips that the tower was needed for, as the next
    size_t n_encoded = 0;   ///< of these; the others were still known
    size_t n_passes = 0;    ///< after the prompt
    size_t n_drafted = 0;   ///< tokens that were guessed
    size_t n_accepted = 0;  ///< and right
    std::chrono::duration<double> encoding{};  ///< of images
    std::chrono::duration<double> prefill{};   ///< encoding included
    std::chrono::duration<double> generation{};
    std::chrono::duration<double>
        first_token{};  ///< from the call to the first token, waiting in the queue included
    FinishReason finish = FinishReason::EndOfTurn;
    std::vector<BlockShare> blocks;  ///< mean over the generated tokens, blocks ascending; none in
                                     ///< a dense model
};

/// Receives what one generation produces, on the thread that called generate().
class GenerationSink {
  public:
    virtual ~GenerationSink() = default;

    virtual void onPrefill(size_t n_done, size_t n_total) = 0;

    /// Something that went otherwise than asked and was made good: a part of a snapshot that was
    /// damaged and computed anew.
    virtual void onNotice(const std::string& /*text*/) {}

    /// The blocks that one token attended to, ascending. With MSA, before onText() once for each
    /// of its tokens, in their order.
    virtual void onBlocks(std::span<const BlockShare> /*blocks*/) {}

    /// Whole UTF-8 characters. `ids` are the tokens finished since the last call.
    virtual void onText(std::string_view text, std::span<const TokenId> ids) = 0;
};

/// One of several answers that are generated together.
struct GenerationItem {
    GenerateRequest request;
    GenerationSink* sink = nullptr;
    std::stop_token stop;
};

/// fraction in [0, 1] and what is being done ("reading tensors"); called on the loading thread.
using LoadProgress = std::function<void(double fraction, const char* what)>;

class Engine {
  public:
    /// Maps, checks and prepares a model. Errors: NotFound, Io, Corrupt, Unsupported, OutOfMemory,
    /// Cancelled; the message names the file and the tensor or key.
    static Result<std::unique_ptr<Engine>> load(const LoadRequest& request,
                                                const EngineConfig& config,
                                                const LoadProgress& progress,
                                                std::stop_token stop);
    virtual ~Engine() = default;

    [[nodiscard]] virtual const ModelInfo& info() const = 0;
    [[nodiscard]] virtual const Tokenizer& tokenizer() const = 0;

    /// Renders the model's chat template and tokenizes: template literals may hold special tokens,
    /// message text never does. With images their placeholders are expanded, so that the prompt's
    /// length is what they cost.
    [[nodiscard]] virtual Result<Prompt> buildPrompt(const PromptRequest& request) const = 0;

    /// An empty sequence. Sequences share the pages of equal prefixes; generate() finds the longest
    /// one by itself.
    virtual SequenceId openSequence() = 0;
    /// A sequence that begins with the first n_tokens of another (copy on write).
    virtual Result<SequenceId> fork(SequenceId sequence, size_t n_tokens) = 0;
    virtual void closeSequence(SequenceId sequence) = 0;
    /// Prompt tokens that would come from the cache, without a ban.
    [[nodiscard]] virtual size_t cachedPrefix(SequenceId sequence,
                                              std::span<const TokenId> prompt,
                                              std::span<const MediaSpan> media = {}) const = 0;

    /// Errors: InvalidArgument where prompt plus one token exceed the window (with the numbers: a
    /// prompt is never cut) or the model takes no images; OutOfMemory, Internal. Cancellation is no
    /// error: it is the finish reason, and the sequence keeps what is computed.
    virtual Result<GenerationStats> generate(const GenerateRequest& request,
                                             GenerationSink& sink,
                                             std::stop_token stop) = 0;

    /// Answers of several sequences, each what generate() would give it alone, bit for bit: a pass
    /// of the decoder runs the next token of all that are not over, so the weights are read once
    /// for all. Prompts are computed one after the other; what they have in common, once. Stopping
    /// an item ends that item. One outcome an item; all are InvalidArgument beyond kMaxTogether.
    virtual std::vector<Result<GenerationStats>> generateTogether(
        std::span<const GenerationItem> items) = 0;

    static constexpr size_t kMaxTogether = 16;

    /// Puts what a sequence holds into a file, which is there whole or not at all, when the jobs
    /// before it are done. Returns the bytes of the file. Errors: NotFound; InvalidArgument where
    /// the sequence holds nothing; Io; Corrupt where a part comes from a damaged snapshot;
    /// Cancelled.
    virtual Result<uint64_t> saveSnapshot(SequenceId sequence,
                                          const std::string& path,
                                          std::stop_token stop) = 0;

    /// A sequence of what a snapshot holds, from which generate() goes on bit for bit as it would
    /// have where it was saved. What a token does not attend to is not read: the pages stay in the
    /// file, each part is checked when it is first needed. Where one is damaged before the first
    /// token of an answer, what it held is computed anew; later the answer ends as Corrupt, and the
    /// next one computes it. Errors: NotFound, Io; InvalidArgument where the file is no snapshot or
    /// was made with another model, other settings, another type of the cache or a longer window;
    /// Unsupported for another version; Corrupt where it is damaged; Cancelled.
    virtual Result<SequenceId> openSnapshot(const std::string& path, std::stop_token stop) = 0;

    /// Pages: of kernels::kPageTokens tokens. Stored ones stand in the file of a snapshot and take
    /// no memory of the budget.
    struct CacheUse {
        uint64_t bytes = 0;  ///< of memory
        uint64_t budget_bytes = 0;
        size_t n_sequences = 0;
        size_t n_pages = 0;  ///< in memory
        size_t n_stored_pages = 0;
        size_t n_shared_pages = 0;  ///< of all: more than one sequence lists them
    };

    [[nodiscard]] virtual CacheUse cacheUse() const = 0;
    /// Of the embeddings of images.
    [[nodiscard]] virtual EmbeddingCache::Use embeddingUse() const = 0;

    /// What one sequence holds of it.
    struct SequenceUse {
        SequenceId sequence = 0;
        size_t n_tokens = 0;
        size_t n_pages = 0;
        size_t n_shared_pages = 0;  ///< of these: other sequences list them too
        size_t n_stored_pages = 0;  ///< of these
        uint64_t bytes = 0;         ///< of memory
        uint64_t own_bytes = 0;     ///< of these: would be free without the sequence
        bool is_in_use = false;
    };

    /// The one that was used last comes first.
    [[nodiscard]] virtual std::vector<SequenceUse> sequences() const = 0;
};

}  // namespace belvedere::inference
