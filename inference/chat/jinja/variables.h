// SPDX-License-Identifier: Apache-2.0
#pragma once

// JSON from outside to values of a template. One rendering, one thread.

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "inference/chat/jinja/runtime.h"
#include "inference/chat/template.h"

namespace belvedere::inference::jinja {

/// Source ranges by JSON pointer.
using SourceMap = std::map<std::string, const std::vector<SourceRange>*, std::less<>>;

/// Errors: InvalidArgument with the pointer for a range outside its text, one that cuts a
/// character, or ranges out of order.
[[nodiscard]] Result<SourceMap> indexSources(const std::vector<SourcedText>& sources,
                                             const nlohmann::ordered_json& variables);

/// Errors: InvalidArgument with the pointer for text that is not UTF-8, a number beyond 64 bits,
/// JSON that nests too deep.
[[nodiscard]] Result<Value> valueFromJson(Runtime& runtime,
                                          const nlohmann::ordered_json& json,
                                          const std::string& pointer,
                                          bool is_trusted,
                                          const SourceMap& sources);

/// A member's name as a part of a JSON pointer (RFC 6901).
[[nodiscard]] std::string escapePointerPart(std::string_view name);

}  // namespace belvedere::inference::jinja
