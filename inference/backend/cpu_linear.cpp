// SPDX-License-Identifier: Apache-2.0
#include "inference/backend/cpu_linear.h"

#include <algorithm>

namespace belvedere::inference {

size_t CpuLinear::rankSum() const {
    size_t sum = 0;
    for (const CpuLowRank& part : low_rank) {
        sum += part.a.view.n_rows;
    }
    return sum;
}

uint64_t CpuLinear::residentBytes() const {
    uint64_t bytes = weight.packed.size() + bias.size() * sizeof(float);
    for (const CpuLowRank& part : low_rank) {
        bytes += part.a.packed.size() + part.b.packed.size();
    }
    return bytes;
}

Result<CpuMatrix> makeMatrix(const MatrixView& view,
                             bool fast,
                             const kernels::KernelTable& kernels,
                             ThreadPool& pool) {
    CpuMatrix matrix;
    matrix.view = view;
    matrix.fast = fast;
    if (!fast) {
        return matrix;
    }
    const size_t n_bytes = kernels.packed_bytes(view.type, view.n_rows, view.n_cols);
    if (n_bytes == 0) {
        return matrix;
    }
    matrix.packed = AlignedBuffer<std::byte>(n_bytes);
    if (!matrix.packed.ok()) {
        return fail(ErrorCode::OutOfMemory, "{} bytes for a matrix of {} x {}", n_bytes,
                    view.n_rows, view.n_cols);
    }
    pool.parallelFor(view.n_rows, kernels::kRowTile, [&](size_t begin, size_t end, size_t) {
        kernels.pack(view.type, view.data, view.n_rows, view.n_cols, matrix.packed.data(), begin,
                     end);
    });
    return matrix;
}

Result<std::unique_ptr<CpuLinear>> makeLinear(const LinearView& view,
                                              bool fast,
                                              const kernels::KernelTable& kernels,
                                              ThreadPool& pool) {
    auto linear = std::make_unique<CpuLinear>();
    linear->weight = BV_TRY(makeMatrix(view.weight, fast, kernels, pool));
    for (const LowRankView& part : view.low_rank) {
        CpuLowRank low_rank;
        low_rank.a = BV_TRY(makeMatrix(part.a, fast, kernels, pool));
        low_rank.b = BV_TRY(makeMatrix(part.b, fast, kernels, pool));
        low_rank.scale = part.scale;
        linear->low_rank.push_back(std::move(low_rank));
    }
    if (!view.bias.empty()) {
        linear->bias = AlignedBuffer<float>(view.bias.size());
        if (!linear->bias.ok()) {
            return fail(ErrorCode::OutOfMemory, "{} floats for a bias", view.bias.size());
        }
        std::copy(view.bias.begin(), view.bias.end(), linear->bias.data());
    }
    return linear;
}

}  // namespace belvedere::inference
