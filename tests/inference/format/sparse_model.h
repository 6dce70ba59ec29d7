// SPDX-License-Identifier: Apache-2.0
#pragma once

// A MiniMax-M3 of a few kB, made from a seed: layer 0 is dense, layer 1 chooses blocks of 2 tokens
// and 2 of 4 experts. Eight tokens, no template. Tests only.

#include <string>

namespace belvedere::testing {

/// The bytes of the file.
[[nodiscard]] std::string sparseModel();

}  // namespace belvedere::testing
