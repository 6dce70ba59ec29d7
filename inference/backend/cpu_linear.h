// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights as the CPU backend keeps them. Private to inference/backend. Immutable once made: any
// thread.

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "inference/backend/backend.h"
#include "inference/format/byte_cursor.h"
#include "kernels/base/aligned_buffer.h"
#include "kernels/base/thread_pool.h"
#include "kernels/kernels.h"

namespace belvedere::inference {

/// Room for n bytes, so that what follows begins on a cache line of its own.
[[nodiscard]] inline size_t alignedBytes(size_t n) {
    return (n + 63) / 64 * 64;
}

/// A matrix and, where the file's layout is not the one that the kernels read, a copy in theirs.
struct CpuMatrix {
    MatrixView view;
    AlignedBuffer<std::byte> packed;  ///< empty: the kernels read the file's layout
    bool fast = false;

    /// What the product of this matrix reads, the exact or the fast one.
    [[nodiscard]] const void* data() const { return packed.size() > 0 ? packed.data() : view.data; }
};

struct CpuLowRank {
    CpuMatrix a;
    CpuMatrix b;
    float scale = 1.0F;
};

class CpuLinear : public DeviceLinear {
  public:
    CpuMatrix weight;
    std::vector<CpuLowRank> low_rank;
    AlignedBuffer<float> bias;

    [[nodiscard]] size_t rankSum() const;
    [[nodiscard]] uint64_t residentBytes() const;
    /// Read where it stands in the file.
    [[nodiscard]] uint64_t mappedBytes() const;
};

struct CpuExpert {
    CpuMatrix gate;
    CpuMatrix up;
    CpuMatrix down;
    bool is_ready = false;   ///< else its matrices must be packed before use
    uint64_t last_used = 0;  ///< as the ExpertStore counts

    [[nodiscard]] std::array<CpuMatrix*, 3> matrices() { return {&gate, &up, &down}; }
};

/// A router and its experts.
class CpuExperts : public DeviceExperts {
  public:
    CpuMatrix router;  ///< [n_experts, dim], exact
    std::vector<float> choice_bias;
    std::vector<CpuExpert> experts;
};

class CpuVector : public DeviceVector {
  public:
    AlignedBuffer<float> values;
};

/// Bytes of working memory.
struct ScratchCount {
    uint64_t now = 0;
    uint64_t most = 0;

    void add(uint64_t n_bytes) {
        now += n_bytes;
        most = std::max(most, now);
    }
};

class CpuBuffer : public DeviceBuffer {
  public:
    /// `counted`: where its bytes are counted as long as it lives.
    CpuBuffer(AlignedBuffer<float> rows, std::shared_ptr<ScratchCount> counted)
        : values(std::move(rows)), counted_(std::move(counted)) {
        counted_->add(values.size() * sizeof(float));
    }

    ~CpuBuffer() override { counted_->now -= values.size() * sizeof(float); }

    CpuBuffer(const CpuBuffer&) = delete;
    CpuBuffer& operator=(const CpuBuffer&) = delete;

    AlignedBuffer<float> values;
    size_t n_tokens = 0;
    size_t width = 0;

    [[nodiscard]] float* row(size_t t) { return values.data() + t * width; }

    [[nodiscard]] const float* row(size_t t) const { return values.data() + t * width; }

  private:
    std::shared_ptr<ScratchCount> counted_;
};

/// Rows [row_begin, row_end) of an MXFP8 matrix, whose scales stand apart, as blocks. Returns false
/// where a number or a scale is NaN.
[[nodiscard]] bool joinScales(const MatrixView& view,
                              std::byte* blocks,
                              size_t row_begin,
                              size_t row_end);

/// Bytes of the copy that MatrixMaker makes; 0: none.
[[nodiscard]] size_t copyBytes(const MatrixView& view,
                               bool fast,
                               const kernels::KernelTable& kernels);

/// How matrices are made.
struct MatrixMaker {
    const kernels::KernelTable& kernels;
    ThreadPool& pool;
    bool is_measured = false;  ///< sizes without memory

    /// Copies what the kernels want packed. Errors: OutOfMemory; Corrupt where MXFP8
    /// holds NaN.
    [[nodiscard]] Result<CpuMatrix> matrix(const MatrixView& view, bool fast) const;
    [[nodiscard]] Result<std::unique_ptr<CpuLinear>> linear(const LinearView& view,
                                                            bool fast) const;
};

}  // namespace belvedere::inference
