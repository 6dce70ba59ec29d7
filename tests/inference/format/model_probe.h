// SPDX-License-Identifier: Apache-2.0
#pragma once

// Goes as far with bytes that claim to be a model as the program would. Tests and fuzzing only.

#include <cstddef>
#include <span>
#include <string>

#include "kernels/base/result.h"

namespace belvedere::testing {

/// Every reader of the file: metadata, tensors, vocabulary, tokenizer, chat template, config and
/// shapes. Touches every byte it is given a view of, so that the address sanitizer sees a view that
/// is too long: give it a heap block of the exact size.
[[nodiscard]] Result<void> readModel(std::span<const std::byte> bytes);

/// Loads the file into an engine, reads a prompt in two passes and generates one token.
[[nodiscard]] Result<void> decodeOneToken(const std::string& path);

}  // namespace belvedere::testing
