// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which tokens are in the KV cache, and whose. Any thread; the engine thread alone calls what
// touches page memory (marked).
//
// Words. A page holds kPageTokens tokens of every layer. A sequence is a list of tokens and the
// pages of their positions. A page is shared when several sequences list it. A page is stored when
// it stands in a snapshot's file: it takes no memory of the budget. A sequence is in use from
// begin() or hold() to end(), else idle.
//
// An id below 0 is a row of an image, by what the image shows (prompt_media.h).
//
// Invariants
//  1. A sequence with n tokens lists at least ceil(n / kPageTokens) pages; entry p of position i is
//  in page i / kPageTokens.
//  2. Positions below n hold the K and V of tokens [0, n) of that sequence; positions from n on
//  hold anything.
//  3. Only positions from n on are written, and only in pages that one sequence lists and that are
//  not stored (prepare() copies the others).
//  4. A page's count is the number of sequences that list it; at 0 it is free, or, where it was
//  stored, gone.
//  5. The tokens of a sequence from its ban's begin on were computed under it, those before without
//  any. A prefix is shared only where both sides agree on that.
//  6. A sequence in use keeps its tokens: eviction takes idle ones, the longest idle first.
//  7. Of a stored page that turned out damaged, and of what was computed behind it, nothing is
//  found as a prefix any more; an idle sequence has forgotten it.
//
// Because of 2 and 3, rollback is forgetting tokens, and a fork lists the same pages.

#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "inference/backend/backend.h"
#include "inference/cache/snapshot.h"
#include "inference/engine.h"

namespace belvedere::inference {

class KvCache {
  public:
    KvCache(Backend& backend, size_t budget_bytes);
    ~KvCache();
    KvCache(const KvCache&) = delete;
    KvCache& operator=(const KvCache&) = delete;

    SequenceId open();
    /// Errors: NotFound; InvalidArgument where the source holds fewer tokens.
    Result<SequenceId> fork(SequenceId source, size_t n_tokens);
    /// A sequence in use is closed when its use ends.
    void close(SequenceId id);

    /// Tokens of `prompt` that begin() would find, without a ban.
    [[nodiscard]] size_t cachedPrefix(SequenceId id, std::span<const TokenId> prompt) const;

    /// Takes the sequence into use and rolls it back to the longest prefix of `prompt` that it or
    /// any other sequence holds (then it lists that one's pages); what is computed from then on is
    /// under `ban`. Returns the prefix's length, less
    /// than the prompt's, so that logits of its last token are computed. Errors: NotFound;
    /// InvalidArgument where it is in use.
    Result<size_t> begin(SequenceId id, std::span<const TokenId> prompt, const BlockBan& ban = {});

    /// Engine thread. Pages for n_new more tokens, safe to write; evicts idle sequences above the
    /// budget. Errors: OutOfMemory; Corrupt where the file of a snapshot in use was shortened; the
    /// sequence is as before.
    Result<std::span<const PageId>> prepare(SequenceId id, size_t n_new);

    /// The positions after the last were written.
    void commit(SequenceId id, std::span<const TokenId> tokens);

    void end(SequenceId id);

    /// Engine thread. A sequence of what a snapshot holds; its pages stay in the file.
    SequenceId adopt(const std::shared_ptr<SnapshotFile>& snapshot);
    /// Takes the sequence into use as it is. Errors: as begin().
    Result<SnapshotContent> hold(SequenceId id);
    /// Engine thread. Forgets what came from pages that turned out damaged; false: nothing new.
    bool forgetDamaged();

    /// Engine thread. Gives the memory of free pages back.
    void releaseFree();

    [[nodiscard]] Engine::CacheUse use() const;
    [[nodiscard]] std::vector<Engine::SequenceUse> sequences() const;

  private:
    struct Sequence {
        std::vector<TokenId> tokens;
        std::vector<PageId> pages;
        BlockBan ban;
        uint64_t last_used = 0;  ///< greater: later
        bool in_use = false;
        bool closing = false;
    };

    /// A sequence and how many tokens of a prompt it holds.
    struct Prefix {
        const Sequence* holder = nullptr;
        size_t n_tokens = 0;
    };

    [[nodiscard]] Prefix longestPrefix(const Sequence& own,
                                       std::span<const TokenId> prompt,
                                       const BlockBan& ban) const;
    [[nodiscard]] size_t usableTokens(const Sequence& sequence) const;
    [[nodiscard]] bool ownsMemory(const Sequence& sequence) const;
    Result<Sequence*> takeIntoUse(SequenceId id);
    [[nodiscard]] Result<void> checkStored() const;
    void truncate(Sequence& sequence, size_t n_tokens);
    void share(Sequence& sequence, const Sequence& source, size_t n_tokens);
    void drop(PageId page);
    Result<PageId> takePage();
    bool evictOne();
    void releaseDropped();

    /// In memory.
    [[nodiscard]] size_t pageCount() const { return counts_.size() - stored_.size(); }

    Backend& backend_;
    const size_t budget_bytes_;
    mutable std::mutex mutex_;
    std::unordered_map<SequenceId, Sequence> sequences_;
    std::unordered_map<PageId, uint32_t> counts_;  ///< of every page that is listed or free
    std::vector<PageId> free_;
    std::unordered_set<PageId> stored_;   ///< of those in counts_
    std::unordered_set<PageId> damaged_;  ///< of these
    std::vector<PageId> dropped_;         ///< were stored; the backend does not know yet
    std::vector<std::weak_ptr<SnapshotFile>> snapshots_;  ///< as long as a page of them is listed
    SequenceId next_id_ = 1;
    uint64_t clock_ = 0;
};

}  // namespace belvedere::inference
