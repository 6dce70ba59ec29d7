// SPDX-License-Identifier: Apache-2.0
// The step `attend` on the CPU: heads are normed, rotated and written to the cache by tokens, then
// attended by KV heads.
#include <algorithm>

#include "inference/backend/cpu_backend.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

constexpr size_t kSharedHeadTokens = 4;

}  // namespace

void CpuBackend::attend(const AttendStep& step) {
    for (size_t i = 0; i < pass_pages_.size(); ++i) {
        k_pages_[i] = pageData(pass_pages_[i], step.layer, false);
        v_pages_[i] = pageData(pass_pages_[i], step.layer, true);
    }
    if (n_tokens_ < kSharedHeadTokens) {
        placeHeads(step, 0, n_tokens_);
    } else {
        pool_.parallelFor(n_tokens_, 1,
                          [&](size_t begin, size_t end, size_t) { placeHeads(step, begin, end); });
    }
    const auto& q = static_cast<const CpuBuffer&>(*step.q);
    auto& out = static_cast<CpuBuffer&>(*step.out);
    const size_t tile = kernels_.attend_token_tile(n_tokens_);
    const size_t n_items = (n_tokens_ + tile - 1) / tile * shape_.n_kv_heads;
    pool_.parallelFor(n_items, 1, [&](size_t begin, size_t end, size_t worker) {
        kernels_.attend({.type = shape_.cache_type,
                         .q = q.row(0),
                         .q_stride = q.width,
                         .k_pages = k_pages_.data(),
                         .v_pages = v_pages_.data(),
                         .out = out.row(0),
                         .out_stride = out.width,
                         .n_tokens = n_tokens_,
                         .first_pos = first_pos_,
                         .n_heads = shape_.n_heads,
                         .n_kv_heads = shape_.n_kv_heads,
                         .head_dim = shape_.head_dim,
                         .scale = shape_.attention_scale,
                         .exact = !fast(),
                         .scratch = attend_scratch_.data() + worker * attend_scratch_floats_,
                         .item_begin = begin,
                         .item_end = end});
    });
}

void CpuBackend::placeHeads(const AttendStep& step, size_t begin, size_t end) {
    auto& q = static_cast<CpuBuffer&>(*step.q);
    auto& k = static_cast<CpuBuffer&>(*step.k);
    const auto& v = static_cast<const CpuBuffer&>(*step.v);
    const size_t head_dim = shape_.head_dim;
    const size_t n_pairs = shape_.rope_frequency.size();
    const size_t n_tokens = end - begin;
    for (size_t t = begin; t < end; ++t) {
        if (step.q_norm != nullptr) {
            const float* weight = static_cast<const CpuVector&>(*step.q_norm).values.data();
            kernels_.rms_norm(q.row(t), head_dim, weight, q.row(t), head_dim, shape_.n_heads,
                              head_dim, step.eps);
        }
        if (step.k_norm != nullptr) {
            const float* weight = static_cast<const CpuVector&>(*step.k_norm).values.data();
            kernels_.rms_norm(k.row(t), head_dim, weight, k.row(t), head_dim, shape_.n_kv_heads,
                              head_dim, step.eps);
        }
    }
    const auto rope = shape_.rope_adjacent ? kernels_.rope_adjacent : kernels_.rope_half_split;
    const float* cos = cos_.data() + begin * n_pairs;
    const float* sin = sin_.data() + begin * n_pairs;
    rope(q.row(begin), q.width, cos, sin, n_tokens, shape_.n_heads, head_dim, n_pairs);
    rope(k.row(begin), k.width, cos, sin, n_tokens, shape_.n_kv_heads, head_dim, n_pairs);
    const size_t vector_bytes = head_dim * kernels::cacheElementBytes(shape_.cache_type);
    for (size_t t = begin; t < end; ++t) {
        const size_t pos = first_pos_ + t;
        const size_t page = pos / kernels::kPageTokens;
        for (size_t head = 0; head < shape_.n_kv_heads; ++head) {
            const size_t offset =
                (head * kernels::kPageTokens + pos % kernels::kPageTokens) * vector_bytes;
            auto* k_page = static_cast<std::byte*>(const_cast<void*>(k_pages_[page]));
            auto* v_page = static_cast<std::byte*>(const_cast<void*>(v_pages_[page]));
            kernels_.to_cache(shape_.cache_type, k.row(t) + head * head_dim, k_page + offset,
                              head_dim);
            kernels_.to_cache(shape_.cache_type, v.row(t) + head * head_dim, v_page + offset,
                              head_dim);
        }
    }
}

}  // namespace belvedere::inference
