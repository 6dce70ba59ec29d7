// SPDX-License-Identifier: Apache-2.0
#pragma once

// The methods of Python's str. One rendering, one thread.

#include <string_view>

#include "inference/chat/jinja/runtime.h"

namespace belvedere::inference::jinja {

using TextMethod = Result<Value> (*)(Runtime&, const Text&, const CallArguments&);

/// nullptr: not implemented.
[[nodiscard]] TextMethod findTextMethod(std::string_view name);

}  // namespace belvedere::inference::jinja
