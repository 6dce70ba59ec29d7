// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measures the start of the window: --startup-probe. GUI thread only.

#include <chrono>

namespace belvedere::app {

/// Prints the time since `start` (the beginning of main) and of the process before it, then, after
/// two seconds of rest, the resident memory, and ends the program.
void reportStartup(std::chrono::steady_clock::time_point start);

}  // namespace belvedere::app
