// SPDX-License-Identifier: Apache-2.0
// MSA's index branch by the definition: products in f64, every block of every token on its own.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/scalar/float_formats.h"
#include "kernels/scalar/scalar_kernels.h"

namespace belvedere::kernels::scalar {
namespace {

float scoreOf(const ScoreBlocks& args, const float* q, size_t pos) {
    const uint8_t* key = static_cast<const uint8_t*>(args.key_pages[pos / kPageTokens]) +
                         pos % kPageTokens * cacheRowBytes(args.type, args.head_dim);
    double sum = 0;
    for (size_t i = 0; i < args.head_dim; ++i) {
        sum += static_cast<double>(q[i]) * cacheElement(args.type, key, args.head_dim, i);
    }
    return static_cast<float>(sum);
}

/// A block and its score in the order of the choice.
struct Candidate {
    float score;
    int32_t id;
};

bool isBetter(const Candidate& a, const Candidate& b) {
    return a.score > b.score || (a.score == b.score && a.id < b.id);
}

/// The best of a stream of candidates, at most `capacity`.
class BestBlocks {
  public:
    explicit BestBlocks(size_t capacity) : capacity_(capacity) {}

    void offer(const Candidate& candidate) {
        if (capacity_ == 0 || (n_ == capacity_ && !isBetter(candidate, best_[n_ - 1]))) {
            return;
        }
        size_t at = n_ < capacity_ ? n_++ : n_ - 1;
        for (; at > 0 && isBetter(candidate, best_[at - 1]); --at) {
            best_[at] = best_[at - 1];
        }
        best_[at] = candidate;
    }

    [[nodiscard]] size_t count() const { return n_; }

    [[nodiscard]] int32_t id(size_t i) const { return best_[i].id; }

  private:
    size_t capacity_;
    size_t n_ = 0;
    Candidate best_[kMaxTopBlocks];
};

void selectRow(const SelectBlocks& args, size_t t, size_t head) {
    const size_t row = t * args.n_heads + head;
    const float* scores = args.scores + row * args.n_blocks;
    int32_t* ids = args.ids + row * args.top_k;
    const size_t own = (args.first_pos + t) / args.block_tokens;
    const size_t n_visible = own + 1;
    const auto isBanned = [&args, own](size_t block) {
        return args.banned != nullptr && args.banned[block] != 0 && block != own;
    };
    const auto isForced = [&args, n_visible](size_t block) {
        return block < args.n_init || block + args.n_local >= n_visible;
    };
    size_t n = 0;
    if (n_visible <= args.top_k) {
        for (size_t block = 0; block < n_visible; ++block) {
            if (!isBanned(block)) {
                ids[n++] = static_cast<int32_t>(block);
            }
        }
    } else {
        for (size_t block = 0; block < n_visible; ++block) {
            if (isForced(block) && !isBanned(block)) {
                ids[n++] = static_cast<int32_t>(block);
            }
        }
        BestBlocks best(args.top_k - n);
        for (size_t block = 0; block < n_visible; ++block) {
            if (!isForced(block) && !isBanned(block)) {
                const float score = scores[block];
                best.offer({std::isnan(score) ? -std::numeric_limits<float>::infinity() : score,
                            static_cast<int32_t>(block)});
            }
        }
        for (size_t i = 0; i < best.count(); ++i) {
            ids[n++] = best.id(i);
        }
        std::sort(ids, ids + n);
    }
    std::fill(ids + n, ids + args.top_k, -1);
}

}  // namespace

size_t scoreScratchFloats(size_t /*n_heads*/, size_t /*head_dim*/) noexcept {
    return 0;
}

void scoreBlocks(const ScoreBlocks& args) noexcept {
    const size_t span = std::max(args.block_tokens, kPageTokens);
    const size_t block_begin = args.span_begin * span / args.block_tokens;
    const size_t block_end = std::min(args.span_end * span / args.block_tokens, args.n_blocks);
    for (size_t t = 0; t < args.n_tokens; ++t) {
        const size_t n_positions = args.first_pos + t + 1;
        for (size_t head = 0; head < args.n_heads; ++head) {
            const float* q = args.q + t * args.q_stride + head * args.head_dim;
            float* scores = args.scores + (t * args.n_heads + head) * args.n_blocks;
            for (size_t block = block_begin; block < block_end; ++block) {
                const size_t begin = block * args.block_tokens;
                if (begin >= n_positions) {
                    break;
                }
                float largest = -std::numeric_limits<float>::infinity();
                for (size_t pos = begin; pos < std::min(begin + args.block_tokens, n_positions);
                     ++pos) {
                    const float score = scoreOf(args, q, pos);
                    largest = score > largest ? score : largest;
                }
                scores[block] = largest;
            }
        }
    }
}

void selectBlocks(const SelectBlocks& args) noexcept {
    for (size_t t = args.token_begin; t < args.token_end; ++t) {
        for (size_t head = 0; head < args.n_heads; ++head) {
            selectRow(args, t, head);
        }
    }
}

}  // namespace belvedere::kernels::scalar
