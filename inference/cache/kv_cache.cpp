// SPDX-License-Identifier: Apache-2.0
#include "inference/cache/kv_cache.h"

#include <algorithm>
#include <iterator>

#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

using kernels::kPageTokens;

size_t pagesFor(size_t n_tokens) {
    return (n_tokens + kPageTokens - 1) / kPageTokens;
}

/// Ids below 0 stand for rows of an image: a prefix never ends inside one, so two images are the
/// same only where all their rows are.
size_t commonPrefix(std::span<const TokenId> held, std::span<const TokenId> prompt) {
    const size_t n = std::min(held.size(), prompt.size());
    auto common = static_cast<size_t>(
        std::mismatch(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(n), prompt.begin())
            .first -
        held.begin());
    if (common < prompt.size() && prompt[common] < 0) {
        while (common > 0 && prompt[common - 1] < 0) {
            --common;
        }
    }
    return common;
}

}  // namespace

KvCache::KvCache(Backend& backend, size_t budget_bytes)
    : backend_(backend), budget_bytes_(budget_bytes) {}

KvCache::~KvCache() {
    for (const auto& [page, count] : counts_) {
        backend_.freePage(page);
    }
    for (const PageId page : dropped_) {
        backend_.freePage(page);
    }
}

SequenceId KvCache::open() {
    const std::lock_guard lock(mutex_);
    const SequenceId id = next_id_++;
    sequences_[id].last_used = ++clock_;
    return id;
}

Result<SequenceId> KvCache::fork(SequenceId source, size_t n_tokens) {
    const std::lock_guard lock(mutex_);
    const auto found = sequences_.find(source);
    if (found == sequences_.end()) {
        return fail(ErrorCode::NotFound, "there is no sequence {}", source);
    }
    if (n_tokens > found->second.tokens.size()) {
        return fail(ErrorCode::InvalidArgument, "cannot fork at token {}: sequence {} holds {}",
                    n_tokens, source, found->second.tokens.size());
    }
    Sequence fork;
    share(fork, found->second, n_tokens);
    fork.ban = found->second.ban;
    fork.last_used = ++clock_;
    const SequenceId id = next_id_++;
    sequences_.emplace(id, std::move(fork));
    return id;
}

void KvCache::close(SequenceId id) {
    const std::lock_guard lock(mutex_);
    const auto found = sequences_.find(id);
    if (found == sequences_.end()) {
        return;
    }
    if (found->second.in_use) {
        found->second.closing = true;
        return;
    }
    truncate(found->second, 0);
    sequences_.erase(found);
}

size_t KvCache::cachedPrefix(SequenceId id, std::span<const TokenId> prompt) const {
    const std::lock_guard lock(mutex_);
    const auto found = sequences_.find(id);
    static const Sequence kEmpty;
    return longestPrefix(found != sequences_.end() ? found->second : kEmpty, prompt, {}).n_tokens;
}

KvCache::Prefix KvCache::longestPrefix(const Sequence& own,
                                       std::span<const TokenId> prompt,
                                       const BlockBan& ban) const {
    if (prompt.empty()) {
        return {};
    }
    const std::span<const TokenId> reusable = prompt.first(prompt.size() - 1);
    const auto common = [&](const Sequence& sequence) {
        const size_t n_tokens =
            std::min(commonPrefix(sequence.tokens, reusable), usableTokens(sequence));
        return sequence.ban == ban ? n_tokens : std::min({n_tokens, sequence.ban.begin, ban.begin});
    };
    Prefix best = {&own, common(own)};
    for (const auto& [id, other] : sequences_) {
        const size_t n_tokens = common(other);
        if (n_tokens > best.n_tokens) {
            best = {&other, n_tokens};
        }
    }
    return best;
}

Result<size_t> KvCache::begin(SequenceId id, std::span<const TokenId> prompt, const BlockBan& ban) {
    const std::lock_guard lock(mutex_);
    Sequence& sequence = *BV_TRY(takeIntoUse(id));
    const Prefix prefix = longestPrefix(sequence, prompt, ban);
    if (prefix.holder == &sequence) {
        truncate(sequence, prefix.n_tokens);
    } else {
        truncate(sequence, 0);
        share(sequence, *prefix.holder, prefix.n_tokens);
    }
    sequence.ban = ban;
    return prefix.n_tokens;
}

Result<KvCache::Sequence*> KvCache::takeIntoUse(SequenceId id) {
    const auto found = sequences_.find(id);
    if (found == sequences_.end()) {
        return fail(ErrorCode::NotFound, "there is no sequence {}", id);
    }
    Sequence& sequence = found->second;
    if (sequence.in_use) {
        return fail(ErrorCode::InvalidArgument, "sequence {} is already generating", id);
    }
    sequence.in_use = true;
    sequence.last_used = ++clock_;
    return &sequence;
}

