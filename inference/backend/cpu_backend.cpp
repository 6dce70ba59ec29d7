// SPDX-License-Identifier: Apache-2.0
// Memory and passes; pages are in cpu_pages.cpp, the steps in cpu_project.cpp and cpu_attend.cpp.
#include "inference/backend/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

/// Outputs of the widest step (q, k, v, index q, index k): scratch that several of them share is
/// sized for this many.
constexpr size_t kMaxOutputs = 5;

/// Block scores of one tile of tokens: what stays in the nearer caches.
constexpr size_t kScoreFloats = size_t{1} << 18;

/// Floats, so that what follows begins on a cache line of its own.
size_t wholeLines(size_t n) {
    return (n + 15) / 16 * 16;
}

}  // namespace

CpuBackend::CpuBackend(const BackendShape& shape,
                       Precision precision,
                       const kernels::KernelTable& kernels,
                       size_t n_threads)
    : shape_(shape),
      precision_(precision),
      prompt_kernels_(kernels),
      generation_kernels_(kernels::generationTable(kernels)),
      kernels_(&prompt_kernels_),
      pool_(n_threads),
      maker_{kernels, pool_, shape.is_measured},
      expert_store_(maker_, shape.expert_budget_bytes) {
    placePages();
}

Result<std::unique_ptr<CpuBackend>> CpuBackend::create(const BackendShape& shape,
                                                       Precision precision,
                                                       const kernels::KernelTable& kernels,
                                                       size_t n_threads) {
    BV_CHECK(n_threads > 0 && shape.max_tokens > 0);
    std::unique_ptr<CpuBackend> backend(new CpuBackend(shape, precision, kernels, n_threads));
    BV_TRY(backend->reserveSteps());
    BV_TRY(backend->reserveAttention());
    return backend;
}

Result<void> CpuBackend::reserveSteps() {
    const size_t n_angles = shape_.max_tokens * shape_.rope_frequency.size();
    BV_TRY(reserve(cos_, n_angles));
    BV_TRY(reserve(sin_, n_angles));
    if (fast()) {
        BV_TRY(reserve(products_, shape_.max_tokens * shape_.step_width));
        BV_TRY(reserve(corrections_, shape_.max_tokens * shape_.step_width));
    }
    return {};
}

Result<void> CpuBackend::reserveAttention() {
    BV_TRY(reserveAttendScratch(shape_.n_heads, shape_.n_kv_heads, shape_.head_dim));
    BV_TRY(
        reserve(partials_, kMaxSplits * std::min(kernels::kIndependentTokens, shape_.max_tokens) *
                               shape_.n_heads * (shape_.head_dim + kernels::kPartialFacts)));
    const IndexShape& index = shape_.index;
    size_t n_slots = 0;
    for (const bool has_index : index.layers) {
        index_slot_.push_back(n_slots);
        n_slots += has_index ? 1U : 0U;
    }
    if (n_slots == 0) {
        return {};
    }
    score_scratch_floats_ = wholeLines(largerOf([&](const kernels::KernelTable& table) {
        return table.score_scratch_floats(index.n_heads, index.head_dim);
    }));
    BV_TRY(reserve(score_scratch_, score_scratch_floats_ * pool_.threadCount()));
    BV_TRY(reserve(block_scores_, std::max(kScoreFloats, index.n_heads * index.max_blocks)));
    return reserve(chosen_blocks_, n_slots * shape_.max_tokens * index.n_heads * index.top_k);
}

Result<void> CpuBackend::reserveAttendScratch(size_t n_heads, size_t n_kv_heads, size_t head_dim) {
    attend_scratch_floats_ = std::max(
        attend_scratch_floats_, wholeLines(largerOf([&](const kernels::KernelTable& table) {
            return table.attend_scratch_floats(n_heads, n_kv_heads, head_dim);
        })));
    return reserve(attend_scratch_, attend_scratch_floats_ * pool_.threadCount());
}

size_t CpuBackend::activationBytes(kernels::WeightType type, size_t n_tokens, size_t n_cols) const {
    return largerOf([&](const kernels::KernelTable& table) {
        return table.activation_bytes(type, n_tokens, n_cols);
    });
}

