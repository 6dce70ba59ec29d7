// SPDX-License-Identifier: Apache-2.0
#pragma once

// Goes as far with bytes that claim to be a part of a checkpoint as the program would, before it
// computes. Tests and fuzzing only.

#include <cstddef>
#include <span>

#include "kernels/base/result.h"

namespace belvedere::testing {

/// The header, names, joining of tensors; touches every byte it is given a view of: give it a heap
/// block of the exact size.
[[nodiscard]] Result<void> readSafetensors(std::span<const std::byte> bytes);

/// A config.json.
[[nodiscard]] Result<void> readConfigJson(std::span<const std::byte> bytes);

}  // namespace belvedere::testing
