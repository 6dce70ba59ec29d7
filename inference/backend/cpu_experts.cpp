// SPDX-License-Identifier: Apache-2.0
// The step `experts` on the CPU. In order: the router in f32, the choice by tokens, the rows of
// each expert gathered and prepared, gate and up of all experts, their activation, down, and the
// weighted sum by tokens. Each expert that was chosen is read once for all of its tokens; the
// others are not read. Where not all experts fit in memory, those of a step are run in as many
// groups as it takes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "inference/backend/cpu_backend.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

/// Below this many rows, work by experts is shorter than a meeting of the workers.
constexpr size_t kSharedRows = 16;

void toScores(bool is_sigmoid, float* logits, size_t n) {
    if (is_sigmoid) {
        for (size_t i = 0; i < n; ++i) {
            logits[i] = 1.0F / (1.0F + std::exp(-logits[i]));
        }
        return;
    }
    const float largest = *std::max_element(logits, logits + n);
    float sum = 0;
    for (size_t i = 0; i < n; ++i) {
        logits[i] = std::exp(logits[i] - largest);
        sum += logits[i];
    }
    for (size_t i = 0; i < n; ++i) {
        logits[i] /= sum;
    }
}

/// The n_used largest of score + bias, lower ids on ties; ids ascending. NaN, which only broken
/// weights give, is below all numbers: an order needs a place for it.
void chooseExperts(const float* scores,
                   const std::vector<float>& bias,
                   size_t n_experts,
                   std::span<int32_t> ids) {
    const auto rank = [&](int32_t id) {
        const auto i = static_cast<size_t>(id);
        const float score = scores[i] + (bias.empty() ? 0.0F : bias[i]);
        return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
    };
    std::vector<int32_t> order(n_experts);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(ids.size()), order.end(),
        [&](int32_t a, int32_t b) { return rank(a) > rank(b) || (rank(a) == rank(b) && a < b); });
    std::copy_n(order.begin(), ids.size(), ids.begin());
    std::sort(ids.begin(), ids.end());
}

}  // namespace

void CpuBackend::experts(const ExpertsStep& step) {
    auto& experts = static_cast<CpuExperts&>(*step.experts);
    route(step, experts);
    groupByExpert(step, experts);
    for (size_t done = 0; done < expert_rows_.size();) {
        const std::span<const size_t> ids = std::span(row_experts_).subspan(done);
        const Result<size_t> n_ready = expert_store_.prepare(experts, ids);
        if (!n_ready.has_value()) {
            pass_result_ = tl::unexpected<Error>(n_ready.error());
            return;
        }
        runExperts(step, experts, std::span(expert_rows_).subspan(done, *n_ready));
        done += *n_ready;
    }
    if (step.n_tokens < kSharedRows) {
        addRouted(step, 0, step.n_tokens);
        return;
    }
    pool_.parallelFor(step.n_tokens, kernels::kTokenGrain,
                      [&](size_t begin, size_t end, size_t) { addRouted(step, begin, end); });
}

void CpuBackend::route(const ExpertsStep& step, const CpuExperts& experts) {
    const auto& hidden = static_cast<const CpuBuffer&>(*step.hidden);
    const float* norm = static_cast<const CpuVector&>(*step.norm).values.data();
    const size_t dim = hidden.width;
    const size_t n_experts = experts.router.view.n_rows;
    const size_t n_used = shape_.n_experts_used;
    router_logits_.resize(step.n_tokens * n_experts);
    chosen_ids_.resize(step.n_tokens * n_used);
    chosen_weights_.resize(step.n_tokens * n_used);
    n_chosen_tokens_ = step.n_tokens;
    const auto routeTokens = [&](size_t begin, size_t end, size_t) {
        const size_t n = end - begin;
        float* x = prologue_.data() + begin * dim;
        float* scores = router_logits_.data() + begin * n_experts;
        kernels_->rms_norm(hidden.row(begin), dim, norm, x, dim, n, dim, step.eps);
        kernels_->mat_mul_f32({.type = experts.router.view.type,
                               .w = experts.router.data(),
                               .n_rows = n_experts,
                               .n_cols = dim,
                               .x = x,
                               .x_stride = dim,
                               .out = scores,
                               .out_stride = n_experts,
                               .n_tokens = n,
                               .row_begin = 0,
                               .row_end = n_experts});
        for (size_t t = begin; t < end; ++t, scores += n_experts) {
            toScores(step.router_is_sigmoid, scores, n_experts);
            const std::span<int32_t> ids(chosen_ids_.data() + t * n_used, n_used);
            chooseExperts(scores, experts.choice_bias, n_experts, ids);
            float sum = 0;
            for (const int32_t id : ids) {
                sum += scores[id];
            }
            for (size_t i = 0; i < n_used; ++i) {
                chosen_weights_[t * n_used + i] = scores[ids[i]] / sum;
            }
        }
    };
    if (step.n_tokens < kSharedRows) {
        routeTokens(0, step.n_tokens, 0);
    } else {
        pool_.parallelFor(step.n_tokens, kernels::kTokenGrain, routeTokens);
    }
}

/// Rows of the same expert one behind the other, tokens ascending.
void CpuBackend::groupByExpert(const ExpertsStep& step, const CpuExperts& experts) {
    const size_t n_used = shape_.n_experts_used;
    const size_t n_pairs = step.n_tokens * n_used;
    std::vector<size_t> n_rows(experts.experts.size(), 0);
    for (const int32_t id : chosen_ids_) {
        ++n_rows[static_cast<size_t>(id)];
    }
    expert_rows_.clear();
    row_experts_.clear();
    std::vector<size_t> next(experts.experts.size(), 0);
    size_t begin = 0;
    for (size_t expert = 0; expert < n_rows.size(); ++expert) {
        next[expert] = begin;
        if (n_rows[expert] > 0) {
            expert_rows_.push_back({expert, begin, n_rows[expert], {}});
            row_experts_.push_back(expert);
            begin += n_rows[expert];
        }
    }
    pair_row_.resize(n_pairs);
    row_token_.resize(n_pairs);
    for (size_t pair = 0; pair < n_pairs; ++pair) {
        const size_t row = next[static_cast<size_t>(chosen_ids_[pair])]++;
        pair_row_[pair] = row;
        row_token_[row] = pair / n_used;
    }
}

