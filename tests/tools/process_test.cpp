// SPDX-License-Identifier: Apache-2.0
#include "tools/process.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"
#include "tools/unique_fd.h"

namespace belvedere::tools {
namespace {

using namespace std::chrono_literals;

struct Outcome {
    Result<ProcessEnd> end;
    std::string output;
};

Outcome run(const ProcessSpec& spec, std::stop_token stop = {}) {
    std::string output;
    Result<ProcessEnd> end =
        runProcess(spec, [&](std::string_view bytes) { output += bytes; }, stop);
    return {std::move(end), std::move(output)};
}

ProcessSpec bash(const std::string& script) {
    return {.argv = {"bash", "-c", script}};
}

/// Gone, or dead and only not yet reaped by its new parent.
bool isDead(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string stat;
    std::getline(file, stat);
    const size_t name_end = stat.rfind(") ");
    return name_end == std::string::npos || stat[name_end + 2] == 'Z' || stat[name_end + 2] == 'X';
}

void expectDies(const std::string& pid) {
    ASSERT_FALSE(pid.empty());
    for (int i = 0; i < 500 && !isDead(pid); ++i) {
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(isDead(pid)) << pid;
}

std::string firstLine(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

TEST(Process, ReportsOutputAndExitCode) {
    const Outcome result = run(bash("echo out; echo err >&2; exit 3"));
    ASSERT_TRUE(result.end.has_value());
    EXPECT_EQ(result.output, "out\nerr\n");
    EXPECT_EQ(result.end->exit_code, 3);
    EXPECT_EQ(result.end->signal, 0);
    EXPECT_FALSE(result.end->left_children);
}

TEST(Process, PassesArgumentsWithoutAShell) {
    EXPECT_EQ(run({.argv = {"printf", "%s|", "a b", "$HOME", "*", ""}}).output, "a b|$HOME|*||");
}

TEST(Process, ReportsTheSignalThatEndedIt) {
    const Outcome result = run(bash("kill -SEGV $$"));
    ASSERT_TRUE(result.end.has_value());
    EXPECT_EQ(result.end->exit_code, -1);
    EXPECT_EQ(result.end->signal, SIGSEGV);
}

TEST(Process, NamesWhatCanNotBeRun) {
    const Outcome missing = run({.argv = {"no-such-program-belvedere"}});
    EXPECT_EQ(missing.end.error().code, ErrorCode::NotFound);
    EXPECT_NE(missing.end.error().message.find("no-such-program-belvedere"), std::string::npos);
    EXPECT_EQ(run({.argv = {"true"}, .working_dir = "/no/such/folder"}).end.error().code,
              ErrorCode::NotFound);
    EXPECT_EQ(run({}).end.error().code, ErrorCode::InvalidArgument);
}

TEST(Process, UsesFolderAndEnvironment) {
    const belvedere::testing::TempDir dir;
    const Outcome result = run({.argv = {"/bin/sh", "-c", "pwd; echo $ONLY; echo [$HOME]"},
                                .working_dir = dir.path(),
                                .environment = std::vector<std::string>{"ONLY=this"}});
    EXPECT_EQ(result.output, dir.path().string() + "\nthis\n[]\n");
}

TEST(Process, HasNoInputNoTerminalAndNoOtherFiles) {
    EXPECT_EQ(run(bash("cat; readlink /proc/self/fd/0")).output, "/dev/null\n");
    EXPECT_EQ(run(bash("(: < /dev/tty) 2> /dev/null && echo has || echo none")).output, "none\n");
    // 3 is the folder that ls itself reads.
    const UniqueFd leak(open("/dev/zero", O_RDONLY));
    EXPECT_EQ(run({.argv = {"ls", "/proc/self/fd"}}).output, "0\n1\n2\n3\n");
}

TEST(Process, DeliversAllOfALargeOutput) {
    const Outcome result = run(bash("head -c 5000000 /dev/zero | tr '\\0' x"));
    EXPECT_EQ(result.output.size(), 5'000'000U);
    EXPECT_EQ(std::ranges::count(result.output, 'x'), 5'000'000);
}

TEST(Process, StopEndsItWithItsGrandchildren) {
    std::stop_source stop;
    std::string output;
    const Result<ProcessEnd> end = runProcess(
        bash("(sleep 1000 & echo $!; wait) & echo $!; wait"),
        [&](std::string_view bytes) {
            output += bytes;
            if (std::ranges::count(output, '\n') == 2) {
                stop.request_stop();
            }
        },
        stop.get_token());
    ASSERT_FALSE(end.has_value());
    EXPECT_EQ(end.error().code, ErrorCode::Cancelled);
    expectDies(firstLine(output));
    expectDies(firstLine(output.substr(output.find('\n') + 1)));
}

TEST(Process, StopFromAnotherThreadWakesASilentProcess) {
    std::stop_source stop;
    const std::jthread stopper([&] { stop.request_stop(); });
    EXPECT_EQ(run(bash("sleep 1000"), stop.get_token()).end.error().code, ErrorCode::Cancelled);
    EXPECT_EQ(run(bash("true"), stop.get_token()).end.error().code, ErrorCode::Cancelled);
}

TEST(Process, KillsWhatIgnoresTheFirstSignal) {
    ProcessSpec spec = bash("trap '' TERM; echo $$; while true; do sleep 0.01; done");
    spec.grace = 100ms;
    std::stop_source stop;
    std::string output;
    const Result<ProcessEnd> end = runProcess(
        spec,
        [&](std::string_view bytes) {
            output += bytes;
            stop.request_stop();
        },
        stop.get_token());
    EXPECT_EQ(end.error().code, ErrorCode::Cancelled);
    expectDies(firstLine(output));
}

TEST(Process, TimeLimitEndsItAndKeepsItsOutput) {
    ProcessSpec spec = bash("echo before; sleep 1000");
    spec.time_limit = 300ms;
    const Outcome result = run(spec);
    ASSERT_TRUE(result.end.has_value());
    EXPECT_TRUE(result.end->is_timed_out);
    EXPECT_EQ(result.end->signal, SIGTERM);
    EXPECT_EQ(result.output, "before\n");
}

TEST(Process, EndsWhatWasLeftInTheBackground) {
    const Outcome holds_output = run(bash("sleep 1000 & echo $!"));
    ASSERT_TRUE(holds_output.end.has_value());
    EXPECT_EQ(holds_output.end->exit_code, 0);
    EXPECT_TRUE(holds_output.end->left_children);
    expectDies(firstLine(holds_output.output));
    const Outcome silent = run(bash("sleep 1000 > /dev/null 2>&1 & echo $!"));
    expectDies(firstLine(silent.output));
}

TEST(Process, WaitsForAProcessThatClosedItsOutput) {
    const Outcome result = run(bash("exec > /dev/null 2>&1; sleep 0.2; exit 7"));
    ASSERT_TRUE(result.end.has_value());
    EXPECT_EQ(result.end->exit_code, 7);
}

TEST(Process, EnvironmentLosesSecretsByName) {
    setenv("BELVEDERE_TEST_TOKEN", "x", 1);
    setenv("belvedere_test_api_key", "x", 1);
    setenv("BELVEDERE_TEST_COLOUR", "blue", 1);
    const ScrubbedEnvironment scrubbed = scrubbedEnvironment();
    const auto has = [](const std::vector<std::string>& list, const char* text) {
        return std::ranges::find(list, text) != list.end();
    };
    EXPECT_TRUE(has(scrubbed.removed, "BELVEDERE_TEST_TOKEN"));
    EXPECT_TRUE(has(scrubbed.removed, "belvedere_test_api_key"));
    EXPECT_TRUE(has(scrubbed.variables, "BELVEDERE_TEST_COLOUR=blue"));
    EXPECT_FALSE(has(scrubbed.variables, "BELVEDERE_TEST_TOKEN=x"));
}

}  // namespace
}  // namespace belvedere::tools