Result<std::span<const PageId>> KvCache::prepare(SequenceId id, size_t n_new) {
    const std::lock_guard lock(mutex_);
    Sequence& sequence = sequences_.at(id);
    BV_CHECK(sequence.in_use && n_new > 0);
    releaseDropped();  // a file that nobody lists any more is not in use
    BV_TRY(checkStored());
    const size_t n_tokens = sequence.tokens.size();
    const size_t n_in_last = n_tokens % kPageTokens;
    if (n_in_last != 0) {
        PageId& last = sequence.pages[n_tokens / kPageTokens];
        if (counts_.at(last) > 1 || stored_.contains(last)) {
            const PageId copy = BV_TRY(takePage());
            Result<void> copied = backend_.copyPage(last, copy, n_in_last);
            if (!copied.has_value()) {
                drop(copy);
                return tl::unexpected<Error>(std::move(copied).error());
            }
            drop(last);
            last = copy;
        }
    }
    while (sequence.pages.size() < pagesFor(n_tokens + n_new)) {
        sequence.pages.push_back(BV_TRY(takePage()));
    }
    return std::span<const PageId>(sequence.pages);
}

void KvCache::commit(SequenceId id, std::span<const TokenId> tokens) {
    const std::lock_guard lock(mutex_);
    Sequence& sequence = sequences_.at(id);
    sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
    BV_CHECK(sequence.pages.size() >= pagesFor(sequence.tokens.size()));
}

void KvCache::end(SequenceId id) {
    const std::lock_guard lock(mutex_);
    const auto found = sequences_.find(id);
    BV_CHECK(found != sequences_.end());
    found->second.in_use = false;
    found->second.last_used = ++clock_;
    if (found->second.closing) {
        truncate(found->second, 0);
        sequences_.erase(found);
        return;
    }
    // Pages that were made ready and not written.
    truncate(found->second, usableTokens(found->second));
}

SequenceId KvCache::adopt(const std::shared_ptr<SnapshotFile>& snapshot) {
    const std::lock_guard lock(mutex_);
    Sequence sequence;
    sequence.tokens = snapshot->tokens();
    sequence.ban = snapshot->ban();
    for (size_t i = 0; i < snapshot->pageCount(); ++i) {
        const PageId page = backend_.addStoredPage(snapshot, i);
        sequence.pages.push_back(page);
        counts_[page] = 1;
        stored_.insert(page);
    }
    sequence.last_used = ++clock_;
    std::erase_if(snapshots_, [](const auto& other) { return other.expired(); });
    snapshots_.push_back(snapshot);
    const SequenceId id = next_id_++;
    sequences_.emplace(id, std::move(sequence));
    return id;
}

Result<SnapshotContent> KvCache::hold(SequenceId id) {
    const std::lock_guard lock(mutex_);
    const Sequence& sequence = *BV_TRY(takeIntoUse(id));
    return SnapshotContent{sequence.tokens, sequence.ban, sequence.pages};
}

Result<void> KvCache::checkStored() const {
    for (const auto& snapshot : snapshots_) {
        if (const std::shared_ptr<SnapshotFile> file = snapshot.lock()) {
            BV_TRY(file->checkWhole());
        }
    }
    return {};
}

bool KvCache::forgetDamaged() {
    const std::lock_guard lock(mutex_);
    const size_t n_before = damaged_.size();
    std::copy_if(stored_.begin(), stored_.end(), std::inserter(damaged_, damaged_.end()),
                 [&](PageId page) { return backend_.isDamaged(page); });
    if (damaged_.size() == n_before) {
        return false;
    }
    for (auto& [id, sequence] : sequences_) {
        if (!sequence.in_use) {
            truncate(sequence, usableTokens(sequence));
        }
    }
    return true;
}

/// Those before its first damaged page.
size_t KvCache::usableTokens(const Sequence& sequence) const {
    if (damaged_.empty()) {
        return sequence.tokens.size();
    }
    const auto damaged = std::find_if(sequence.pages.begin(), sequence.pages.end(),
                                      [&](PageId page) { return damaged_.contains(page); });
    const auto n_whole = static_cast<size_t>(damaged - sequence.pages.begin());
    return std::min(sequence.tokens.size(), n_whole * kPageTokens);
}

bool KvCache::ownsMemory(const Sequence& sequence) const {
    return std::any_of(sequence.pages.begin(), sequence.pages.end(),
                       [&](PageId page) { return !stored_.contains(page); });
}

