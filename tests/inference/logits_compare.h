// SPDX-License-Identifier: Apache-2.0
#pragma once

// How two sets of logits differ, and running a model file for them. Tests only.

#include <span>
#include <string>
#include <vector>

#include "inference/inspect.h"
#include "inference/model/model.h"

namespace belvedere::testing {

struct LogitsDifference {
    double largest = 0.0;       ///< absolute
    double nmse = 0.0;          ///< sum of squared differences over sum of squares of the reference
    size_t n_best_differs = 0;  ///< rows whose arg-max differs
    size_t n_near_ties = 0;     ///< of these, where the reference's best two are closer than `near`
};

[[nodiscard]] LogitsDifference compareLogits(std::span<const float> logits,
                                             std::span<const float> reference,
                                             size_t vocab_size,
                                             double near);

/// Mean of -log p(ids[t + 1]) over rows t of logits.
[[nodiscard]] double meanLoss(std::span<const float> logits,
                              std::span<const inference::TokenId> ids,
                              size_t vocab_size);

struct RunOptions {
    inference::Compute compute = inference::Compute::Exact;
    kernels::CacheType cache_type = kernels::CacheType::F16;
    kernels::CacheType index_cache_type = kernels::CacheType::BF16;
    size_t chunk = 128;
    size_t n_threads = 2;
    const kernels::KernelTable* kernels = nullptr;
    std::vector<inference::AdapterFile> adapters;
    inference::Attention attention = inference::Attention::Msa;
    inference::PassObserver* observer = nullptr;
};

/// Logits of every position.
[[nodiscard]] Result<std::vector<float>> runModel(const std::string& path,
                                                  std::span<const inference::TokenId> ids,
                                                  const RunOptions& options);

/// `input_ids` of an expected.safetensors.
[[nodiscard]] std::vector<inference::TokenId> expectedIds(const std::string& path);
[[nodiscard]] std::vector<float> expectedLogits(const std::string& path);

}  // namespace belvedere::testing
