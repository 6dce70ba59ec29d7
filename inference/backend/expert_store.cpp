// SPDX-License-Identifier: Apache-2.0
#include "inference/backend/expert_store.h"

#include <algorithm>

namespace belvedere::inference {

Result<std::unique_ptr<CpuExperts>> ExpertStore::add(const ExpertsView& view, bool fast) {
    auto layer = std::make_unique<CpuExperts>();
    layer->router = BV_TRY(maker_.matrix(view.router, false));
    resident_bytes_ += layer->router.packed.size();
    layer->choice_bias = view.choice_bias;
    layer->experts.resize(view.gate.size());
    for (size_t i = 0; i < layer->experts.size(); ++i) {
        CpuExpert& expert = layer->experts[i];
        const MatrixView* views[] = {&view.gate[i], &view.up[i], &view.down[i]};
        for (size_t part = 0; part < std::size(views); ++part) {
            expert.matrices()[part]->view = *views[part];
            expert.matrices()[part]->fast = fast;
        }
        const uint64_t n_bytes = packedBytes(expert);
        expert.is_ready = n_bytes == 0;  // read where it stands
        if (!expert.is_ready &&
            (budget_bytes_ == 0 || resident_bytes_ + n_bytes <= budget_bytes_)) {
            BV_TRY(pack(expert));
        }
    }
    return layer;
}

Result<size_t> ExpertStore::prepare(CpuExperts& layer, std::span<const size_t> ids) {
    ++clock_;
    size_t n_ready = 0;
    for (; n_ready < ids.size(); ++n_ready) {
        CpuExpert& expert = layer.experts[ids[n_ready]];
        if (!expert.is_ready) {
            const uint64_t n_bytes = packedBytes(expert);
            while (resident_bytes_ + n_bytes > budget_bytes_ && dropOldest()) {
            }
            const bool is_full = resident_bytes_ + n_bytes > budget_bytes_;
            if (is_full && n_ready > 0) {
                break;  // what is left all belongs to this call
            }
            BV_TRY(pack(expert));
        }
        expert.last_used = clock_;
    }
    return n_ready;
}

uint64_t ExpertStore::packedBytes(const CpuExpert& expert) const {
    uint64_t n_bytes = 0;
    for (const CpuMatrix* matrix : {&expert.gate, &expert.up, &expert.down}) {
        n_bytes += copyBytes(matrix->view, matrix->fast, maker_.kernels);
    }
    return n_bytes;
}

Result<void> ExpertStore::pack(CpuExpert& expert) {
    for (CpuMatrix* matrix : expert.matrices()) {
        *matrix = BV_TRY(maker_.matrix(matrix->view, matrix->fast));
        resident_bytes_ += matrix->packed.size();
    }
    expert.is_ready = true;
    packed_.push_back(&expert);
    return {};
}

/// Of those that the present call does not use; false where there is none.
bool ExpertStore::dropOldest() {
    const auto oldest = std::min_element(
        packed_.begin(), packed_.end(),
        [](const CpuExpert* a, const CpuExpert* b) { return a->last_used < b->last_used; });
    if (oldest == packed_.end() || (*oldest)->last_used == clock_) {
        return false;
    }
    CpuExpert& expert = **oldest;
    for (CpuMatrix* matrix : expert.matrices()) {
        resident_bytes_ -= matrix->packed.size();
        matrix->packed = {};
    }
    expert.is_ready = false;
    *oldest = packed_.back();
    packed_.pop_back();
    return true;
}

}  // namespace belvedere::inference
