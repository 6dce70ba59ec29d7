// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/run_command.h"

#include <array>
#include <csignal>
#include <cstring>

#include "tools/files/text.h"
#include "tools/process.h"
#include "tools/shell/output_capture.h"
#include "tools/tool_input.h"

namespace belvedere::tools {
namespace {

constexpr int64_t kDefaultSeconds = 120;
constexpr int64_t kMaxSeconds = 600;
constexpr size_t kMaxCommandBytes = 100 * 1024;  // an argument of execve holds 128 KiB
constexpr size_t kMaxLiveBytes = 1 << 20;        // passed on to the window

struct RunCommandInput {
    std::string command;
    int64_t timeout_seconds = kDefaultSeconds;
};

Fields<RunCommandInput> runCommandFields() {
    using In = RunCommandInput;
    return {
        {&In::command,
         {.name = "command",
          .description = "The command line, for bash.",
          .is_required = true,
          .aliases = {"cmd", "commands", "script", "bash"}}},
        {&In::timeout_seconds,
         {.name = "timeout_seconds",
          .description = "Ends the command after this many seconds. Default: 120, maximum: 600.",
          .aliases = {"timeout", "timeout_s", "time_limit"},
          .min = 1,
          .max = kMaxSeconds}}};
}

/// Our environment for a command: no secrets, and nothing that waits for a person.
ScrubbedEnvironment commandEnvironment() {
    ScrubbedEnvironment environment = scrubbedEnvironment();
    constexpr std::array<std::string_view, 4> kSet = {"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat",
                                                      "GIT_TERMINAL_PROMPT=0"};
    for (const std::string_view variable : kSet) {
        const std::string_view start = variable.substr(0, variable.find('=') + 1);
        std::erase_if(environment.variables,
                      [&](const std::string& old) { return old.starts_with(start); });
        environment.variables.emplace_back(variable);
    }
    return environment;
}

/// Passes output on in whole characters, up to a bound.
class LiveOutput {
  public:
    explicit LiveOutput(const std::function<void(std::string_view)>& sink) : sink_(sink) {}

    void append(std::string_view bytes) {
        if (!sink_ || n_passed_ >= kMaxLiveBytes) {
            return;
        }
        pending_ += bytes;
        const size_t n = completeUtf8Bytes(pending_);
        pass(n);
        if (n_passed_ >= kMaxLiveBytes) {
            sink_("\n[more output follows; it is shown no further]\n");
        }
    }

    void finish() {
        if (sink_ && n_passed_ < kMaxLiveBytes) {
            pass(pending_.size());
        }
    }

  private:
    void pass(size_t n) {
        if (n > 0) {
            sink_(showText(std::string_view(pending_).substr(0, n)).text);
            n_passed_ += n;
            pending_.erase(0, n);
        }
    }

    const std::function<void(std::string_view)>& sink_;
    std::string pending_;
    size_t n_passed_ = 0;
};

class RunCommand : public TypedTool<RunCommandInput> {
  public:
    explicit RunCommand(std::shared_ptr<const Workspace> workspace)
        : TypedTool(runCommandFields()), workspace_(std::move(workspace)) {}

    [[nodiscard]] std::string name() const override { return "run_command"; }

    [[nodiscard]] std::string description() const override {
        return "Runs a command with bash in the workspace folder, without a terminal and with "
               "nothing on standard "
               "input. Returns the exit code and the output (standard output and error together; "
               "of more than 32 KiB "
               "the first and last 16 KiB, the rest goes to a file that is named). Ends after 120 "
               "seconds unless "
               "timeout_seconds says otherwise (at most 600). Processes left in the background are "
               "ended with it. "
               "Environment variables whose names look like secrets are not passed on.";
    }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Execute; }

    [[nodiscard]] bool alwaysAsks() const override { return true; }

  protected:
    [[nodiscard]] std::string titleOf(const RunCommandInput& input) const override {
        const std::string line = showText(input.command.substr(0, input.command.find('\n'))).text;
        const std::string_view cut = cutText(line, 80);
        return fmt::format("Run `{}{}`", cut, cut.size() < input.command.size() ? " ..." : "");
    }

    [[nodiscard]] std::string subjectOf(const RunCommandInput& input) const override {
        return showText(input.command).text;
    }

    [[nodiscard]] std::string previewOf(const RunCommandInput& input) const override {
        return showText(input.command).text;
    }

    Result<agent::ToolOutput> runTyped(const RunCommandInput& input,
                                       const agent::ToolContext& context) override;

  private:
    std::shared_ptr<const Workspace> workspace_;  ///< immutable
};

std::string describeEnd(const ProcessEnd& end, int64_t timeout_seconds) {
    const double seconds = static_cast<double>(end.duration.count()) / 1000.0;
    std::string text;
    if (end.is_timed_out) {
        text = fmt::format("[ended: still running after {} seconds]\n", timeout_seconds);
    } else if (end.signal != 0) {
        const char* signal = sigabbrev_np(end.signal);
        text = fmt::format("[ended by signal {} (SIG{}) after {:.1f} s]\n", end.signal,
                           signal == nullptr ? "?" : signal, seconds);
    } else {
        text = fmt::format("[exit code {}, {:.1f} s]\n", end.exit_code, seconds);
    }
    if (end.left_children) {
        text += "[processes it left in the background were ended]\n";
    }
    return text;
}

Result<agent::ToolOutput> RunCommand::runTyped(const RunCommandInput& input,
                                               const agent::ToolContext& context) {
    if (input.command.find_first_not_of(" \t\r\n") == std::string::npos) {
        return fail(ErrorCode::InvalidArgument, "run_command: command: is empty");
    }
    if (input.command.size() > kMaxCommandBytes || input.command.find('\0') != std::string::npos) {
        return fail(ErrorCode::InvalidArgument,
                    "run_command: command: has a NUL byte or more than {} bytes; write a script "
                    "with write_file",
                    kMaxCommandBytes);
    }
    ScrubbedEnvironment environment = commandEnvironment();
    const ProcessSpec spec = {.argv = {"bash", "-c", input.command},
                              .working_dir = workspace_->root(),
                              .environment = std::move(environment.variables),
                              .time_limit = std::chrono::seconds(input.timeout_seconds)};
    OutputCapture capture;
    LiveOutput live(context.on_output);
    const ProcessEnd end = BV_TRY(runProcess(
        spec,
        [&](std::string_view bytes) {
            capture.append(bytes);
            live.append(bytes);
        },
        context.stop));
    live.finish();

    agent::ToolOutput output;
    output.text = capture.text();
    if (!output.text.empty() && !output.text.ends_with('\n')) {
        output.text += '\n';
    }
    output.text += describeEnd(end, input.timeout_seconds);
    output.is_error = end.is_timed_out || end.exit_code != 0;
    output.data = {{"command", showText(input.command).text},
                   {"exit_code", end.exit_code},
                   {"signal", end.signal},
                   {"is_timed_out", end.is_timed_out},
                   {"duration_ms", end.duration.count()},
                   {"n_output_bytes", capture.nBytes()},
                   {"output_file", capture.spillFile().string()},
                   {"removed_variables", environment.removed}};
    return output;
}

}  // namespace

std::unique_ptr<agent::Tool> makeRunCommand(std::shared_ptr<const Workspace> workspace) {
    return std::make_unique<RunCommand>(std::move(workspace));
}

}  // namespace belvedere::tools
