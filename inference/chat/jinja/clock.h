// SPDX-License-Identifier: Apache-2.0
#pragma once

// Points in time as templates print them, in English whatever the locale. Any thread.

#include <chrono>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace belvedere::inference::jinja {

/// strftime in the C locale, of a time of day without a zone.
/// Errors: Unsupported for a directive that is not implemented.
[[nodiscard]] Result<std::string> formatTime(std::chrono::sys_seconds time,
                                             std::string_view format);

}  // namespace belvedere::inference::jinja
