// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small text files beside a model: config.json, tokenizer.json, chat templates. Any thread.

#include <cstddef>
#include <filesystem>
#include <string>

#include "kernels/base/result.h"

namespace belvedere::inference {

/// Far above any published one.
inline constexpr size_t kMaxModelTextBytes = size_t{256} << 20;

/// The whole file. Errors: NotFound, Io; Corrupt where it has more than max_bytes.
[[nodiscard]] Result<std::string> readTextFile(const std::filesystem::path& path,
                                               size_t max_bytes = kMaxModelTextBytes);

}  // namespace belvedere::inference
