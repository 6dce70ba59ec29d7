// SPDX-License-Identifier: Apache-2.0
// Softmax attention over the paged cache by the definition: scores in f64, the largest subtracted
// first, weights summed in f64.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/scalar/float_formats.h"
#include "kernels/scalar/scalar_kernels.h"

namespace belvedere::kernels::scalar {
namespace {

/// Output elements accumulated at a time, so that the f64 sums stand on the stack; covers any usual
/// head at once.
constexpr size_t kDimChunk = 256;

double cacheValue(CacheType type, const void* base, size_t index) {
    switch (type) {
        case CacheType::F32:
            return static_cast<double>(static_cast<const float*>(base)[index]);
        case CacheType::F16:
            return static_cast<double>(fromF16(static_cast<const uint16_t*>(base)[index]));
        case CacheType::BF16:
            return static_cast<double>(fromBf16(static_cast<const uint16_t*>(base)[index]));
    }
    return 0;
}

/// First element of the vector of position `pos` inside its page [n_kv_heads, kPageTokens,
/// head_dim].
size_t vectorIndex(const Attend& args, size_t kv_head, size_t pos) {
    return (kv_head * kPageTokens + pos % kPageTokens) * args.head_dim;
}

double score(const Attend& args, const float* q, size_t kv_head, size_t pos) {
    const void* page = args.k_pages[pos / kPageTokens];
    const size_t begin = vectorIndex(args, kv_head, pos);
    double sum = 0;
    for (size_t i = 0; i < args.head_dim; ++i) {
        sum += static_cast<double>(q[i]) * cacheValue(args.type, page, begin + i);
    }
    return sum * static_cast<double>(args.scale);
}

/// One query head over positions [0, n_keys).
void attendHead(const Attend& args, const float* q, float* out, size_t kv_head, size_t n_keys) {
    double largest = -std::numeric_limits<double>::infinity();
    for (size_t pos = 0; pos < n_keys; ++pos) {
        largest = std::max(largest, score(args, q, kv_head, pos));
    }
    for (size_t dim = 0; dim < args.head_dim; dim += kDimChunk) {
        const size_t n = std::min(kDimChunk, args.head_dim - dim);
        double sums[kDimChunk] = {};
        double total = 0;
        for (size_t pos = 0; pos < n_keys; ++pos) {
            const double weight = std::exp(score(args, q, kv_head, pos) - largest);
            const void* page = args.v_pages[pos / kPageTokens];
            const size_t begin = vectorIndex(args, kv_head, pos) + dim;
            total += weight;
            for (size_t i = 0; i < n; ++i) {
                sums[i] += weight * cacheValue(args.type, page, begin + i);
            }
        }
        for (size_t i = 0; i < n; ++i) {
            out[dim + i] = static_cast<float>(sums[i] / total);
        }
    }
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
        const size_t t_begin = item / args.n_kv_heads * tile;
        const size_t t_end = std::min(t_begin + tile, args.n_tokens);
        for (size_t t = t_begin; t < t_end; ++t) {
            for (size_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
                attendHead(args, args.q + t * args.q_stride + h * args.head_dim,
                           args.out + t * args.out_stride + h * args.head_dim, kv_head,
                           args.first_pos + t + 1);
            }
        }
    }
}

}  // namespace belvedere::kernels::scalar
