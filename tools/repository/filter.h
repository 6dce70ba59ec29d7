// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which files stay out of the context although git does not ignore them, each with its reason. Pure
// functions; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/repository/repository.h"

namespace belvedere::tools {

struct Skip {
    SkipReason reason = SkipReason::Binary;
    std::string detail;
};

/// What the name alone says: lock files, source maps, minified files, dotenv, private keys, key
/// stores.
[[nodiscard]] std::optional<Skip> skipByName(std::string_view path);

[[nodiscard]] Skip skipTooLarge(uint64_t size_bytes, uint64_t max_bytes);

/// What the bytes say: binary, Git LFS pointers, secrets, generated and minified text. UTF-8 is
/// checked by source_text.h.
[[nodiscard]] std::optional<Skip> skipByContent(std::string_view bytes);

/// Private keys with their data and access tokens of known forms: what was found and its line,
/// never the value.
[[nodiscard]] std::optional<std::string> findSecret(std::string_view text);

}  // namespace belvedere::tools
