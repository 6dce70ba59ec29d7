// SPDX-License-Identifier: Apache-2.0
#pragma once

// Embeddings of images and clips by what they show, so that the same screenshot is encoded once,
// whatever conversation it comes in. Bounded: those unused longest go first. Any thread.

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "inference/vision/media.h"

namespace belvedere::inference {

/// [n_tokens, dim] of the text model; shared by the cache and whoever computes with it, immutable.
using Embeddings = std::shared_ptr<const std::vector<float>>;

class EmbeddingCache {
  public:
    explicit EmbeddingCache(size_t budget_bytes) : budget_bytes_(budget_bytes) {}

    /// nullptr: not there.
    [[nodiscard]] Embeddings find(const MediaHash& hash);
    /// Embeddings larger than the budget are not kept.
    void add(const MediaHash& hash, Embeddings embeddings);

    struct Use {
        uint64_t bytes = 0;
        uint64_t budget_bytes = 0;
        size_t n_entries = 0;
        size_t n_added = 0;  ///< since the start, as the next
        size_t n_found = 0;
    };

    [[nodiscard]] Use use() const;

  private:
    struct Entry {
        MediaHash hash;
        Embeddings embeddings;
    };

    [[nodiscard]] static size_t bytesOf(const Embeddings& embeddings) {
        return embeddings->size() * sizeof(float);
    }

    mutable std::mutex mutex_;
    const size_t budget_bytes_;
    std::list<Entry> entries_;  ///< the last used first
    size_t bytes_ = 0;
    size_t n_added_ = 0;
    size_t n_found_ = 0;
};

}  // namespace belvedere::inference
