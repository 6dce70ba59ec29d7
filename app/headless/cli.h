// SPDX-License-Identifier: Apache-2.0
#pragma once

// The terminal program: finds the command, runs it, turns its error into one line and an exit code.
// Exit codes: 0 done, 1 failed, 2 wrong usage, 130 cancelled.

#include <stop_token>
#include <string>
#include <vector>

#include "app/headless/arguments.h"
#include "kernels/base/result.h"

namespace belvedere::app {

/// Sets up the log and the signals, then runs the command that `words` (argv without the program)
/// name.
int runCommandLine(const std::vector<std::string>& words);

// The commands. Each writes its result to standard output and what it is doing to standard error.
// `stop` is requested by Ctrl-C. Errors: InvalidArgument is wrong usage (exit code 2).
Result<void> runAsk(const Arguments& arguments, std::stop_token stop);
Result<void> runChat(const Arguments& arguments, std::stop_token stop);
Result<void> runIngest(const Arguments& arguments, std::stop_token stop);
Result<void> runSessions(const Arguments& arguments, std::stop_token stop);
Result<void> runModels(const Arguments& arguments, std::stop_token stop);
Result<void> runDoctor(const Arguments& arguments, std::stop_token stop);
Result<void> runBench(const Arguments& arguments, std::stop_token stop);
Result<void> runTokens(const Arguments& arguments, std::stop_token stop);
Result<void> runRender(const Arguments& arguments, std::stop_token stop);
Result<void> runLogits(const Arguments& arguments, std::stop_token stop);

/// Everything on standard input. Errors: Io.
[[nodiscard]] Result<std::string> readStandardInput();
/// A whole file. Errors: NotFound, Io.
[[nodiscard]] Result<std::string> readTextFile(const std::string& path);

}  // namespace belvedere::app
