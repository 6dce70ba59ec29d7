// SPDX-License-Identifier: Apache-2.0
#pragma once

// The backend on the CPU: a kernel table and a thread pool. Every step is done when its call
// returns. One thread at a time.
//
// Exact way: f32 activations against the file's own weights. Fast way: weights packed for the
// instruction set, activations prepared once for all matrices of a step. Between two steps all
// workers meet; for one token the prologue is too short to share, so a step without low-rank parts
// is one meeting.

#include <memory>
#include <string>
#include <vector>

#include "inference/backend/backend.h"
#include "inference/backend/cpu_linear.h"
#include "kernels/base/aligned_buffer.h"
#include "kernels/base/thread_pool.h"
#include "kernels/kernels.h"

namespace belvedere::inference {

enum class Precision { Exact, Fast };

class CpuBackend final : public Backend {
  public:
    /// n_threads > 0. Errors: OutOfMemory.
    [[nodiscard]] static Result<std::unique_ptr<CpuBackend>> create(
        const BackendShape& shape,
        Precision precision,
        const kernels::KernelTable& kernels,
        size_t n_threads);

    Result<std::unique_ptr<DeviceLinear>> addLinear(const LinearView& view) override;
    Result<std::unique_ptr<DeviceVector>> addVector(std::span<const float> values) override;
    Result<std::unique_ptr<DeviceBuffer>> addBuffer(size_t n_tokens, size_t width) override;

    Result<PageId> allocatePage() override;
    void freePage(PageId page) override;
    void copyPage(PageId from, PageId to, size_t n_tokens) override;
    [[nodiscard]] size_t pageBytes() const override;

    void beginPass(const PassView& pass) override;
    void embed(const DeviceLinear& table,
               std::span<const int32_t> tokens,
               DeviceBuffer& out) override;
    void project(const ProjectStep& step) override;
    void attend(const AttendStep& step) override;
    Result<void> await() override;
    std::span<float> read(DeviceBuffer& buffer, size_t n_rows) override;

    void setBusy(bool busy) override;

    [[nodiscard]] uint64_t residentBytes() const override { return resident_bytes_; }

    [[nodiscard]] std::string description() const override;

    [[nodiscard]] size_t threadCount() const override { return pool_.threadCount(); }

  private:
    /// One low-rank part of a step: t = scale A x, on its way to B.
    struct RankPart {
        const CpuLowRank* part = nullptr;
        float* t = nullptr;                ///< [n_tokens, rank]
        std::byte* activations = nullptr;  ///< fast: t as B's type wants it
    };

    /// One matrix of a step, with everything that is added to its rows.
    struct RowJob {
        const CpuMatrix* matrix = nullptr;
        float* out = nullptr;
        size_t out_stride = 0;
        bool add = false;  ///< to what `out` holds
        const float* bias = nullptr;
        std::span<const RankPart> parts = {};
        size_t scratch_column = 0;  ///< of its rows in products_ and corrections_
        size_t item_begin = 0;      ///< of its rows in the numbering of all jobs
    };

    CpuBackend(const BackendShape& shape,
               Precision precision,
               const kernels::KernelTable& kernels,
               size_t n_threads);

    [[nodiscard]] bool fast() const { return precision_ == Precision::Fast; }

    Result<void> reserveScratch(const CpuLinear& linear);

    void prepare(const ProjectStep& step);
    void prepareRows(const ProjectStep& step, size_t begin, size_t end);
    void chooseActivations(const ProjectStep& step);
    void addActivationType(kernels::WeightType type);
    void multiplyLowRank(const ProjectStep& step);
    void finishRankRows(size_t n_tokens, size_t begin, size_t end);
    void multiply(const ProjectStep& step);
    void addJob(const CpuMatrix& matrix, RowJob job);
    void runJobs(size_t n_tokens);
    void runRowsExact(const RowJob& job, size_t n_tokens, size_t begin, size_t end);
    void runRowsFast(const RowJob& job, size_t n_tokens, size_t begin, size_t end);
    [[nodiscard]] const void* activationsFor(kernels::WeightType type) const;

    void placeHeads(const AttendStep& step, size_t begin, size_t end);
    [[nodiscard]] std::byte* pageData(PageId page, size_t layer, bool values);

    const BackendShape shape_;
    const Precision precision_;
    const kernels::KernelTable& kernels_;
    ThreadPool pool_;
    uint64_t resident_bytes_ = 0;

    std::vector<AlignedBuffer<std::byte>> pages_;  ///< by PageId; empty: free
    std::vector<PageId> free_pages_;

    // The pass.
    size_t n_tokens_ = 0;
    size_t first_pos_ = 0;
    std::vector<PageId> pass_pages_;
    std::vector<const void*> k_pages_;
    std::vector<const void*> v_pages_;
    AlignedBuffer<float> cos_;  ///< [max_tokens, n_pairs]
    AlignedBuffer<float> sin_;
    AlignedBuffer<float> attend_scratch_;  ///< one part per worker
    size_t attend_scratch_floats_ = 0;

    // A step: its prepared input, low-rank parts and matrices.
    const float* x_ = nullptr;
    size_t x_stride_ = 0;
    kernels::WeightType activation_types_[2] = {};
    size_t n_activation_types_ = 0;
    std::vector<RankPart> parts_;
    std::vector<RowJob> jobs_;
    size_t n_items_ = 0;

    // Scratch of a step, sized when linears are added for the largest of them.
    AlignedBuffer<float> prologue_;            ///< [max_tokens, largest n_cols]
    AlignedBuffer<std::byte> activations_[2];  ///< fast: in the order of activation_types_
    AlignedBuffer<float> products_;  ///< fast: what is added to an output, [max_tokens, step_width]
    AlignedBuffer<float> corrections_;  ///< fast: B t, same shape
    AlignedBuffer<float> ranks_;        ///< t of every part
    AlignedBuffer<std::byte> rank_activations_;
};

}  // namespace belvedere::inference
