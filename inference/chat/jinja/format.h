// SPDX-License-Identifier: Apache-2.0
#pragma once

// Python's two text formatters. One rendering, one thread.
// Errors: InvalidArgument for arguments that do not fit; Unsupported for a form that is not
// implemented.

#include "inference/chat/jinja/runtime.h"

namespace belvedere::inference::jinja {

/// format % arguments
[[nodiscard]] Result<Value> formatPercent(Runtime& runtime,
                                          const Text& format,
                                          const Value& arguments);

/// format.format(arguments...)
[[nodiscard]] Result<Value> formatBraces(Runtime& runtime,
                                         const Text& format,
                                         const CallArguments& arguments);

}  // namespace belvedere::inference::jinja
