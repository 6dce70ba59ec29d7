// SPDX-License-Identifier: Apache-2.0
#pragma once

// What must hold of a config, whatever container it was read from. Private to inference/model. Any
// thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inference/model/model_config.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

// Far above any published model of these families, far below where a product of three overflows.
inline constexpr uint64_t kMaxLayers = 1024;
inline constexpr uint64_t kMaxModelDim = 1U << 18;
inline constexpr uint64_t kMaxModelHeads = 4096;
inline constexpr uint64_t kMaxModelHeadDim = 1024;
inline constexpr uint64_t kMaxVocabulary = 1U << 24;
inline constexpr uint64_t kMaxContextTokens = 1U << 28;
inline constexpr uint64_t kMaxExperts = 4096;
inline constexpr uint64_t kMaxBlockTokens = 1024;

/// Errors: Corrupt where query heads cannot share the KV heads.
[[nodiscard]] Result<void> checkHeads(const std::string& file, const ModelConfig& config);

/// Of the value at `key`. Errors: Corrupt.
[[nodiscard]] Result<void> checkNormEps(const std::string& file,
                                        const std::string& key,
                                        double eps);
[[nodiscard]] Result<void> checkFreqBase(const std::string& file,
                                         const std::string& key,
                                         double freq_base);
[[nodiscard]] Result<void> checkLinearFactor(const std::string& file,
                                             const std::string& key,
                                             double factor);
[[nodiscard]] Result<void> checkRotatedDims(const std::string& file,
                                            const std::string& key,
                                            size_t n_dims);
/// Factor of the routed experts.
[[nodiscard]] Result<void> checkExpertScale(const std::string& file,
                                            const std::string& key,
                                            double scale);

/// Errors: Corrupt, Unsupported for blocks that do not fit pages of the cache.
[[nodiscard]] Result<void> checkMsa(const std::string& file, const MsaConfig& msa);

/// Turns the layers of the adapters into MSA layers beside the model's own, which are marked
/// already, and settles by which rule they all choose. Errors: InvalidArgument where both bring
/// one; Corrupt.
[[nodiscard]] Result<void> joinMsa(const std::string& file,
                                   const std::optional<MsaConfig>& own,
                                   const ConfigOverrides& overrides,
                                   ModelConfig& config);

}  // namespace belvedere::inference
