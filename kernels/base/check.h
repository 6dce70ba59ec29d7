// SPDX-License-Identifier: Apache-2.0
#pragma once

// Broken promises of our own code abort with the place. Not for bad input: that is a Result.

namespace belvedere::detail {

[[noreturn]] void checkFailed(const char* expression, const char* file, int line);

}  // namespace belvedere::detail

/// Always on: a documented precondition that the caller broke.
#define BV_CHECK(condition)             \
    ((condition) ? static_cast<void>(0) \
                 : ::belvedere::detail::checkFailed(#condition, __FILE__, __LINE__))

/// Off in release builds: for hot loops.
#ifdef NDEBUG
#define BV_DCHECK(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define BV_DCHECK(condition) BV_CHECK(condition)
#endif

#define BV_UNREACHABLE() ::belvedere::detail::checkFailed("unreachable", __FILE__, __LINE__)
