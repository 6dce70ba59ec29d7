// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "kernels/base/result.h"

namespace belvedere::app {

/// Lower-case hexadecimal SHA-256 (FIPS 180-4) of a file. Progress gets the bytes read so far.
/// Errors: NotFound, Io, Cancelled.
[[nodiscard]] Result<std::string> sha256OfFile(
    const std::filesystem::path& file,
    const std::function<void(uint64_t n_bytes)>& progress,
    std::stop_token stop);

}  // namespace belvedere::app
