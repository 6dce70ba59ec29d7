// SPDX-License-Identifier: Apache-2.0
#pragma once

// The filters of templates: value | name(arguments). One rendering, one thread.
// Source: Jinja2 3.1 documentation, "List of Builtin Filters"; tojson as transformers replaces it.

#include <string_view>

#include "inference/chat/jinja/ast.h"
#include "inference/chat/jinja/runtime.h"

namespace belvedere::inference::jinja {

/// nullptr: not implemented.
[[nodiscard]] FilterFunction findFilter(std::string_view name);

/// Those on sequences and dicts, in sequence_filters.cpp.
[[nodiscard]] FilterFunction findSequenceFilter(std::string_view name);

}  // namespace belvedere::inference::jinja
