// SPDX-License-Identifier: Apache-2.0
// The step `project` on the CPU. In order: prologue and activations by tokens; A x of low-rank
// parts by rows; every matrix by rows, where the worker that computed a row also adds bias,
// low-rank part and residual while it is in its cache.
#include <algorithm>

#include "inference/backend/cpu_backend.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

/// Below this many tokens the prologue is shorter than a meeting of the workers.
constexpr size_t kSharedPrologueTokens = 4;

size_t roundedRows(size_t n_rows) {
    return (n_rows + kernels::kRowTile - 1) / kernels::kRowTile * kernels::kRowTile;
}

const float* valuesOf(const DeviceVector* vector) {
    return static_cast<const CpuVector&>(*vector).values.data();
}

const CpuLinear& linearOf(const ProjectOutput& output) {
    return static_cast<const CpuLinear&>(*output.linear);
}

}  // namespace

void CpuBackend::project(const ProjectStep& step) {
    prepare(step);
    multiplyLowRank(step);
    multiply(step);
}

void CpuBackend::addActivationType(kernels::WeightType type) {
    for (size_t i = 0; i < n_activation_types_; ++i) {
        if (kernels_->same_activations(activation_types_[i], type)) {
            return;
        }
    }
    BV_CHECK(n_activation_types_ < kMaxActivationTypes);
    activation_types_[n_activation_types_++] = type;
}

void CpuBackend::chooseActivations(const ProjectStep& step) {
    n_activation_types_ = 0;
    if (!fast()) {
        return;
    }
    for (const ProjectOutput& output : step.outputs) {
        const CpuLinear& linear = linearOf(output);
        addActivationType(linear.weight.view.type);
        for (const CpuLowRank& part : linear.low_rank) {
            addActivationType(part.a.view.type);
        }
    }
}

size_t CpuBackend::activationIndex(kernels::WeightType type) const {
    size_t index = 0;
    while (!kernels_->same_activations(activation_types_[index], type)) {
        ++index;
        BV_DCHECK(index < n_activation_types_);
    }
    return index;
}

void CpuBackend::activate(Prologue activation,
                          ActivationLimits limits,
                          const float* gate,
                          const float* up,
                          float* out,
                          size_t n) const {
    if (activation == Prologue::Gelu) {
        kernels_->gelu(gate, out, n);
    } else if (activation == Prologue::SwiGlu) {
        kernels_->swiglu(gate, up, out, n);
    } else {
        kernels_->swiglu_oai(gate, up, out, n, limits.alpha, limits.limit);
    }
}

void CpuBackend::prepare(const ProjectStep& step) {
    chooseActivations(step);
    const auto& input = static_cast<const CpuBuffer&>(*step.input);
    const size_t first_row = step.first_row * step.joined_rows;
    input_ = {step.prologue == Prologue::None ? input.row(first_row) : prologue_.data(),
              input.width * step.joined_rows,
              step.n_rows,
              {}};
    for (size_t i = 0; i < n_activation_types_; ++i) {
        input_.activations[i] = activations_[i].data();
    }
    if (step.prologue == Prologue::None && n_activation_types_ == 0) {
        return;
    }
    if (step.n_rows < kSharedPrologueTokens) {
        prepareRows(step, 0, step.n_rows);
        return;
    }
    pool_.parallelFor(step.n_rows, kernels::kTokenGrain,
                      [&](size_t begin, size_t end, size_t) { prepareRows(step, begin, end); });
}

void CpuBackend::prepareRows(const ProjectStep& step, size_t begin, size_t end) {
    const auto& input = static_cast<const CpuBuffer&>(*step.input);
    const size_t width = input_.x_stride;
    const float* rows = input.row((step.first_row + begin) * step.joined_rows);
    float* prepared = prologue_.data() + begin * width;
    if (step.prologue == Prologue::RmsNorm) {
        const float* weight = valuesOf(step.norm);
        kernels_->rms_norm(rows, width, weight, prepared, width, end - begin, width, step.eps);
    } else if (step.prologue == Prologue::LayerNorm) {
        kernels_->layer_norm(rows, width, valuesOf(step.norm), valuesOf(step.norm_bias), prepared,
                             width, end - begin, width, step.eps);
    } else if (step.prologue != Prologue::None) {
        const float* up = step.up == nullptr
                              ? nullptr
                              : static_cast<const CpuBuffer&>(*step.up).row(step.first_row + begin);
        activate(step.prologue, step.limits, rows, up, prepared, (end - begin) * width);
    }
    for (size_t i = 0; i < n_activation_types_; ++i) {
        kernels_->quantize_activations(activation_types_[i], input_.x, input_.x_stride, step.n_rows,
                                       width, activations_[i].data(), begin, end);
    }
}

void CpuBackend::multiplyLowRank(const ProjectStep& step) {
    parts_.clear();
    jobs_.clear();
    n_items_ = 0;
    float* t = ranks_.data();
    std::byte* activations = rank_activations_.data();
    for (const ProjectOutput& output : step.outputs) {
        for (const CpuLowRank& part : linearOf(output).low_rank) {
            const size_t rank = part.a.view.n_rows;
            parts_.push_back({&part, t, activations});
            addJob(part.a, {.matrix = &part.a, .input = input_, .out = t, .out_stride = rank});
            t += step.n_rows * rank;
            if (fast()) {
                activations +=
                    alignedBytes(kernels_->activation_bytes(part.b.view.type, step.n_rows, rank));
            }
        }
    }
    if (parts_.empty()) {
        return;
    }
    runJobs();
    if (step.n_rows < kSharedPrologueTokens) {
        finishRankRows(step.n_rows, 0, step.n_rows);
        return;
    }
    pool_.parallelFor(step.n_rows, kernels::kTokenGrain, [&](size_t begin, size_t end, size_t) {
        finishRankRows(step.n_rows, begin, end);
    });
}

