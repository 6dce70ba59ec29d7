// SPDX-License-Identifier: Apache-2.0
#pragma once

// JSON of model files: the index and headers of safetensors, config.json. Refuses what a plain
// parse would let pass, in time that grows with the length of the text. Any thread.

#include <string_view>

#include <nlohmann/json.hpp>

#include "kernels/base/result.h"

namespace belvedere::inference {

/// A JSON object. `what` stands in messages: "the header". Errors: Corrupt for broken JSON, a key
/// given twice, nesting deeper than max_depth.
[[nodiscard]] Result<nlohmann::json> parseUniqueJson(std::string_view text,
                                                     const char* what,
                                                     int max_depth);

}  // namespace belvedere::inference
