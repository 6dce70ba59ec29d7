// SPDX-License-Identifier: Apache-2.0
// The step `attend` on the CPU. In order: heads are normed, rotated and written to the cache by
// tokens; the index branch scores blocks by pages and chooses by tokens; attention runs by KV heads
// and, where tokens are few, by ranges of keys.
#include <algorithm>

#include "inference/backend/cpu_backend.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

constexpr size_t kSharedHeadTokens = 4;
/// A range of keys shorter than this is not worth a meeting.
constexpr size_t kSplitKeys = 512;

}  // namespace

void CpuBackend::attend(const AttendStep& step) {
    findPages(step);
    if (n_tokens_ < kSharedHeadTokens) {
        placeHeads(step, 0, n_tokens_);
    } else {
        pool_.parallelFor(n_tokens_, 1,
                          [&](size_t begin, size_t end, size_t) { placeHeads(step, begin, end); });
    }
    if (step.index != nullptr) {
        checkIndexKeys(step.layer);
        for (const Run& run : runs_) {
            chooseBlocks(step, run);
        }
    }
    checkKeysAndValues(step);
    attendHeads(step);
}

void CpuBackend::attendHeads(const AttendStep& step) {
    spans_.clear();
    for (const Run& run : runs_) {
        addSpans(step, run);
    }
    pool_.parallelFor(spans_.back().item_end, 1, [&](size_t begin, size_t end, size_t worker) {
        for (const kernels::Attend& span : spans_) {
            if (end <= span.item_begin || begin >= span.item_end) {
                continue;
            }
            kernels::Attend slice = span;
            slice.scratch = attend_scratch_.data() + worker * attend_scratch_floats_;
            slice.item_begin = std::max(begin, span.item_begin) - span.item_begin;
            slice.item_end = std::min(end, span.item_end) - span.item_begin;
            kernels_->attend(slice);
        }
    });
    mergeSpans();
}

CpuBackend::KeySplit CpuBackend::splitOf(size_t pos) {
    size_t n_keys = kSplitKeys;
    while (pos / n_keys >= kMaxSplits) {
        n_keys *= 2;
    }
    return {pos / n_keys + 1, n_keys};
}

/// Tokens of a run whose keys are split alike, as calls of the kernel; their items are numbered
/// across all spans.
void CpuBackend::addSpans(const AttendStep& step, const Run& run) {
    const auto& q = static_cast<const CpuBuffer&>(*step.q);
    auto& out = static_cast<CpuBuffer&>(*step.out);
    const bool is_split = step.index == nullptr && n_tokens_ <= kernels::kIndependentTokens;
    const size_t partial_floats = shape_.n_heads * (shape_.head_dim + kernels::kPartialFacts);
    for (size_t begin = 0; begin < run.n_tokens;) {
        const KeySplit split = is_split ? splitOf(run.first_pos + begin) : KeySplit{};
        size_t end = is_split ? begin + 1 : run.n_tokens;
        while (end < run.n_tokens && splitOf(run.first_pos + end).n_ranges == split.n_ranges) {
            ++end;
        }
        const size_t row = run.row + begin;
        const size_t n_tokens = end - begin;
        const size_t tile = kernels_->attend_token_tile(n_tokens);
        const size_t n_items = (n_tokens + tile - 1) / tile * split.n_ranges * shape_.n_kv_heads;
        const size_t item_begin = spans_.empty() ? 0 : spans_.back().item_end;
        spans_.push_back({.type = shape_.cache_type,
                          .q = q.row(row),
                          .q_stride = q.width,
                          .k_pages = k_pages_.data() + run.page_begin,
                          .v_pages = v_pages_.data() + run.page_begin,
                          .out = out.row(row),
                          .out_stride = out.width,
                          .n_tokens = n_tokens,
                          .first_pos = run.first_pos + begin,
                          .n_heads = shape_.n_heads,
                          .n_kv_heads = shape_.n_kv_heads,
                          .head_dim = shape_.head_dim,
                          .scale = shape_.attention_scale,
                          .exact = !fast(),
                          .scratch = nullptr,
                          .item_begin = item_begin,
                          .item_end = item_begin + n_items,
                          .blocks = step.index != nullptr ? blocksOf(step.layer, row) : nullptr,
                          .top_k = shape_.index.top_k,
                          .block_tokens = shape_.index.block_tokens,
                          .n_splits = split.n_ranges,
                          .split_keys = split.n_keys,
                          .partials = is_split
                                          ? partials_.data() + row * kMaxSplits * partial_floats
                                          : nullptr});
        begin = end;
    }
}

