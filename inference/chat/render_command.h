// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `belvedere render` does: one JSON object and a template to the exact prompt bytes. Any
// thread.

#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace belvedere::inference {

/// input_json is one object: messages (required), tools, add_generation_prompt (default true),
/// bos_token, eos_token, now ("YYYY-MM-DD HH:MM:SS"), and any other template variable. Errors:
/// InvalidArgument for invalid JSON, a name given twice, a wrong type or a number that does not
/// fit, with the place;
///         else as ChatTemplate.
[[nodiscard]] Result<std::string> renderFromJson(std::string_view template_source,
                                                 std::string_view input_json);

}  // namespace belvedere::inference
