// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is sparse in a model: blocks chosen by an index branch, experts chosen by a router. Read
// from GGUF metadata and checked. Private to inference/model.

#include <optional>
#include <string_view>

#include "inference/model/key_reader.h"
#include "inference/model/model_config.h"

namespace belvedere::inference {

/// The keys attention.indexer.* under `architecture`, of a model or an adapter; nullopt where the
/// file has none. Errors: Corrupt, Unsupported for blocks that do not fit pages of the cache.
[[nodiscard]] Result<std::optional<MsaConfig>> readMsaConfig(const GgufFile& file,
                                                             std::string_view architecture);

/// The keys expert_* into config.moe, and which layers have experts into config.layers. Errors:
/// Corrupt, Unsupported.
[[nodiscard]] Result<void> readExperts(const GgufFile& file,
                                       const KeyReader& keys,
                                       ModelConfig& config);

}  // namespace belvedere::inference