void CpuBackend::mergeSpans() {
    for (const kernels::Attend& span : spans_) {
        if (span.n_splits == 1) {
            continue;
        }
        const size_t n_rows = span.n_tokens * span.n_heads;
        if (span.n_tokens < kSharedHeadTokens) {
            kernels_->merge_attend(span, 0, n_rows);
            continue;
        }
        pool_.parallelFor(n_rows, 1, [&](size_t begin, size_t end, size_t) {
            kernels_->merge_attend(span, begin, end);
        });
    }
}

/// Of a row's token and those behind it.
int32_t* CpuBackend::blocksOf(size_t layer, size_t row) {
    return chosen_blocks_.data() + (index_slot_[layer] * shape_.max_tokens + row) *
                                       shape_.index.n_heads * shape_.index.top_k;
}

/// Tokens are taken in tiles, so that the scores of a tile stay near however long the sequence is.
void CpuBackend::chooseBlocks(const AttendStep& step, const Run& run) {
    const IndexShape& index = shape_.index;
    const auto& q = static_cast<const CpuBuffer&>(*step.index->q);
    const size_t n_blocks =
        (run.first_pos + run.n_tokens + index.block_tokens - 1) / index.block_tokens;
    const size_t tile =
        std::clamp<size_t>(block_scores_.size() / (index.n_heads * n_blocks), 1, run.n_tokens);
    const size_t span = std::max(index.block_tokens, kernels::kPageTokens);
    for (size_t begin = 0; begin < run.n_tokens; begin += tile) {
        const size_t n_tokens = std::min(tile, run.n_tokens - begin);
        const size_t n_positions = run.first_pos + begin + n_tokens;
        // Where all blocks are chosen, nobody reads their scores.
        const bool has_choice = n_positions > index.top_k * index.block_tokens;
        if (has_choice) {
            pool_.parallelFor(
                (n_positions + span - 1) / span, 1,
                [&](size_t span_begin, size_t span_end, size_t worker) {
                    kernels_->score_blocks(
                        {.type = index.cache_type,
                         .q = q.row(run.row + begin),
                         .q_stride = q.width,
                         .key_pages = index_pages_.data() + run.page_begin,
                         .scores = block_scores_.data(),
                         .n_blocks = n_blocks,
                         .n_tokens = n_tokens,
                         .first_pos = run.first_pos + begin,
                         .n_heads = index.n_heads,
                         .head_dim = index.head_dim,
                         .block_tokens = index.block_tokens,
                         .scratch = score_scratch_.data() + worker * score_scratch_floats_,
                         .span_begin = span_begin,
                         .span_end = span_end});
                });
        }
        pool_.parallelFor(n_tokens, 1, [&](size_t token_begin, size_t token_end, size_t) {
            kernels_->select_blocks(
                {.scores = block_scores_.data(),
                 .n_blocks = n_blocks,
                 .n_tokens = n_tokens,
                 .first_pos = run.first_pos + begin,
                 .n_heads = index.n_heads,
                 .block_tokens = index.block_tokens,
                 .top_k = index.top_k,
                 .n_init = index.n_init,
                 .n_local = index.n_local,
                 .banned = run.banned_blocks.empty() ? nullptr : run.banned_blocks.data(),
                 .ids = blocksOf(step.layer, run.row + begin),
                 .token_begin = token_begin,
                 .token_end = token_end});
        });
    }
}

