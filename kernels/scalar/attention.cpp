// SPDX-License-Identifier: Apache-2.0
// Softmax attention over the paged cache by the definition: scores in f64, the largest subtracted
// first, weights summed in f64.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/scalar/float_formats.h"
#include "kernels/scalar/scalar_kernels.h"

namespace belvedere::kernels::scalar {
namespace {

/// Of position `pos` in its page.
const uint8_t* rowOf(const Attend& args, const void* page, size_t kv_head, size_t pos) {
    return static_cast<const uint8_t*>(page) +
           (kv_head * kPageTokens + pos % kPageTokens) * cacheRowBytes(args.type, args.head_dim);
}

double score(const Attend& args, const float* q, size_t kv_head, size_t pos) {
    const uint8_t* key = rowOf(args, args.k_pages[pos / kPageTokens], kv_head, pos);
    double sum = 0;
    for (size_t i = 0; i < args.head_dim; ++i) {
        sum += static_cast<double>(q[i]) * cacheElement(args.type, key, args.head_dim, i);
    }
    return sum * static_cast<double>(args.scale);
}

/// Calls visit(pos) for the positions of [begin, end) that token t attends to, ascending.
template <class Visit>
void forEachKey(
    const Attend& args, size_t t, size_t kv_head, size_t begin, size_t end, Visit&& visit) {
    end = std::min(end, args.n_keys > 0 ? args.n_keys : args.first_pos + t + 1);
    if (args.blocks == nullptr) {
        for (size_t pos = begin; pos < end; ++pos) {
            visit(pos);
        }
        return;
    }
    const int32_t* ids = args.blocks + (t * args.n_kv_heads + kv_head) * args.top_k;
    for (size_t i = 0; i < args.top_k && ids[i] >= 0; ++i) {
        const size_t first = static_cast<size_t>(ids[i]) * args.block_tokens;
        const size_t last = std::min(first + args.block_tokens, end);
        for (size_t pos = std::max(first, begin); pos < last; ++pos) {
            visit(pos);
        }
    }
}

/// One query head over the keys of [begin, end): out = sum of weights times values, returns the
/// largest score and the sum of the weights.
std::pair<double, double> attendHead(
    const Attend& args, size_t t, size_t head, size_t begin, size_t end, double* out) {
    const size_t kv_head = head / (args.n_heads / args.n_kv_heads);
    const float* q = args.q + t * args.q_stride + head * args.head_dim;
    double largest = -std::numeric_limits<double>::infinity();
    forEachKey(args, t, kv_head, begin, end,
               [&](size_t pos) { largest = std::max(largest, score(args, q, kv_head, pos)); });
    double total = 0;
    std::fill(out, out + args.head_dim, 0.0);
    forEachKey(args, t, kv_head, begin, end, [&](size_t pos) {
        const double weight = std::exp(score(args, q, kv_head, pos) - largest);
        const uint8_t* value = rowOf(args, args.v_pages[pos / kPageTokens], kv_head, pos);
        total += weight;
        for (size_t i = 0; i < args.head_dim; ++i) {
            out[i] += weight * cacheElement(args.type, value, args.head_dim, i);
        }
    });
    return {largest, total};
}

void attendRow(const Attend& args, size_t t, size_t head, size_t split) {
    double sums[kMaxHeadDim];
    if (args.n_splits == 1) {
        const double total = attendHead(args, t, head, 0, SIZE_MAX, sums).second;
        float* out = args.out + t * args.out_stride + head * args.head_dim;
        for (size_t i = 0; i < args.head_dim; ++i) {
            out[i] = static_cast<float>(sums[i] / total);
        }
        return;
    }
    const KeyRange keys = keyRange(args, split);
    const auto [largest, total] = attendHead(args, t, head, keys.begin, keys.end, sums);
    float* partial = args.partials + ((split * args.n_tokens + t) * args.n_heads + head) *
                                         (args.head_dim + kPartialFacts);
    for (size_t i = 0; i < args.head_dim; ++i) {
        partial[i] = static_cast<float>(sums[i]);
    }
    partial[args.head_dim] = static_cast<float>(largest);
    partial[args.head_dim + 1] = static_cast<float>(total);
}

}  // namespace

size_t attendTokenTile(size_t /*n_tokens*/) noexcept {
    return 8;
}

size_t attendScratchFloats(size_t /*n_heads*/,
                           size_t /*n_kv_heads*/,
                           size_t /*head_dim*/) noexcept {
    return 0;
}

void attend(const Attend& args) noexcept {
    const size_t tile = attendTokenTile(args.n_tokens);
    const size_t group = args.n_heads / args.n_kv_heads;
    for (size_t item = args.item_begin; item < args.item_end; ++item) {
        const size_t kv_head = item % args.n_kv_heads;
        const size_t split = item / args.n_kv_heads % args.n_splits;
        const size_t t_begin = item / args.n_kv_heads / args.n_splits * tile;
        const size_t t_end = std::min(t_begin + tile, args.n_tokens);
        for (size_t t = t_begin; t < t_end; ++t) {
            for (size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
                attendRow(args, t, head, split);
            }
        }
    }
}

void mergeAttend(const Attend& args, size_t row_begin, size_t row_end) noexcept {
    const size_t n_rows = args.n_tokens * args.n_heads;
    const size_t width = args.head_dim + kPartialFacts;
    for (size_t row = row_begin; row < row_end; ++row) {
        float largest = -std::numeric_limits<float>::infinity();
        for (size_t split = 0; split < args.n_splits; ++split) {
            const float* partial = args.partials + (split * n_rows + row) * width;
            largest = std::max(largest, partial[args.head_dim]);
        }
        float sums[kMaxHeadDim] = {};
        float total = 0;
        for (size_t split = 0; split < args.n_splits; ++split) {
            const float* partial = args.partials + (split * n_rows + row) * width;
            if (partial[args.head_dim + 1] <= 0.0F) {
                continue;
            }
            const float factor = std::exp(partial[args.head_dim] - largest);
            total += factor * partial[args.head_dim + 1];
            for (size_t i = 0; i < args.head_dim; ++i) {
                sums[i] += factor * partial[i];
            }
        }
        float* out =
            args.out + row / args.n_heads * args.out_stride + row % args.n_heads * args.head_dim;
        for (size_t i = 0; i < args.head_dim; ++i) {
            out[i] = sums[i] / total;
        }
    }
}

}  // namespace belvedere::kernels::scalar
