// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where test data stands. Reference outputs of other implementations that the project may not carry
// are read from the folder that BV_REFERENCE_DIR names, by default ../shared/golden beside the
// source tree.

#include <filesystem>
#include <optional>

namespace belvedere::testing {

/// tests/data/<relative>; the file is part of the project.
[[nodiscard]] std::filesystem::path dataPath(const std::filesystem::path& relative);

/// nullopt where there is no reference folder: then GTEST_SKIP() with kNoReference.
[[nodiscard]] std::optional<std::filesystem::path> referenceDir();

inline constexpr const char* kNoReference =
    "no reference data: set BV_REFERENCE_DIR to the folder that holds it";

}  // namespace belvedere::testing