Result<void> CpuBackend::reserveScratch(const CpuLinear& linear) {
    const size_t n_tokens = shape_.max_tokens;
    const MatrixView& view = linear.weight.view;
    BV_TRY(reserve(prologue_, n_tokens * view.n_cols));
    size_t t_floats = 0;
    size_t t_bytes = 0;
    for (const CpuLowRank& part : linear.low_rank) {
        const size_t rank = part.a.view.n_rows;
        t_floats += n_tokens * rank;
        if (fast()) {
            t_bytes += alignedBytes(activationBytes(part.b.view.type, n_tokens, rank));
        }
    }
    BV_TRY(reserve(ranks_, t_floats * kMaxOutputs));
    BV_TRY(reserve(rank_activations_, t_bytes * kMaxOutputs));
    if (!fast()) {
        return {};
    }
    std::vector<kernels::WeightType> types = {view.type};
    for (const CpuLowRank& part : linear.low_rank) {
        types.push_back(part.a.view.type);
    }
    for (const kernels::WeightType type : types) {
        const size_t n_bytes = activationBytes(type, n_tokens, view.n_cols);
        for (AlignedBuffer<std::byte>& activations : activations_) {
            BV_TRY(reserve(activations, n_bytes));
        }
    }
    return {};
}

Result<std::unique_ptr<DeviceLinear>> CpuBackend::addLinear(const LinearView& view) {
    std::unique_ptr<CpuLinear> linear = BV_TRY(maker_.linear(view, fast()));
    BV_TRY(reserveScratch(*linear));
    resident_bytes_ += linear->residentBytes();
    mapped_bytes_ += linear->mappedBytes();
    return linear;
}

Result<std::unique_ptr<DeviceExperts>> CpuBackend::addExperts(const ExpertsView& view) {
    std::unique_ptr<CpuExperts> experts = BV_TRY(expert_store_.add(view, fast()));
    const size_t n_rows = shape_.max_tokens * shape_.n_experts_used;
    const size_t dim = view.router.n_cols;
    const size_t ff_dim = view.gate.front().n_rows;
    BV_TRY(reserve(prologue_, shape_.max_tokens * dim));
    BV_TRY(reserve(gathered_, n_rows * dim));
    BV_TRY(reserve(expert_gate_, n_rows * ff_dim));
    BV_TRY(reserve(expert_up_, n_rows * ff_dim));
    if (fast()) {
        // Each expert's rows begin on a border of their own and are padded to whole tiles.
        constexpr size_t kPadding = 64 + 16;
        for (const std::vector<MatrixView>* matrices : {&view.gate, &view.up, &view.down}) {
            const MatrixView& matrix = matrices->front();
            const size_t one = activationBytes(matrix.type, 16, matrix.n_cols);
            const size_t n_groups = n_rows / 16 + view.gate.size() + 1;
            for (AlignedBuffer<std::byte>& activations : expert_activations_) {
                BV_TRY(reserve(activations, n_groups * (one + kPadding)));
            }
        }
    }
    return experts;
}

Result<std::unique_ptr<DeviceVector>> CpuBackend::addVector(std::span<const float> values) {
    auto vector = std::make_unique<CpuVector>();
    resident_bytes_ += values.size_bytes();
    if (shape_.is_measured) {
        return vector;
    }
    vector->values = AlignedBuffer<float>(values.size());
    if (!vector->values.ok()) {
        return fail(ErrorCode::OutOfMemory, "{} floats for a norm", values.size());
    }
    std::copy(values.begin(), values.end(), vector->values.data());
    return vector;
}

Result<std::unique_ptr<DeviceBuffer>> CpuBackend::addBuffer(size_t n_tokens, size_t width) {
    auto buffer = std::make_unique<CpuBuffer>(BV_TRY(allocate<float>(n_tokens * width)), scratch_);
    buffer->n_tokens = n_tokens;
    buffer->width = width;
    return buffer;
}