/// Forgets the tokens from n_tokens on. A partly filled last page stays: its first entries are
/// still right.
void KvCache::truncate(Sequence& sequence, size_t n_tokens) {
    sequence.tokens.resize(n_tokens);
    while (sequence.pages.size() > pagesFor(n_tokens)) {
        drop(sequence.pages.back());
        sequence.pages.pop_back();
    }
}

/// Lists the pages of the first n_tokens of `source`. Requires: `sequence` is empty.
void KvCache::share(Sequence& sequence, const Sequence& source, size_t n_tokens) {
    sequence.tokens.assign(source.tokens.begin(),
                           source.tokens.begin() + static_cast<std::ptrdiff_t>(n_tokens));
    sequence.pages.assign(source.pages.begin(),
                          source.pages.begin() + static_cast<std::ptrdiff_t>(pagesFor(n_tokens)));
    for (const PageId page : sequence.pages) {
        ++counts_.at(page);
    }
}

void KvCache::drop(PageId page) {
    uint32_t& count = counts_.at(page);
    BV_CHECK(count > 0);
    if (--count > 0) {
        return;
    }
    if (stored_.erase(page) > 0) {
        damaged_.erase(page);
        counts_.erase(page);
        dropped_.push_back(page);
    } else {
        free_.push_back(page);
    }
}

Result<PageId> KvCache::takePage() {
    // Above the budget a page comes from an idle sequence. With none left the sequence in use may
    // pass the budget: that its whole window fits the machine was checked when the model was
    // loaded.
    while (free_.empty() && (pageCount() + 1) * backend_.pageBytes() > budget_bytes_ &&
           evictOne()) {
    }
    if (!free_.empty()) {
        const PageId page = free_.back();
        free_.pop_back();
        counts_.at(page) = 1;
        return page;
    }
    Result<PageId> page = backend_.allocatePage();
    while (!page.has_value() && evictOne()) {
        if (!free_.empty()) {
            return takePage();
        }
    }
    if (page.has_value()) {
        counts_[*page] = 1;
    }
    return page;
}

/// Empties the sequence that is idle longest; false where none holds a page in memory.
bool KvCache::evictOne() {
    Sequence* oldest = nullptr;
    for (auto& [id, sequence] : sequences_) {
        if (!sequence.in_use && ownsMemory(sequence) &&
            (oldest == nullptr || sequence.last_used < oldest->last_used)) {
            oldest = &sequence;
        }
    }
    if (oldest == nullptr) {
        return false;
    }
    truncate(*oldest, 0);
    return true;
}

void KvCache::releaseFree() {
    const std::lock_guard lock(mutex_);
    for (const PageId page : free_) {
        backend_.freePage(page);
        counts_.erase(page);
    }
    free_.clear();
    releaseDropped();
}

void KvCache::releaseDropped() {
    for (const PageId page : dropped_) {
        backend_.freePage(page);
    }
    dropped_.clear();
}

Engine::CacheUse KvCache::use() const {
    const std::lock_guard lock(mutex_);
    Engine::CacheUse use;
    use.bytes = pageCount() * backend_.pageBytes();
    use.budget_bytes = budget_bytes_;
    use.n_sequences = sequences_.size();
    use.n_pages = pageCount() - free_.size();
    use.n_stored_pages = stored_.size();
    for (const auto& [page, count] : counts_) {
        use.n_shared_pages += count > 1 ? 1 : 0;
    }
    return use;
}

std::vector<Engine::SequenceUse> KvCache::sequences() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<uint64_t, Engine::SequenceUse>> uses;
    for (const auto& [id, sequence] : sequences_) {
        Engine::SequenceUse use;
        use.sequence = id;
        use.n_tokens = sequence.tokens.size();
        use.n_pages = sequence.pages.size();
        use.is_in_use = sequence.in_use;
        for (const PageId page : sequence.pages) {
            const bool is_shared = counts_.at(page) > 1;
            const bool is_stored = stored_.contains(page);
            use.n_shared_pages += is_shared ? 1 : 0;
            use.n_stored_pages += is_stored ? 1 : 0;
            use.bytes += is_stored ? 0 : backend_.pageBytes();
            use.own_bytes += is_stored || is_shared ? 0 : backend_.pageBytes();
        }
        uses.emplace_back(sequence.last_used, use);
    }
    std::sort(uses.begin(), uses.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Engine::SequenceUse> result;
    for (const auto& [last_used, use] : uses) {
        result.push_back(use);
    }
    return result;
}

}  // namespace belvedere::inference
