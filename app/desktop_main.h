// SPDX-License-Identifier: Apache-2.0
#pragma once

// The window as a program: options, log, Qt, Application, event loop.

namespace belvedere::app {

/// Exit code: 0 done, 1 failed, 2 wrong usage.
int runDesktop(int argc, char** argv);

}  // namespace belvedere::app
