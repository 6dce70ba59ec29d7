// SPDX-License-Identifier: Apache-2.0
#pragma once

// A ModelConfig from GGUF metadata and, where the metadata is silent, tensor shapes. Private to
// inference/model. Any thread.

#include "inference/format/gguf.h"
#include "inference/model/model_config.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// Errors: Corrupt for missing, absurd or contradicting values, Unsupported for architectures and
/// features that this decoder lacks; the message names the key.
[[nodiscard]] Result<ModelConfig> modelConfigFromGguf(const GgufFile& file,
                                                      const ConfigOverrides& overrides = {});

}  // namespace belvedere::inference
