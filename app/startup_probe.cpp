// SPDX-License-Identifier: Apache-2.0
#include "app/startup_probe.h"

#include <QCoreApplication>
#include <QTimer>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

namespace belvedere::app {

namespace {

using namespace std::chrono_literals;

struct Memory {
    double resident_mb = 0;
    double private_mb = 0;  ///< without what is mapped from files and shared
};

Memory residentMemory() {
    // /proc/self/statm, proc(5): size, resident, shared, in pages.
    std::ifstream file("/proc/self/statm");
    size_t n_size = 0;
    size_t n_resident = 0;
    size_t n_shared = 0;
    file >> n_size >> n_resident >> n_shared;
    const double page_mb = static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
    return {static_cast<double>(n_resident) * page_mb,
            static_cast<double>(n_resident - n_shared) * page_mb};
}

/// Milliseconds since the process began, with the loading of its libraries; in steps of 10.
double sinceExec() {
    // /proc/self/stat, proc(5): field 22 is the start in clock ticks after boot; the name, field 2,
    // may hold spaces and ends with the last parenthesis.
    std::ifstream file("/proc/self/stat");
    std::string stat;
    std::getline(file, stat);
    std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
    std::string field;
    for (int i = 3; i <= 22 && fields >> field; ++i) {
    }
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const double started = std::strtod(field.c_str(), nullptr);
    return (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9 -
            started / static_cast<double>(sysconf(_SC_CLK_TCK))) *
           1000;
}

}  // namespace

void reportStartup(std::chrono::steady_clock::time_point start) {
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    fmt::print("usable_ms={:.0f}\nfrom_main_ms={:.0f}\n", sinceExec(), elapsed.count());
    std::fflush(stdout);
    QTimer::singleShot(2s, qApp, [] {
        const Memory memory = residentMemory();
        fmt::print("resident_mb={:.1f}\nprivate_mb={:.1f}\n", memory.resident_mb,
                   memory.private_mb);
        std::fflush(stdout);
        QCoreApplication::quit();
    });
}

}  // namespace belvedere::app
