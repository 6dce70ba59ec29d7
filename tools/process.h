// SPDX-License-Identifier: Apache-2.0
#pragma once

// Child processes: started without a shell in a session and process group of their own, without a
// terminal and with nothing on standard input; output streamed; the whole group ended on stop, at a
// time limit, and when the leader is done. A process that starts a session of its own leaves the
// group and is not ended (a sandbox is the place for that). Any thread; runProcess blocks its
// caller.
//
//     const ProcessEnd end = BV_TRY(runProcess({.argv = {"git", "--version"}}, sink, stop));

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace belvedere::tools {

struct ProcessSpec {
    std::vector<std::string> argv;           ///< argv[0] is looked up in PATH unless it has a '/'
    std::filesystem::path working_dir = {};  ///< empty: ours
    std::optional<std::vector<std::string>> environment =
        std::nullopt;                         ///< "NAME=value"; nullopt: ours
    std::chrono::milliseconds time_limit{0};  ///< 0: none
    std::chrono::milliseconds grace{2000};    ///< between SIGTERM and SIGKILL
};

struct ProcessEnd {
    int exit_code = -1;  ///< -1: ended by a signal
    int signal = 0;      ///< 0: it exited
    bool is_timed_out = false;
    bool left_children =
        false;  ///< processes of its group were still running at its end, and were ended
    std::chrono::milliseconds duration{0};
};

/// Gets standard output and standard error as they come, in one order; pieces may end within a
/// character.
using OutputSink = std::function<void(std::string_view)>;

/// Runs it to its end. Errors: InvalidArgument (nothing to run), NotFound (no such program or
/// folder), Io; Cancelled when `stop` ended it. A non-zero exit code is no error here.
Result<ProcessEnd> runProcess(const ProcessSpec& spec,
                              const OutputSink& on_output,
                              std::stop_token stop);

/// Our environment without variables that look like secrets by their name (token, secret, password,
/// key, credential).
struct ScrubbedEnvironment {
    std::vector<std::string> variables;  ///< "NAME=value"
    std::vector<std::string> removed;    ///< names
};

[[nodiscard]] ScrubbedEnvironment scrubbedEnvironment();

}  // namespace belvedere::tools