void CpuBackend::beginPass(std::span<const PassRun> runs, PassKind kind) {
    kernels_ = kind == PassKind::Prompt ? &prompt_kernels_ : &generation_kernels_;
    n_tokens_ = 0;
    runs_.clear();
    row_places_.clear();
    pass_pages_.clear();
    for (const PassRun& run : runs) {
        BV_CHECK(run.n_tokens > 0 &&
                 run.pages.size() * kernels::kPageTokens >= run.first_pos + run.n_tokens);
        runs_.push_back(
            {n_tokens_, run.n_tokens, run.first_pos, pass_pages_.size(), run.banned_blocks});
        for (size_t pos = run.first_pos; pos < run.first_pos + run.n_tokens; ++pos) {
            row_places_.push_back({pos, pass_pages_.size() + pos / kernels::kPageTokens});
            BV_CHECK(pages_[run.pages[pos / kernels::kPageTokens]].stored == nullptr);
        }
        n_tokens_ += run.n_tokens;
        pass_pages_.insert(pass_pages_.end(), run.pages.begin(), run.pages.end());
    }
    BV_CHECK(n_tokens_ > 0 && n_tokens_ <= shape_.max_tokens);
    stored_places_.clear();
    for (size_t i = 0; i < pass_pages_.size(); ++i) {
        if (pages_[pass_pages_[i]].stored != nullptr) {
            stored_places_.push_back(i);
        }
    }
    k_pages_.resize(pass_pages_.size());
    v_pages_.resize(pass_pages_.size());
    index_pages_.resize(pass_pages_.size());
    const size_t n_pairs = shape_.rope_frequency.size();
    for (size_t t = 0; t < n_tokens_; ++t) {
        // The angle is an f32 product, as in the reference implementations: selections depend on it
        // far out.
        const auto pos = static_cast<float>(row_places_[t].pos);
        for (size_t i = 0; i < n_pairs; ++i) {
            const float angle = pos * shape_.rope_frequency[i];
            cos_[t * n_pairs + i] = std::cos(angle);
            sin_[t * n_pairs + i] = std::sin(angle);
        }
    }
}

void CpuBackend::embed(const DeviceLinear& table,
                       std::span<const int32_t> tokens,
                       DeviceBuffer& out) {
    const MatrixView& view = static_cast<const CpuLinear&>(table).weight.view;
    auto& rows = static_cast<CpuBuffer&>(out);
    const size_t row_bytes = kernels::rowBytes(view.type, view.n_cols);
    std::vector<std::byte> joined(view.scales != nullptr ? row_bytes : 0);
    for (size_t t = 0; t < tokens.size(); ++t) {
        if (tokens[t] < 0) {
            continue;
        }
        const auto token = static_cast<size_t>(tokens[t]);
        BV_DCHECK(token < view.n_rows);
        const auto* row = static_cast<const std::byte*>(view.data) + token * row_bytes;
        if (view.scales != nullptr) {
            BV_CHECK(joinScales(view, joined.data(), token, token + 1));  // loading saw each row
            row = joined.data();
        }
        kernels_->dequantize(view.type, row, rows.row(t), view.n_cols);
    }
}

void CpuBackend::write(std::span<const float> rows, size_t first_row, DeviceBuffer& buffer) {
    auto& target = static_cast<CpuBuffer&>(buffer);
    BV_CHECK(first_row * target.width + rows.size() <= target.values.size());
    std::copy(rows.begin(), rows.end(), target.row(first_row));
}

Result<void> CpuBackend::await() {
    kernels_ = &prompt_kernels_;
    return std::exchange(pass_result_, {});
}

std::span<float> CpuBackend::read(DeviceBuffer& buffer, size_t n_rows) {
    auto& rows = static_cast<CpuBuffer&>(buffer);
    return {rows.values.data(), n_rows * rows.width};
}

std::span<const int32_t> CpuBackend::chosenBlocks(size_t layer) const {
    const size_t per_token = shape_.index.n_heads * shape_.index.top_k;
    return {chosen_blocks_.data() + index_slot_[layer] * shape_.max_tokens * per_token,
            n_tokens_ * per_token};
}

ChosenExperts CpuBackend::chosenExperts() const {
    const size_t n = n_chosen_tokens_ * shape_.n_experts_used;
    return {{chosen_ids_.data(), n}, {chosen_weights_.data(), n}};
}

void CpuBackend::setBusy(bool busy) {
    pool_.setBusy(busy);
}

std::string CpuBackend::description() const {
    return prompt_kernels_.description;
}

}  // namespace belvedere::inference
