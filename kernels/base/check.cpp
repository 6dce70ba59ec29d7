// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/check.h"

#include <cstdlib>

#include "kernels/base/log.h"

namespace belvedere::detail {

void checkFailed(const char* expression, const char* file, int line) {
    BV_LOG(LogLevel::Error, "base", "check failed: {} at {}:{}", expression, file, line);
    std::abort();
}

}  // namespace belvedere::detail
