// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checkpoint from which a converter would make a GGUF: the same weights under the names, in the
// shapes and in the order of rows that the makers publish. Tests only.

#include <string>

#include "tests/support/checkpoint_builder.h"

namespace belvedere::testing {

/// `gguf`: a file of float types; `config`: the text of its config.json.
[[nodiscard]] CheckpointBuilder checkpointTwin(const std::string& gguf, const std::string& config);

/// The twin of sparseModel(), with its config.
[[nodiscard]] CheckpointBuilder sparseCheckpoint();

}  // namespace belvedere::testing
