// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which experts stand in memory in the layout of the kernels. Within the budget all do, from the
// start. Beyond it, they stay in the mapped file, and one that is chosen is packed when it is
// needed, in the place of those used longest ago: a model larger than memory runs, slowly. Private
// to inference/backend; one thread at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "inference/backend/cpu_linear.h"

namespace belvedere::inference {

class ExpertStore {
  public:
    /// budget_bytes of packed matrices; 0: no limit.
    ExpertStore(const MatrixMaker& maker, uint64_t budget_bytes)
        : maker_(maker), budget_bytes_(budget_bytes) {}

    /// Packs the experts of a layer as far as the budget goes. Errors: OutOfMemory.
    Result<std::unique_ptr<CpuExperts>> add(const ExpertsView& view, bool fast);

    /// Makes the first of the given experts of a layer ready, at least one and as many as the
    /// budget holds together; returns how many. They stay until the next call. Errors: OutOfMemory.
    Result<size_t> prepare(CpuExperts& layer, std::span<const size_t> ids);

    [[nodiscard]] uint64_t residentBytes() const { return resident_bytes_; }

  private:
    [[nodiscard]] uint64_t packedBytes(const CpuExpert& expert) const;
    Result<void> pack(CpuExpert& expert);
    bool dropOldest();

    const MatrixMaker maker_;
    const uint64_t budget_bytes_;
    uint64_t resident_bytes_ = 0;
    uint64_t clock_ = 0;
    std::vector<CpuExpert*> packed_;  ///< in no order
};

}  // namespace belvedere::inference
