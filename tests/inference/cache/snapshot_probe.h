// SPDX-License-Identifier: Apache-2.0
#pragma once

// Snapshots made by hand, and a reader that goes as far with bytes that claim to be one as the
// program would. Tests and fuzzing only.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "inference/cache/snapshot.h"

namespace belvedere::testing {

/// Two layers, the second with an index; a page has 2 kB and 1 kB of it.
[[nodiscard]] inference::SnapshotKey probeKey();

/// A whole snapshot for that key. Requires: n_banned < 8.
[[nodiscard]] std::vector<std::byte> probeSnapshot(size_t n_tokens, size_t n_banned);

/// Makes header and tables agree with each other, whatever they say, as far as the bytes reach:
/// what is behind the checksums must hold by itself.
void repair(std::span<std::byte> bytes);

/// Opens and checks every part; touches every byte it is given a view of: give it a heap block of
/// the exact size. Errors: those of SnapshotFile; Corrupt where a part is damaged.
[[nodiscard]] Result<void> readSnapshot(std::span<const std::byte> bytes);

}  // namespace belvedere::testing
