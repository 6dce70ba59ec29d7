// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reference_dir.h"

#include <cstdlib>

namespace belvedere::testing {

std::filesystem::path dataPath(const std::filesystem::path& relative) {
    return std::filesystem::path(BV_SOURCE_DIR) / "tests" / "data" / relative;
}

std::optional<std::filesystem::path> referenceDir() {
    const char* named = std::getenv("BV_REFERENCE_DIR");
    const std::filesystem::path dir =
        named != nullptr ? std::filesystem::path(named)
                         : std::filesystem::path(BV_SOURCE_DIR) / ".." / "shared" / "golden";
    std::error_code ignored;
    if (!std::filesystem::is_directory(dir, ignored)) {
        return std::nullopt;
    }
    return dir;
}

}  // namespace belvedere::testing
