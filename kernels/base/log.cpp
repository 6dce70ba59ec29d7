// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/log.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <filesystem>
#include <mutex>

namespace belvedere {
namespace {

constexpr size_t kMaxRecentLines = 500;
constexpr std::uintmax_t kMaxLogFileBytes = 4 << 20;

struct LogState {
    std::mutex mutex;
    LogConfig config;
    std::FILE* file = nullptr;
    std::deque<std::string> recent;
};

LogState& state() {
    static LogState* const kState =
        new LogState;  // never destroyed: threads may log while the program ends
    return *kState;
}

const char* levelName(LogLevel level) {
    switch (level) {
        case LogLevel::Trace:
            return "trace";
        case LogLevel::Debug:
            return "debug";
        case LogLevel::Info:
            return "info";
        case LogLevel::Warn:
            return "warn";
        case LogLevel::Error:
            return "error";
    }
    return "?";
}

}  // namespace

void configureLog(const LogConfig& config) {
    LogState& log = state();
    const std::lock_guard lock(log.mutex);
    log.config = config;
    if (log.file != nullptr) {
        std::fclose(log.file);
        log.file = nullptr;
    }
    if (config.file.empty()) {
        return;
    }
    std::error_code ignored;
    if (std::filesystem::file_size(config.file, ignored) > kMaxLogFileBytes && !ignored) {
        std::filesystem::rename(config.file, config.file + ".1", ignored);
    }
    log.file = std::fopen(config.file.c_str(), "ae");
    if (log.file == nullptr) {
        fmt::print(stderr, "belvedere: no log file: {} cannot be opened\n", config.file);
    }
}

LogLevel logLevelFromEnvironment(LogLevel fallback) {
    const char* name = std::getenv("BV_LOG");
    for (const LogLevel level :
         {LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error}) {
        if (name != nullptr && std::string_view(name) == levelName(level)) {
            return level;
        }
    }
    return fallback;
}

bool logEnabled(LogLevel level) {
#ifdef NDEBUG
    return level > LogLevel::Trace;
#else
    (void)level;
    return true;
#endif
}

void logLine(LogLevel level, std::string_view area, std::string_view text) {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm utc{};
    gmtime_r(&now, &utc);
    char stamp[32];
    std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
    std::string line = fmt::format("{} {:5} {}: {}", stamp, levelName(level), area, text);

    LogState& log = state();
    const std::lock_guard lock(log.mutex);
    if (level >= log.config.stderr_level) {
        fmt::print(stderr, "{}\n", line);
    }
    if (log.file != nullptr && level >= LogLevel::Info) {
        fmt::print(log.file, "{}\n", line);
        std::fflush(log.file);
    }
    log.recent.push_back(std::move(line));
    if (log.recent.size() > kMaxRecentLines) {
        log.recent.pop_front();
    }
}

std::vector<std::string> recentLogLines() {
    LogState& log = state();
    const std::lock_guard lock(log.mutex);
    return {log.recent.begin(), log.recent.end()};
}

}  // namespace belvedere