void CpuBackend::finishRankRows(size_t n_tokens, size_t begin, size_t end) {
    for (const RankPart& part : parts_) {
        const MatrixView& b = part.part->b.view;
        const size_t rank = b.n_cols;
        for (float* value = part.t + begin * rank; value != part.t + end * rank; ++value) {
            *value *= part.part->scale;
        }
        if (fast()) {
            kernels_->quantize_activations(b.type, part.t, rank, n_tokens, rank, part.activations,
                                           begin, end);
        }
    }
}

void CpuBackend::multiply(const ProjectStep& step) {
    jobs_.clear();
    n_items_ = 0;
    size_t part = 0;
    size_t scratch_column = 0;
    for (const ProjectOutput& output : step.outputs) {
        const CpuLinear& linear = linearOf(output);
        auto& out = static_cast<CpuBuffer&>(*output.out);
        const size_t n_parts = linear.low_rank.size();
        addJob(linear.weight, {.matrix = &linear.weight,
                               .input = input_,
                               .out = out.row(step.out_row),
                               .out_stride = out.width,
                               .add = output.add,
                               .bias = linear.bias.size() > 0 ? linear.bias.data() : nullptr,
                               .parts = std::span<const RankPart>(parts_).subspan(part, n_parts),
                               .scratch_column = scratch_column});
        part += n_parts;
        scratch_column += linear.weight.view.n_rows;
        BV_DCHECK((!output.add && n_parts == 0) || !fast() || scratch_column <= shape_.step_width);
    }
    runJobs();
}

void CpuBackend::addJob(const CpuMatrix& matrix, RowJob job) {
    job.item_begin = n_items_;
    n_items_ += roundedRows(matrix.view.n_rows);
    jobs_.push_back(job);
}

void CpuBackend::runJobs() {
    pool_.parallelFor(n_items_, kernels::kRowTile, [&](size_t begin, size_t end, size_t) {
        for (const RowJob& job : jobs_) {
            const size_t n_rows = job.matrix->view.n_rows;
            const size_t row_begin = std::max(begin, job.item_begin) - job.item_begin;
            const size_t row_end = std::min(std::max(end, job.item_begin) - job.item_begin, n_rows);
            if (row_begin >= row_end) {
                continue;
            }
            if (fast()) {
                runRowsFast(job, row_begin, row_end);
            } else {
                runRowsExact(job, row_begin, row_end);
            }
        }
    });
}

void CpuBackend::runRowsExact(const RowJob& job, size_t begin, size_t end) {
    const size_t n_tokens = job.input.n_tokens;
    kernels::MatMulF32 product = {.type = job.matrix->view.type,
                                  .w = job.matrix->data(),
                                  .n_rows = job.matrix->view.n_rows,
                                  .n_cols = job.matrix->view.n_cols,
                                  .x = job.input.x,
                                  .x_stride = job.input.x_stride,
                                  .out = job.out,
                                  .out_stride = job.out_stride,
                                  .n_tokens = n_tokens,
                                  .row_begin = begin,
                                  .row_end = end,
                                  .accumulate = job.add};
    kernels_->mat_mul_f32(product);
    for (const RankPart& part : job.parts) {
        const MatrixView& b = part.part->b.view;
        product.type = b.type;
        product.w = part.part->b.data();
        product.n_cols = b.n_cols;
        product.x = part.t;
        product.x_stride = b.n_cols;
        product.accumulate = true;
        kernels_->mat_mul_f32(product);
    }
    for (size_t t = 0; job.bias != nullptr && t < n_tokens; ++t) {
        kernels_->add(job.out + t * job.out_stride + begin, job.bias + begin, end - begin);
    }
}

void CpuBackend::runRowsFast(const RowJob& job, size_t begin, size_t end) {
    const size_t n_tokens = job.input.n_tokens;
    float* sum = job.add ? products_.data() + job.scratch_column : job.out;
    const size_t sum_stride = job.add ? shape_.step_width : job.out_stride;
    kernels::MatMulFast product = {
        .type = job.matrix->view.type,
        .packed = job.matrix->data(),
        .n_rows = job.matrix->view.n_rows,
        .n_cols = job.matrix->view.n_cols,
        .activations = job.input.activations[activationIndex(job.matrix->view.type)],
        .out = sum,
        .out_stride = sum_stride,
        .n_tokens = n_tokens,
        .row_begin = begin,
        .row_end = end};
    kernels_->mat_mul_fast(product);
    for (const RankPart& part : job.parts) {
        const MatrixView& b = part.part->b.view;
        product.type = b.type;
        product.packed = part.part->b.data();
        product.n_cols = b.n_cols;
        product.activations = part.activations;
        product.out = corrections_.data() + job.scratch_column;
        product.out_stride = shape_.step_width;
        kernels_->mat_mul_fast(product);
        for (size_t t = 0; t < n_tokens; ++t) {
            kernels_->add(sum + t * sum_stride + begin, product.out + t * shape_.step_width + begin,
                          end - begin);
        }
    }
    for (size_t t = 0; job.bias != nullptr && t < n_tokens; ++t) {
        kernels_->add(sum + t * sum_stride + begin, job.bias + begin, end - begin);
    }
    for (size_t t = 0; job.add && t < n_tokens; ++t) {
        kernels_->add(job.out + t * job.out_stride + begin, sum + t * sum_stride + begin,
                      end - begin);
    }
}

}  // namespace belvedere::inference
