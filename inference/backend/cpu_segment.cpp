// SPDX-License-Identifier: Apache-2.0
// What a vision tower asks of the CPU beside `project`: layer norm in place, and attention of all
// rows of a segment to each other. Keys and values are put into pages of their own, so that the
// kernel of the decoder serves here too.
#include <algorithm>

#include "inference/backend/cpu_backend.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

using kernels::kPageTokens;

}  // namespace

void CpuBackend::normalize(const NormalizeStep& step) {
    auto& rows = static_cast<CpuBuffer&>(*step.rows);
    const float* weight = static_cast<const CpuVector&>(*step.weight).values.data();
    const float* bias = static_cast<const CpuVector&>(*step.bias).values.data();
    pool_.parallelFor(step.n_rows, 1, [&](size_t begin, size_t end, size_t) {
        kernels_->layer_norm(rows.row(begin), rows.width, weight, bias, rows.row(begin), rows.width,
                             end - begin, rows.width, step.eps);
    });
}

Result<void> CpuBackend::reserveSegment(size_t n_rows, size_t n_heads, size_t head_dim) {
    const size_t n_pages = (n_rows + kPageTokens - 1) / kPageTokens;
    const size_t page_floats = n_heads * kPageTokens * head_dim;
    BV_TRY(reserve(segment_keys_, n_pages * page_floats));
    BV_TRY(reserve(segment_values_, n_pages * page_floats));
    segment_k_pages_.clear();
    segment_v_pages_.clear();
    for (size_t page = 0; page < n_pages; ++page) {
        segment_k_pages_.push_back(segment_keys_.data() + page * page_floats);
        segment_v_pages_.push_back(segment_values_.data() + page * page_floats);
    }
    return reserveAttendScratch(n_heads, n_heads, head_dim);
}

void CpuBackend::placeSegmentRows(const SegmentStep& step, size_t begin, size_t end) {
    auto& q = static_cast<CpuBuffer&>(*step.q);
    auto& k = static_cast<CpuBuffer&>(*step.k);
    const auto& v = static_cast<const CpuBuffer&>(*step.v);
    for (const SegmentRotation& rotation : step.rotations) {
        for (CpuBuffer* heads : {&q, &k}) {
            kernels_->rope_half_split(heads->row(begin) + rotation.first, heads->width,
                                      &rotation.cos[begin * rotation.n_pairs],
                                      &rotation.sin[begin * rotation.n_pairs], end - begin,
                                      step.n_heads, step.head_dim, rotation.n_pairs);
        }
    }
    for (size_t t = begin; t < end; ++t) {
        for (size_t head = 0; head < step.n_heads; ++head) {
            const size_t offset =
                ((t / kPageTokens * step.n_heads + head) * kPageTokens + t % kPageTokens) *
                step.head_dim;
            const size_t column = head * step.head_dim;
            std::copy_n(k.row(t) + column, step.head_dim, &segment_keys_[offset]);
            std::copy_n(v.row(t) + column, step.head_dim, &segment_values_[offset]);
        }
    }
}

void CpuBackend::attendSegment(const SegmentStep& step) {
    if (Result<void> room = reserveSegment(step.n_rows, step.n_heads, step.head_dim);
        !room.has_value()) {
        pass_result_ = std::move(room);
        return;
    }
    pool_.parallelFor(step.n_rows, 1, [&](size_t begin, size_t end, size_t) {
        placeSegmentRows(step, begin, end);
    });
    const auto& q = static_cast<const CpuBuffer&>(*step.q);
    auto& out = static_cast<CpuBuffer&>(*step.out);
    const kernels::Attend args = {.type = kernels::CacheType::F32,
                                  .q = q.row(0),
                                  .q_stride = q.width,
                                  .k_pages = segment_k_pages_.data(),
                                  .v_pages = segment_v_pages_.data(),
                                  .out = out.row(0),
                                  .out_stride = out.width,
                                  .n_tokens = step.n_rows,
                                  .first_pos = 0,
                                  .n_heads = step.n_heads,
                                  .n_kv_heads = step.n_heads,
                                  .head_dim = step.head_dim,
                                  .scale = step.scale,
                                  .exact = !fast(),
                                  .scratch = nullptr,
                                  .item_begin = 0,
                                  .item_end = 0,
                                  .n_keys = step.n_rows};
    const size_t tile = kernels_->attend_token_tile(step.n_rows);
    const size_t n_items = (step.n_rows + tile - 1) / tile * step.n_heads;
    pool_.parallelFor(n_items, 1, [&](size_t begin, size_t end, size_t worker) {
        kernels::Attend slice = args;
        slice.scratch = attend_scratch_.data() + worker * attend_scratch_floats_;
        slice.item_begin = begin;
        slice.item_end = end;
        kernels_->attend(slice);
    });
}

}  // namespace belvedere::inference
