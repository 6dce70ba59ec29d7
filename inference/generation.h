// SPDX-License-Identifier: Apache-2.0
#pragma once

// Generation on the engine thread. Private to inference/.
//
// A generation: begin() takes its prefix from the cache and prefills in chunks; then passes follow,
// each of its newest token and a draft of what may come after it (sampling/drafter.h), until it is
// over; end() is on every way out.
//
//     begin() -> [ prepare() -> a pass -> take() ]... -> end()
//
// Drafts do not change what comes out. Row i of a pass has the very logits that it would have in a
// pass of its own (kernels::kIndependentTokens); it is sampled with the one sampler, whose state is
// that of the tokens before; the first sample that differs from the draft is the true next token,
// and the rows behind it are forgotten: they were never committed to the cache. So greedy output,
// and sampled output for a seed, is the same with and without, as are stop strings and limits.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <variant>
#include <vector>

#include "inference/block_shares.h"
#include "inference/cache/kv_cache.h"
#include "inference/channel.h"
#include "inference/engine.h"
#include "inference/model/model.h"
#include "inference/sampling/answer_stream.h"
#include "inference/sampling/drafter.h"
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
    std::vector<std::vector<BlockShare>> blocks;  ///< of each id; empty in a dense model
};

struct NoticeMessage {
    std::string text;
};

using MessageContent = std::variant<PrefillMessage, TextMessage, NoticeMessage>;

struct GenerationMessage {
    size_t part = 0;
    MessageContent what;
};

/// Requests on their way together. The caller waits on the channel; the engine thread writes the
/// outcomes before it closes it.
struct GenerationJob {
    struct Part {
        GenerateRequest request;
        std::stop_token stop;
        Result<GenerationStats> outcome = GenerationStats();
    };

    std::vector<Part> parts;
    std::chrono::steady_clock::time_point asked;
    Channel<GenerationMessage> channel{64};
};

/// What generations share.
struct GenerationContext {
    Model& model;
    KvCache& cache;
    const Tokenizer& tokenizer;
    std::span<const TokenId> banned;  ///< ids that are no tokens
    size_t prefill_chunk = 0;
    bool drafts = true;
    EmbeddingCache& embeddings;
};

class Generation {
  public:
    /// Of one part of a job.
    Generation(const GenerationContext& context, GenerationJob& job, size_t part);
    ~Generation();
    Generation(const Generation&) = delete;
    Generation& operator=(const Generation&) = delete;

    /// Everything up to the first token.
    void begin();

    [[nodiscard]] bool isOver() const { return is_over_; }

    [[nodiscard]] const std::stop_token& stop() const { return part_.stop; }

    /// Its part of the next pass.
    struct Part {
        std::span<const TokenId> tokens;
        PassRun run;
    };

    /// At most n_max > 0 tokens; nullopt where it is over.
    [[nodiscard]] std::optional<Part> prepare(size_t n_max);

    /// Logits [n_rows, vocab_size] of the prepared tokens, which began at a row of the pass.
    void take(std::span<float> logits, size_t first_row);

    /// The pass did not come about. Cancelled is no error.
    void giveUp(Error error);

    [[nodiscard]] Result<GenerationStats> end();

  private:
    void leave();
    [[nodiscard]] Result<void> prefill();
    /// The images among the next n tokens, through the tower where they are not known.
    [[nodiscard]] Result<void> encodeImages(size_t n);
    [[nodiscard]] Result<Embeddings> encode(const Media& media);
    [[nodiscard]] Result<void> forward(size_t n);
    [[nodiscard]] PassRun run(size_t n_tokens, std::span<const PageId> pages) const;
    size_t sampleRows(std::span<float> logits, size_t first_row, size_t n_rows);
    void accept(TokenId id, size_t row);
    void finish(FinishReason reason);
    void deliver(bool always);
    void send(MessageContent what);

    GenerationContext context_;
    GenerationJob& job_;
    const size_t part_index_;
    const GenerationJob::Part& part_;
    size_t chunk_;
    Sampler sampler_;
    Drafter drafter_;
    AnswerStream answer_;
    BlockShares shares_;
    const BlockBan ban_;                         ///< its begin inside the prompt
    std::vector<uint8_t> banned_;                ///< by block, or empty
    std::vector<TokenId> tokens_;                ///< prompt and answer
    std::vector<TokenId> cache_ids_;             ///< of the prompt, images by what they show
    std::map<const Media*, Embeddings> images_;  ///< encoded for this prompt
    size_t n_computed_ = 0;                      ///< of these, in the cache
    std::vector<TokenId> pass_tokens_;           ///< the newest token and its draft
    std::vector<TokenId> undelivered_;           ///< tokens since the last text
    std::vector<std::vector<BlockShare>> undelivered_blocks_;
    std::chrono::steady_clock::time_point decode_begin_;
    GenerationStats stats_;
    bool is_in_use_ = false;  ///< the sequence, by us
    bool is_over_ = false;
    std::optional<Error> error_;
};

/// Decodes generations that have begun until all are over: each pass serves every one that is not.
void decodeTogether(Model& model, std::span<Generation* const> generations);

}  // namespace belvedere::inference