/// Each head by itself, or all heads of the token at once: the weight's length says which.
void CpuBackend::normHeads(
    const DeviceVector* norm, CpuBuffer& heads, size_t n_heads, size_t t, float eps) {
    if (norm == nullptr) {
        return;
    }
    const auto& weight = static_cast<const CpuVector&>(*norm).values;
    const size_t width = heads.width / n_heads;
    const bool is_per_head = weight.size() == width;
    kernels_->rms_norm(heads.row(t), width, weight.data(), heads.row(t), width,
                       is_per_head ? n_heads : 1, is_per_head ? width : heads.width, eps);
}

void CpuBackend::placeHeads(const AttendStep& step, size_t begin, size_t end) {
    auto& q = static_cast<CpuBuffer&>(*step.q);
    auto& k = static_cast<CpuBuffer&>(*step.k);
    const auto& v = static_cast<const CpuBuffer&>(*step.v);
    const size_t head_dim = shape_.head_dim;
    const size_t n_pairs = shape_.rope_frequency.size();
    const size_t n_tokens = end - begin;
    for (size_t t = begin; t < end; ++t) {
        normHeads(step.q_norm, q, shape_.n_heads, t, step.eps);
        normHeads(step.k_norm, k, shape_.n_kv_heads, t, step.eps);
    }
    const auto rope = shape_.rope_adjacent ? kernels_->rope_adjacent : kernels_->rope_half_split;
    const float* cos = cos_.data() + begin * n_pairs;
    const float* sin = sin_.data() + begin * n_pairs;
    rope(q.row(begin), q.width, cos, sin, n_tokens, shape_.n_heads, head_dim, n_pairs);
    rope(k.row(begin), k.width, cos, sin, n_tokens, shape_.n_kv_heads, head_dim, n_pairs);
    const size_t vector_bytes = kernels::cacheRowBytes(shape_.cache_type, head_dim);
    for (size_t t = begin; t < end; ++t) {
        const auto [pos, page] = row_places_[t];
        for (size_t head = 0; head < shape_.n_kv_heads; ++head) {
            const size_t offset =
                (head * kernels::kPageTokens + pos % kernels::kPageTokens) * vector_bytes;
            auto* k_page = static_cast<std::byte*>(const_cast<void*>(k_pages_[page]));
            auto* v_page = static_cast<std::byte*>(const_cast<void*>(v_pages_[page]));
            kernels_->to_cache(shape_.cache_type, k.row(t) + head * head_dim, k_page + offset,
                               head_dim);
            kernels_->to_cache(shape_.cache_type, v.row(t) + head * head_dim, v_page + offset,
                               head_dim);
        }
    }
    if (step.index != nullptr) {
        placeIndexHeads(step, begin, end);
    }
}

/// The index branch rotates by halves in every family.
void CpuBackend::placeIndexHeads(const AttendStep& step, size_t begin, size_t end) {
    const IndexShape& index = shape_.index;
    auto& q = static_cast<CpuBuffer&>(*step.index->q);
    auto& k = static_cast<CpuBuffer&>(*step.index->k);
    const size_t n_pairs = shape_.rope_frequency.size();
    for (size_t t = begin; t < end; ++t) {
        normHeads(step.index->q_norm, q, index.n_heads, t, step.eps);
        normHeads(step.index->k_norm, k, 1, t, step.eps);
    }
    const float* cos = cos_.data() + begin * n_pairs;
    const float* sin = sin_.data() + begin * n_pairs;
    kernels_->rope_half_split(q.row(begin), q.width, cos, sin, end - begin, index.n_heads,
                              index.head_dim, n_pairs);
    kernels_->rope_half_split(k.row(begin), k.width, cos, sin, end - begin, 1, index.head_dim,
                              n_pairs);
    const size_t vector_bytes = kernels::cacheRowBytes(index.cache_type, index.head_dim);
    for (size_t t = begin; t < end; ++t) {
        const auto [pos, page] = row_places_[t];
        auto* keys = static_cast<std::byte*>(const_cast<void*>(index_pages_[page]));
        kernels_->to_cache(index.cache_type, k.row(t),
                           keys + pos % kernels::kPageTokens * vector_bytes, index.head_dim);
    }
}

}  // namespace belvedere::inference
