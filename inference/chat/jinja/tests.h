// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tests of templates: value is name(arguments). One rendering, one thread.
// Source: Jinja2 3.1 documentation, "List of Builtin Tests".

#include <string_view>

#include "inference/chat/jinja/ast.h"
#include "inference/chat/jinja/runtime.h"

namespace belvedere::inference::jinja {

/// nullptr: not implemented.
[[nodiscard]] TestFunction findTest(std::string_view name);

}  // namespace belvedere::inference::jinja
