// SPDX-License-Identifier: Apache-2.0
#include "inference/backend/cpu_linear.h"

#include <algorithm>
#include <atomic>

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

uint64_t CpuLinear::mappedBytes() const {
    uint64_t bytes = weight.packed.size() > 0 ? 0 : weight.view.bytes();
    for (const CpuLowRank& part : low_rank) {
        bytes += part.a.packed.size() > 0 ? 0 : part.a.view.bytes();
        bytes += part.b.packed.size() > 0 ? 0 : part.b.view.bytes();
    }
    return bytes;
}

bool joinScales(const MatrixView& view, std::byte* blocks, size_t row_begin, size_t row_end) {
    constexpr size_t kCols = 32;
    constexpr std::byte kNan{0x7f};  // of E4M3, whatever its sign
    constexpr std::byte kNanScale{0xff};
    const size_t n_blocks = view.n_cols / kCols;
    bool are_numbers = true;
    for (size_t block = row_begin * n_blocks; block < row_end * n_blocks; ++block) {
        const std::byte scale = static_cast<const std::byte*>(view.scales)[block];
        const std::byte* numbers = static_cast<const std::byte*>(view.data) + block * kCols;
        are_numbers = are_numbers && scale != kNanScale &&
                      std::none_of(numbers, numbers + kCols,
                                   [](std::byte bits) { return (bits & kNan) == kNan; });
        *blocks++ = scale;
        blocks = std::copy_n(numbers, kCols, blocks);
    }
    return are_numbers;
}

size_t copyBytes(const MatrixView& view, bool fast, const kernels::KernelTable& kernels) {
    const size_t n_packed =
        fast ? kernels.packed_bytes(view.type, view.n_rows, view.n_cols) : size_t{0};
    return n_packed == 0 && view.scales != nullptr ? view.bytes() : n_packed;
}

namespace {

Result<AlignedBuffer<std::byte>> matrixBuffer(const MatrixView& view, size_t n_bytes) {
    AlignedBuffer<std::byte> buffer(n_bytes);
    if (!buffer.ok()) {
        return fail(ErrorCode::OutOfMemory, "{} bytes for a matrix of {} x {}", n_bytes,
                    view.n_rows, view.n_cols);
    }
    return buffer;
}

Result<AlignedBuffer<std::byte>> joinAllScales(const MatrixView& view, ThreadPool& pool) {
    AlignedBuffer<std::byte> blocks = BV_TRY(matrixBuffer(view, view.bytes()));
    const size_t row_bytes = kernels::rowBytes(view.type, view.n_cols);
    std::atomic<bool> are_numbers = true;
    pool.parallelFor(view.n_rows, kernels::kRowTile, [&](size_t begin, size_t end, size_t) {
        if (!joinScales(view, blocks.data() + begin * row_bytes, begin, end)) {
            are_numbers = false;
        }
    });
    if (!are_numbers) {
        return fail(ErrorCode::Corrupt, "tensor {}: expected numbers, found NaN among them",
                    view.name);
    }
    return blocks;
}

}  // namespace

Result<CpuMatrix> MatrixMaker::matrix(const MatrixView& view, bool fast) const {
    CpuMatrix matrix;
    matrix.view = view;
    matrix.fast = fast;
    const size_t n_bytes = copyBytes(view, fast, kernels);
    if (n_bytes == 0) {
        return matrix;
    }
    if (is_measured) {
        matrix.packed = AlignedBuffer<std::byte>::measured(n_bytes);
        return matrix;
    }
    AlignedBuffer<std::byte> blocks;
    if (view.scales != nullptr) {
        blocks = BV_TRY(joinAllScales(view, pool));
        if (!fast || kernels.packed_bytes(view.type, view.n_rows, view.n_cols) == 0) {
            matrix.packed = std::move(blocks);
            return matrix;
        }
    }
    const void* stored = view.scales != nullptr ? blocks.data() : view.data;
    matrix.packed = BV_TRY(matrixBuffer(view, n_bytes));
    pool.parallelFor(view.n_rows, kernels::kRowTile, [&](size_t begin, size_t end, size_t) {
        kernels.pack(view.type, stored, view.n_rows, view.n_cols, matrix.packed.data(), begin, end);
    });
    return matrix;
}

Result<std::unique_ptr<CpuLinear>> MatrixMaker::linear(const LinearView& view, bool fast) const {
    auto made = std::make_unique<CpuLinear>();
    made->weight = BV_TRY(matrix(view.weight, fast));
    for (const LowRankView& part : view.low_rank) {
        CpuLowRank low_rank;
        low_rank.a = BV_TRY(matrix(part.a, fast));
        low_rank.b = BV_TRY(matrix(part.b, fast));
        low_rank.scale = part.scale;
        made->low_rank.push_back(std::move(low_rank));
    }
    if (!view.bias.empty()) {
        made->bias = AlignedBuffer<float>(view.bias.size());
        if (!made->bias.ok()) {
            return fail(ErrorCode::OutOfMemory, "{} floats for a bias", view.bias.size());
        }
        std::copy(view.bias.begin(), view.bias.end(), made->bias.data());
    }
    return made;
}

}  // namespace belvedere::inference
