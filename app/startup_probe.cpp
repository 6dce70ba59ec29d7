// SPDX-License-Identifier: Apache-2.0
#include "app/startup_probe.h"

#include <QCoreApplication>
#include <QTimer>
#include <cstdio>
#include <fstream>

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

}  // namespace

void reportStartup(std::chrono::steady_clock::time_point start) {
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    fmt::print("usable_ms={:.0f}\n", elapsed.count());
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