void CpuBackend::prepareExpertRows(const ExpertRows& rows, const float* x, size_t width) {
    for (size_t i = 0; i < n_activation_types_; ++i) {
        kernels_->quantize_activations(
            activation_types_[i], x + rows.begin * width, width, rows.n_tokens, width,
            expert_activations_[i].data() + rows.activation_begin[i], 0, rows.n_tokens);
    }
}

CpuBackend::Input CpuBackend::inputOf(const ExpertRows& rows, const float* x, size_t width) const {
    Input input{x + rows.begin * width, width, rows.n_tokens, {}};
    for (size_t i = 0; i < n_activation_types_; ++i) {
        input.activations[i] = expert_activations_[i].data() + rows.activation_begin[i];
    }
    return input;
}

/// Which activations the matrices want, and where those of each expert stand.
void CpuBackend::placeExpertActivations(std::span<const kernels::WeightType> types,
                                        size_t width,
                                        std::span<ExpertRows> all_rows) {
    n_activation_types_ = 0;
    if (!fast()) {
        return;
    }
    for (const kernels::WeightType type : types) {
        addActivationType(type);
    }
    for (size_t i = 0; i < n_activation_types_; ++i) {
        size_t begin = 0;
        for (ExpertRows& rows : all_rows) {
            rows.activation_begin[i] = begin;
            begin += alignedBytes(
                kernels_->activation_bytes(activation_types_[i], rows.n_tokens, width));
        }
        BV_CHECK(begin <= expert_activations_[i].size());
    }
}

void CpuBackend::forEachExpert(std::span<const ExpertRows> all_rows,
                               const std::function<void(const ExpertRows&)>& work) {
    if (row_token_.size() < kSharedRows) {
        std::for_each(all_rows.begin(), all_rows.end(), work);
        return;
    }
    pool_.parallelFor(all_rows.size(), 1, [&](size_t begin, size_t end, size_t) {
        std::for_each(all_rows.begin() + static_cast<std::ptrdiff_t>(begin),
                      all_rows.begin() + static_cast<std::ptrdiff_t>(end), work);
    });
}

void CpuBackend::runExperts(const ExpertsStep& step,
                            const CpuExperts& experts,
                            std::span<ExpertRows> all_rows) {
    const CpuExpert& first = experts.experts.front();  // their shapes and types are equal
    const size_t dim = experts.router.view.n_cols;
    const size_t ff_dim = first.gate.view.n_rows;
    const auto addJobs = [&](CpuMatrix CpuExpert::* part, const float* x, size_t width,
                             float* out) {
        for (const ExpertRows& rows : all_rows) {
            const CpuMatrix& matrix = experts.experts[rows.expert].*part;
            const size_t n_out = matrix.view.n_rows;
            addJob(matrix, {.matrix = &matrix,
                            .input = inputOf(rows, x, width),
                            .out = out + rows.begin * n_out,
                            .out_stride = n_out});
        }
    };
    const kernels::WeightType types[] = {first.gate.view.type, first.up.view.type};
    placeExpertActivations(types, dim, all_rows);
    forEachExpert(all_rows, [&](const ExpertRows& rows) {
        for (size_t row = rows.begin; row < rows.begin + rows.n_tokens; ++row) {
            std::copy_n(prologue_.data() + row_token_[row] * dim, dim,
                        gathered_.data() + row * dim);
        }
        prepareExpertRows(rows, gathered_.data(), dim);
    });
    jobs_.clear();
    n_items_ = 0;
    addJobs(&CpuExpert::gate, gathered_.data(), dim, expert_gate_.data());
    addJobs(&CpuExpert::up, gathered_.data(), dim, expert_up_.data());
    runJobs();
    const kernels::WeightType down_type[] = {first.down.view.type};
    placeExpertActivations(down_type, ff_dim, all_rows);
    forEachExpert(all_rows, [&](const ExpertRows& rows) {
        float* gate = expert_gate_.data() + rows.begin * ff_dim;
        activate(step.activation, step.limits, gate, expert_up_.data() + rows.begin * ff_dim, gate,
                 rows.n_tokens * ff_dim);
        prepareExpertRows(rows, expert_gate_.data(), ff_dim);
    });
    jobs_.clear();
    n_items_ = 0;
    // The gathered rows have been read: their place takes the results.
    addJobs(&CpuExpert::down, expert_gate_.data(), ff_dim, gathered_.data());
    runJobs();
}

void CpuBackend::addRouted(const ExpertsStep& step, size_t begin, size_t end) {
    auto& hidden = static_cast<CpuBuffer&>(*step.hidden);
    const size_t dim = hidden.width;
    const size_t n_used = shape_.n_experts_used;
    for (size_t t = begin; t < end; ++t) {
        float* out = hidden.row(t);
        for (size_t pair = t * n_used; pair < (t + 1) * n_used; ++pair) {
            const float weight = step.scale * chosen_weights_[pair];
            const float* row = gathered_.data() + pair_row_[pair] * dim;
            for (size_t i = 0; i < dim; ++i) {
                out[i] += weight * row[i];
            }
        }
    }
}

}  // namespace belvedere::inference
