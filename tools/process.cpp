// SPDX-License-Identifier: Apache-2.0
#include "tools/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/unique_fd.h"

namespace belvedere::tools {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr Clock::time_point kNever = Clock::time_point::max();
constexpr size_t kReadBytes = 64 * 1024;
constexpr milliseconds kDrainTime{100};  ///< what is still in the pipe when the leader has ended
constexpr milliseconds kPollWithoutPidfd{20};  ///< kernels older than 5.3

std::string errorText(int error) {
    return std::system_category().message(error);
}

struct Pipe {
    UniqueFd read;
    UniqueFd write;
};

Result<Pipe> makePipe() {
    std::array<int, 2> fds{};
    if (pipe2(fds.data(), O_CLOEXEC) != 0) {
        return fail(ErrorCode::Io, "pipe for a child process: {}", errorText(errno));
    }
    return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::vector<char*> pointersTo(const std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    pointers.reserve(strings.size() + 1);
    for (const std::string& text : strings) {
        pointers.push_back(
            const_cast<char*>(text.c_str()));  // the C interface does not write to them
    }
    pointers.push_back(nullptr);
    return pointers;
}

/// Becomes readable when the process has ended; -1 before Linux 5.3. glibc 2.36 declares its
/// function without C linkage, hence the plain call.
int openPidfd(pid_t pid) {
    return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

/// posix_spawn and its two option objects: safe in a program with threads, unlike code between fork
/// and exec.
class Spawner {
  public:
    Spawner() {
        posix_spawn_file_actions_init(&actions_);
        posix_spawnattr_init(&attributes_);
    }

    ~Spawner() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }

    Spawner(const Spawner&) = delete;
    Spawner& operator=(const Spawner&) = delete;

    Result<pid_t> spawn(const ProcessSpec& spec, int output_fd) {
        posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions_, output_fd, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions_, output_fd, STDERR_FILENO);
        posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
        if (!spec.working_dir.empty()) {
            posix_spawn_file_actions_addchdir_np(&actions_, spec.working_dir.c_str());
        }
        sigset_t signals;
        sigemptyset(&signals);
        posix_spawnattr_setsigmask(&attributes_, &signals);
        sigfillset(&signals);
        posix_spawnattr_setsigdefault(&attributes_, &signals);
        posix_spawnattr_setflags(
            &attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

        std::vector<char*> argv = pointersTo(spec.argv);
        std::vector<char*> environment;
        if (spec.environment) {
            environment = pointersTo(*spec.environment);
        }
        pid_t pid = 0;
        const int error = posix_spawnp(&pid, argv[0], &actions_, &attributes_, argv.data(),
                                       spec.environment ? environment.data() : environ);
        if (error != 0) {
            return fail(error == ENOENT ? ErrorCode::NotFound : ErrorCode::Io, "running {}{}: {}",
                        spec.argv[0],
                        spec.working_dir.empty() ? "" : " in " + spec.working_dir.string(),
                        errorText(error));
        }
        return pid;
    }

  private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

/// A running child. It is reaped last, so that its process group id can not become somebody else's
/// while we signal it.
///
///   Running --leader exits--> Draining --output stays open--> Ending --grace--> Killed
///   Running --stop or time limit------------------------------^
/// Output at its end and the leader's exit lead from every state to the end.
class RunningProcess {
  public:
    RunningProcess(pid_t pid, UniqueFd output, const ProcessSpec& spec, const OutputSink& sink)
        : pid_(pid), output_(std::move(output)), pidfd_(openPidfd(pid)), spec_(spec), sink_(sink) {}

    /// Until nothing of it is left. `wake_fd` becomes readable when the process shall stop.
    ProcessEnd waitForEnd(int wake_fd) {
        if (spec_.time_limit.count() > 0) {
            deadline_ = start_ + spec_.time_limit;
        }
        while (!(has_exited_ && !output_.ok()) && state_ != State::Killed) {
            waitForNews(wake_fd);
            noteExit();
            if (Clock::now() >= deadline_) {
                deadlinePassed();
            }
        }
        return reap();
    }

    [[nodiscard]] bool wasStopped() const { return was_stopped_; }

  private:
    enum class State { Running, Draining, Ending, Killed };

    void waitForNews(int wake_fd) {
        std::array<pollfd, 3> waits{
            {{output_.get(), POLLIN, 0},  // a negative fd is left out by poll
             {has_exited_ ? -1 : pidfd_.get(), POLLIN, 0},
             {was_stopped_ ? -1 : wake_fd, POLLIN, 0}}};
        if (poll(waits.data(), waits.size(), timeoutMs()) < 0) {
            return;  // EINTR
        }
        if (waits[0].revents != 0) {
            readOutput();
        }
        if (waits[2].revents != 0) {
            was_stopped_ = true;
            beginEnding();
        }
    }

    [[nodiscard]] int timeoutMs() const {
        milliseconds wait{-1};
        if (deadline_ != kNever) {
            const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
            wait = std::clamp(left, milliseconds(0), milliseconds(3'600'000));
        }
        if (!pidfd_.ok() && !has_exited_) {
            wait = wait.count() < 0 ? kPollWithoutPidfd : std::min(wait, kPollWithoutPidfd);
        }
        return static_cast<int>(wait.count());
    }

    void readOutput() {
        const ssize_t n = read(output_.get(), buffer_.data(), buffer_.size());
        if (n > 0) {
            sink_(std::string_view(buffer_.data(), static_cast<size_t>(n)));
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
            output_.reset();
        }
    }

    void noteExit() {
        siginfo_t info{};
        if (has_exited_ ||
            waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0) {
            return;
        }
        has_exited_ = true;
        if (state_ == State::Running && output_.ok()) {
            state_ = State::Draining;
            deadline_ = Clock::now() + kDrainTime;
        }
    }

    void deadlinePassed() {
        switch (state_) {
            case State::Running:
                is_timed_out_ = true;
                beginEnding();
                break;
            case State::Draining:  // something of the group holds the pipe open
                left_children_ = true;
                beginEnding();
                break;
            case State::Ending:
                kill(-pid_, SIGKILL);
                state_ = State::Killed;
                break;
            case State::Killed:
                break;
        }
    }

    void beginEnding() {
        if (state_ != State::Ending && state_ != State::Killed) {
            kill(-pid_, SIGTERM);
            kill(-pid_, SIGCONT);  // a stopped process would not see it
            state_ = State::Ending;
            deadline_ = Clock::now() + spec_.grace;
        }
    }

    ProcessEnd reap() {
        // Children that closed their output go too; the leader still holds the group's id, as a
        // zombie or alive.
        kill(-pid_, SIGKILL);
        int status = 0;
        while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        ProcessEnd end;
        end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        end.is_timed_out = is_timed_out_;
        end.left_children = left_children_;
        end.duration = std::chrono::duration_cast<milliseconds>(Clock::now() - start_);
        return end;
    }

    const Clock::time_point start_ = Clock::now();
    const pid_t pid_;
    UniqueFd output_;
    UniqueFd pidfd_;
    const ProcessSpec& spec_;
    const OutputSink& sink_;
    State state_ = State::Running;
    Clock::time_point deadline_ = kNever;  ///< of the current state
    bool has_exited_ = false;
    bool was_stopped_ = false;
    bool is_timed_out_ = false;
    bool left_children_ = false;
    std::vector<char> buffer_ = std::vector<char>(kReadBytes);
};

bool looksSecret(std::string_view name) {
    std::string upper(name);
    std::ranges::transform(upper, upper.begin(), [](char c) {
        return static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    });
    constexpr std::array kMarks = {"TOKEN",      "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE",
                                   "CREDENTIAL", "APIKEY", "_KEY",     "PRIVATE"};
    return std::ranges::any_of(
        kMarks, [&](const char* mark) { return upper.find(mark) != std::string::npos; });
}

}  // namespace

Result<ProcessEnd> runProcess(const ProcessSpec& spec,
                              const OutputSink& on_output,
                              std::stop_token stop) {
    if (spec.argv.empty() || spec.argv[0].empty()) {
        return fail(ErrorCode::InvalidArgument, "no program to run");
    }
    if (stop.stop_requested()) {
        return fail(ErrorCode::Cancelled, "{}: stopped before it ran", spec.argv[0]);
    }
    Pipe output = BV_TRY(makePipe());
    const UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake.ok()) {
        return fail(ErrorCode::Io, "running {}: {}", spec.argv[0], errorText(errno));
    }
    const pid_t pid = BV_TRY(Spawner().spawn(spec, output.write.get()));
    output.write.reset();
    RunningProcess process(pid, std::move(output.read), spec, on_output);
    // The callback only wakes the loop below: the group is signalled by the thread that reaps it,
    // never after.
    const std::stop_callback on_stop(stop, [&] { eventfd_write(wake.get(), 1); });
    const ProcessEnd end = process.waitForEnd(wake.get());
    if (process.wasStopped()) {
        return fail(ErrorCode::Cancelled, "{}: stopped", spec.argv[0]);
    }
    return end;
}

ScrubbedEnvironment scrubbedEnvironment() {
    ScrubbedEnvironment result;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view variable(*entry);
        const std::string_view name = variable.substr(0, variable.find('='));
        if (looksSecret(name)) {
            result.removed.emplace_back(name);
        } else {
            result.variables.emplace_back(variable);
        }
    }
    return result;
}

}  // namespace belvedere::tools
