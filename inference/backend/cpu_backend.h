// SPDX-License-Identifier: Apache-2.0
#pragma once

// The backend on the CPU: a kernel table and a thread pool. Every step is done when its call
// returns. One thread at a time.
//
// Exact way: f32 activations against the file's own weights. Fast way: weights packed for the
// instruction set, activations prepared once for all matrices of a step. Between two steps all
// workers meet; for one token the prologue is too short to share, so a step without low-rank parts
// is one meeting.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "inference/backend/backend.h"
#include "inference/backend/cpu_linear.h"
#include "inference/backend/expert_store.h"
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
    Result<std::unique_ptr<DeviceExperts>> addExperts(const ExpertsView& view) override;
    Result<std::unique_ptr<DeviceVector>> addVector(std::span<const float> values) override;
    Result<std::unique_ptr<DeviceBuffer>> addBuffer(size_t n_tokens, size_t width) override;

    Result<PageId> allocatePage() override;
    PageId addStoredPage(std::shared_ptr<StoredPages> pages, size_t index) override;
    void freePage(PageId page) override;
    Result<void> copyPage(PageId from, PageId to, size_t n_tokens) override;
    Result<std::span<const std::byte>> readPage(PageId page, PagePart part, size_t layer) override;
    [[nodiscard]] bool isDamaged(PageId page) const override;

    [[nodiscard]] const PageShape& pageShape() const override { return page_shape_; }

    [[nodiscard]] size_t pageBytes() const override { return page_bytes_; }

    void beginPass(std::span<const PassRun> runs, PassKind kind) override;
    void embed(const DeviceLinear& table,
               std::span<const int32_t> tokens,
               DeviceBuffer& out) override;
    void project(const ProjectStep& step) override;
    void attend(const AttendStep& step) override;
    void experts(const ExpertsStep& step) override;
    void normalize(const NormalizeStep& step) override;
    void attendSegment(const SegmentStep& step) override;
    Result<void> reserveSegment(size_t n_rows, size_t n_heads, size_t head_dim) override;
    void write(std::span<const float> rows, size_t first_row, DeviceBuffer& buffer) override;
    Result<void> await() override;
    std::span<float> read(DeviceBuffer& buffer, size_t n_rows) override;

    [[nodiscard]] std::span<const int32_t> chosenBlocks(size_t layer) const override;
    [[nodiscard]] ChosenExperts chosenExperts() const override;

    void setBusy(bool busy) override;

    [[nodiscard]] uint64_t residentBytes() const override {
        return resident_bytes_ + expert_store_.residentBytes();
    }

    [[nodiscard]] uint64_t expertBytes() const override { return expert_store_.residentBytes(); }

    [[nodiscard]] uint64_t mappedBytes() const override { return mapped_bytes_; }

    [[nodiscard]] uint64_t scratchBytes() const override { return scratch_->now; }

    [[nodiscard]] uint64_t mostScratchBytes() const override { return scratch_->most; }

    [[nodiscard]] std::string description() const override;

    [[nodiscard]] size_t threadCount() const override { return pool_.threadCount(); }

  private:
    /// Kinds of prepared activations that the matrices of one step may want.
    static constexpr size_t kMaxActivationTypes = 4;
    /// Ranges of keys of one attention step.
    static constexpr size_t kMaxSplits = 16;

    /// A page of the cache: memory of our own, or a place in a file; free with neither.
    struct Page {
        AlignedBuffer<std::byte> memory;
        std::shared_ptr<StoredPages> stored;  // shared with the other pages of the file
        size_t index = 0;                     ///< in `stored`
    };

    /// A run of the pass.
    struct Run {
        size_t row = 0;  ///< its first
        size_t n_tokens = 0;
        size_t first_pos = 0;
        size_t page_begin = 0;  ///< in pass_pages_
        std::span<const uint8_t> banned_blocks;
    };

    /// How the keys of one token are split: by its position and nothing else, so that neither the
    /// number of threads nor the other rows of the pass change a bit of the result.
    struct KeySplit {
        size_t n_ranges = 1;
        size_t n_keys = 0;  ///< of a range
    };

    [[nodiscard]] static KeySplit splitOf(size_t pos);

    /// Where a row of the pass stands.
    struct RowPlace {
        size_t pos = 0;
        size_t page = 0;  ///< index in pass_pages_
    };

    /// Rows that matrices are multiplied with.
    struct Input {
        const float* x = nullptr;
        size_t x_stride = 0;
        size_t n_tokens = 0;
        /// Fast: x as the types of the step want it, in the order of activation_types_.
        const std::byte* activations[kMaxActivationTypes] = {};
    };

    /// One low-rank part of a step: t = scale A x, on its way to B.
    struct RankPart {
        const CpuLowRank* part = nullptr;
        float* t = nullptr;                ///< [n_tokens, rank]
        std::byte* activations = nullptr;  ///< fast: t as B's type wants it
    };

    /// One matrix of a step, with everything that is added to its rows.
    struct RowJob {
        const CpuMatrix* matrix = nullptr;
        Input input = {};
        float* out = nullptr;
        size_t out_stride = 0;
        bool add = false;  ///< to what `out` holds
        const float* bias = nullptr;
        std::span<const RankPart> parts = {};
        size_t scratch_column = 0;  ///< of its rows in products_ and corrections_
        size_t item_begin = 0;      ///< of its rows in the numbering of all jobs
    };

    /// The tokens of one expert: rows [begin, begin + n_tokens) of the gathered ones.
    struct ExpertRows {
        size_t expert = 0;
        size_t begin = 0;
        size_t n_tokens = 0;
        size_t activation_begin[kMaxActivationTypes] = {};  ///< bytes
    };

    CpuBackend(const BackendShape& shape,
               Precision precision,
               const kernels::KernelTable& kernels,
               size_t n_threads);

    [[nodiscard]] bool fast() const { return precision_ == Precision::Fast; }

    /// At least n elements; what a buffer held before is lost. Errors: OutOfMemory.
    template <class T>
    Result<void> reserve(AlignedBuffer<T>& buffer, size_t n) {
        if (buffer.size() >= n) {
            return {};
        }
        scratch_->now -= buffer.size() * sizeof(T);
        buffer = {};
        buffer = BV_TRY(allocate<T>(n));
        scratch_->add(n * sizeof(T));
        return {};
    }

    /// Where memory is only measured, without it. Errors: OutOfMemory.
    template <class T>
    Result<AlignedBuffer<T>> allocate(size_t n) {
        if (shape_.is_measured) {
            return AlignedBuffer<T>::measured(n);
        }
        AlignedBuffer<T> buffer(n);
        if (!buffer.ok()) {
            return fail(ErrorCode::OutOfMemory, "{} bytes of working memory", n * sizeof(T));
        }
        return buffer;
    }

    /// The larger of what sizeOf gives for the tables of both kinds of pass.
    template <class SizeOf>
    [[nodiscard]] size_t largerOf(SizeOf&& sizeOf) const {
        return std::max(sizeOf(prompt_kernels_), sizeOf(generation_kernels_));
    }

    /// Of prepared activations, whatever the kind of pass.
    [[nodiscard]] size_t activationBytes(kernels::WeightType type,
                                         size_t n_tokens,
                                         size_t n_cols) const;

    Result<void> reserveSteps();
    Result<void> reserveAttention();
    Result<void> reserveAttendScratch(size_t n_heads, size_t n_kv_heads, size_t head_dim);
    void placeSegmentRows(const SegmentStep& step, size_t begin, size_t end);
    Result<void> reserveScratch(const CpuLinear& linear);

    void prepare(const ProjectStep& step);
    void prepareRows(const ProjectStep& step, size_t begin, size_t end);
    void chooseActivations(const ProjectStep& step);
    void addActivationType(kernels::WeightType type);
    void multiplyLowRank(const ProjectStep& step);
    void finishRankRows(size_t n_tokens, size_t begin, size_t end);
    void multiply(const ProjectStep& step);
    void addJob(const CpuMatrix& matrix, RowJob job);
    void runJobs();
    void runRowsExact(const RowJob& job, size_t begin, size_t end);
    void runRowsFast(const RowJob& job, size_t begin, size_t end);
    void activate(Prologue activation,
                  ActivationLimits limits,
                  const float* gate,
                  const float* up,
                  float* out,
                  size_t n) const;
    [[nodiscard]] size_t activationIndex(kernels::WeightType type) const;

    void placeHeads(const AttendStep& step, size_t begin, size_t end);
    void placeIndexHeads(const AttendStep& step, size_t begin, size_t end);
    void normHeads(const DeviceVector* norm, CpuBuffer& heads, size_t n_heads, size_t t, float eps);
    void chooseBlocks(const AttendStep& step, const Run& run);
    void attendHeads(const AttendStep& step);
    void addSpans(const AttendStep& step, const Run& run);
    void mergeSpans();
    [[nodiscard]] int32_t* blocksOf(size_t layer, size_t row);

    void placePages();
    PageId addPage(Page page);
    [[nodiscard]] size_t partOffset(PagePart part, size_t layer) const;
    [[nodiscard]] const std::byte* partOf(const Page& page, PagePart part, size_t layer) const;
    void findPages(const AttendStep& step);
    void checkIndexKeys(size_t layer);
    void checkKeysAndValues(const AttendStep& step);
    void checkStored(PagePart part, size_t layer, std::span<const size_t> places);

    void route(const ExpertsStep& step, const CpuExperts& experts);
    void groupByExpert(const ExpertsStep& step, const CpuExperts& experts);
    void placeExpertActivations(std::span<const kernels::WeightType> types,
                                size_t width,
                                std::span<ExpertRows> all_rows);
    void prepareExpertRows(const ExpertRows& rows, const float* x, size_t width);
    [[nodiscard]] Input inputOf(const ExpertRows& rows, const float* x, size_t width) const;
    void forEachExpert(std::span<const ExpertRows> all_rows,
                       const std::function<void(const ExpertRows&)>& work);
    void runExperts(const ExpertsStep& step,
                    const CpuExperts& experts,
                    std::span<ExpertRows> all_rows);
    void addRouted(const ExpertsStep& step, size_t begin, size_t end);

    const BackendShape shape_;
    const Precision precision_;
    const kernels::KernelTable& prompt_kernels_;
    const kernels::KernelTable& generation_kernels_;
    const kernels::KernelTable* kernels_;  ///< of the pass
    ThreadPool pool_;
    const MatrixMaker maker_;
    ExpertStore expert_store_;
    uint64_t resident_bytes_ = 0;  ///< of everything else
    uint64_t mapped_bytes_ = 0;
    const std::shared_ptr<ScratchCount> scratch_ = std::make_shared<ScratchCount>();

    PageShape page_shape_;
    size_t page_bytes_ = 0;
    std::vector<size_t> part_offsets_;  ///< in a page of our own, of (layer, part)
    std::vector<Page> pages_;           ///< by PageId
    std::vector<PageId> free_pages_;

    // The pass.
    Result<void> pass_result_;
    size_t n_tokens_ = 0;
    std::vector<Run> runs_;
    std::vector<RowPlace> row_places_;
    std::vector<PageId> pass_pages_;     ///< of all runs
    std::vector<size_t> stored_places_;  ///< of pages in files, in pass_pages_
    std::vector<uint8_t> is_attended_;   ///< by place in pass_pages_, of one layer
    std::vector<const void*> k_pages_;   ///< of one layer, in the order of pass_pages_
    std::vector<const void*> v_pages_;
    std::vector<const void*> index_pages_;
    std::vector<kernels::Attend> spans_;    ///< tokens of one run whose keys are split alike
    AlignedBuffer<float> block_scores_;     ///< [tokens of a tile, index heads, blocks]
    AlignedBuffer<int32_t> chosen_blocks_;  ///< [MSA layers, max_tokens, index heads, top_k]
    std::vector<size_t> index_slot_;        ///< of each layer among the MSA layers
    AlignedBuffer<float> score_scratch_;    ///< one part per worker
    size_t score_scratch_floats_ = 0;
    AlignedBuffer<float> partials_;  ///< of attention whose keys are split
    AlignedBuffer<float> cos_;       ///< [max_tokens, n_pairs]
    AlignedBuffer<float> sin_;
    AlignedBuffer<float> attend_scratch_;  ///< one part per worker
    size_t attend_scratch_floats_ = 0;
    AlignedBuffer<float> segment_keys_;  ///< [pages, heads, kPageTokens, head_dim] of a segment
    AlignedBuffer<float> segment_values_;
    std::vector<const void*> segment_k_pages_;
    std::vector<const void*> segment_v_pages_;

    // A step: its prepared input, low-rank parts and matrices.
    Input input_;
    kernels::WeightType activation_types_[kMaxActivationTypes] = {};
    size_t n_activation_types_ = 0;
    std::vector<RankPart> parts_;
    std::vector<RowJob> jobs_;
    size_t n_items_ = 0;

    // Scratch of a step, sized when linears are added for the largest of them.
    AlignedBuffer<float> prologue_;                              ///< [max_tokens, largest n_cols]
    AlignedBuffer<std::byte> activations_[kMaxActivationTypes];  ///< fast
    AlignedBuffer<float> products_;  ///< fast: what is added to an output, [max_tokens, step_width]
    AlignedBuffer<float> corrections_;  ///< fast: B t, same shape
    AlignedBuffer<float> ranks_;        ///< t of every part
    AlignedBuffer<std::byte> rank_activations_;

    // Experts: what was chosen, and the rows of each expert one behind the other. A pair is a token
    // and one of its experts.
    std::vector<float> router_logits_;   ///< [n_tokens, n_experts]
    std::vector<int32_t> chosen_ids_;    ///< [n_tokens, n_experts_used], ascending
    std::vector<float> chosen_weights_;  ///< the same shape
    std::vector<size_t> pair_row_;       ///< where a pair's row stands among the gathered ones
    std::vector<size_t> row_token_;      ///< the token of a gathered row
    std::vector<ExpertRows> expert_rows_;
    std::vector<size_t> row_experts_;  ///< the experts of expert_rows_
    size_t n_chosen_tokens_ = 0;
    AlignedBuffer<float> gathered_;     ///< [max_tokens * n_experts_used, dim], then the results
    AlignedBuffer<float> expert_gate_;  ///< [max_tokens * n_experts_used, ff_dim]
    AlignedBuffer<float> expert_up_;
    AlignedBuffer<std::byte> expert_activations_[kMaxActivationTypes];
};

}  // namespace belvedere::inference
