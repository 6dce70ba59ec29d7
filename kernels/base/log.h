// SPDX-License-Identifier: Apache-2.0
#pragma once

// One log for the whole program: BV_LOG(LogLevel::Info, "inference", "loaded file={} ms={}", path,
// ms). One line an event, key=value. Never prompts, answers, file contents or command output above
// Trace. Any thread; not in kernels or the token loop. Set up by configureLog before threads start.

#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace belvedere {

enum class LogLevel { Trace, Debug, Info, Warn, Error };

struct LogConfig {
    LogLevel stderr_level = LogLevel::Warn;  ///< BV_LOG=trace|debug|info|warn|error sets it
    std::string file;                        ///< empty: none; else rotated once at kMaxLogFileBytes
};

/// Call once from main. A file that cannot be opened is reported on standard error and left out.
void configureLog(const LogConfig& config);

/// The level named by the environment variable BV_LOG, or `fallback`.
[[nodiscard]] LogLevel logLevelFromEnvironment(LogLevel fallback);

[[nodiscard]] bool logEnabled(LogLevel level);

/// Appends one line to every sink. Prefer BV_LOG.
void logLine(LogLevel level, std::string_view area, std::string_view text);

/// The newest lines, oldest first, for the window's "copy log" and bug reports.
[[nodiscard]] std::vector<std::string> recentLogLines();

}  // namespace belvedere

#define BV_LOG(level, area, ...)                                           \
    do {                                                                   \
        if (::belvedere::logEnabled(level)) {                              \
            ::belvedere::logLine(level, area, ::fmt::format(__VA_ARGS__)); \
        }                                                                  \
    } while (false)
