// SPDX-License-Identifier: Apache-2.0
#include "inference/vision/embedding_cache.h"

#include <algorithm>

namespace belvedere::inference {

Embeddings EmbeddingCache::find(const MediaHash& hash) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.hash == hash; });
    if (found == entries_.end()) {
        return nullptr;
    }
    ++n_found_;
    entries_.splice(entries_.begin(), entries_, found);
    return found->embeddings;
}

void EmbeddingCache::add(const MediaHash& hash, Embeddings embeddings) {
    const std::lock_guard lock(mutex_);
    ++n_added_;
    if (bytesOf(embeddings) > budget_bytes_) {
        return;
    }
    bytes_ += bytesOf(embeddings);
    entries_.push_front({hash, std::move(embeddings)});
    while (bytes_ > budget_bytes_) {
        bytes_ -= bytesOf(entries_.back().embeddings);
        entries_.pop_back();
    }
}

EmbeddingCache::Use EmbeddingCache::use() const {
    const std::lock_guard lock(mutex_);
    return {bytes_, budget_bytes_, entries_.size(), n_added_, n_found_};
}

}  // namespace belvedere::inference
