// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/run_command.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"
#include "tools/files/text.h"
#include "tools/shell/output_capture.h"

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;
using testing::Json;

class RunCommand : public ::testing::Test {
  protected:
    Result<agent::ToolOutput> run(const Json& arguments) {
        return testing::call(*tool_, arguments);
    }

    belvedere::testing::TempDir dir_;
    std::unique_ptr<agent::Tool> tool_ = makeRunCommand(testing::openWorkspace(dir_));
};

TEST_F(RunCommand, RunsInTheWorkspace) {
    const auto result = run({{"command", "pwd"}});
    ASSERT_TRUE(result.has_value());
    EXPECT_TRUE(result->text.starts_with(dir_.path().string() + "\n[exit code 0, "))
        << result->text;
    EXPECT_FALSE(result->is_error);
    EXPECT_EQ(result->data["exit_code"], 0);
}

TEST_F(RunCommand, AlwaysAsksAndShowsTheCommand) {
    const Json arguments = {{"cmd", "rm -rf x\necho done"}};
    EXPECT_TRUE(tool_->alwaysAsks());
    EXPECT_EQ(tool_->defaultVerdict(arguments), agent::Verdict::Ask);
    EXPECT_EQ(tool_->title(arguments), "Run `rm -rf x ...`");
    EXPECT_EQ(tool_->subject(arguments), "rm -rf x\necho done");
    EXPECT_EQ(tool_->preview(arguments), "rm -rf x\necho done");
}

TEST_F(RunCommand, AFailedCommandIsAResult) {
    const auto result = run({{"command", "echo no >&2; exit 4"}});
    ASSERT_TRUE(result.has_value());
    EXPECT_TRUE(result->is_error);
    EXPECT_TRUE(result->text.starts_with("no\n[exit code 4")) << result->text;
    const auto killed = run({{"command", "kill -9 $$"}});
    EXPECT_NE(killed->text.find("[ended by signal 9 (SIGKILL)"), std::string::npos) << killed->text;
    EXPECT_EQ(run({{"command", "  "}}).error().message, "run_command: command: is empty");
}

TEST_F(RunCommand, EndsAtItsTimeLimit) {
    const auto result = run({{"command", "echo start; sleep 1000"}, {"timeout", "1"}});
    ASSERT_TRUE(result.has_value());
    EXPECT_TRUE(result->is_error);
    EXPECT_EQ(result->text, "start\n[ended: still running after 1 seconds]\n");
    EXPECT_EQ(run({{"command", "true"}, {"timeout", 601}}).error().message,
              "run_command: timeout_seconds: 601 is outside 1 to 600");
}

TEST_F(RunCommand, StreamsWholeCharacters) {
    agent::ToolContext context;
    std::string live;
    bool is_valid = true;
    context.on_output = [&](std::string_view text) {
        is_valid = is_valid && isUtf8(text);
        live += text;
    };
    const auto result = tool_->run(
        {{"command", "printf '\\xe2'; sleep 0.2; printf '\\x82\\xac\\xff\\xc3'"}}, context);
    EXPECT_EQ(live, "€\\xFF\\xC3");
    EXPECT_TRUE(is_valid);
    EXPECT_TRUE(result->text.starts_with("€\\xFF\\xC3\n[exit code 0"));
}

TEST_F(RunCommand, KeepsBothEndsOfALongOutputAndSpillsAll) {
    const auto result = run({{"command", "seq 1 100000"}});
    ASSERT_TRUE(result.has_value());
    EXPECT_LT(result->text.size(), 34U * 1024);
    EXPECT_TRUE(result->text.starts_with("1\n2\n3\n"));
    EXPECT_NE(result->text.find("\n99999\n100000\n[exit code 0"), std::string::npos);
    EXPECT_NE(result->text.find(" of 588895 bytes left out; all of it is in "), std::string::npos);
    const fs::path spilled = result->data["output_file"].get<std::string>();
    EXPECT_NE(result->text.find(spilled.string()), std::string::npos);
    ASSERT_EQ(fs::file_size(spilled), 588895U);
    EXPECT_EQ(fs::status(spilled).permissions(), fs::perms(0600));
    std::ifstream file(spilled);
    std::string line;
    for (int i = 1; i <= 100000; ++i) {
        ASSERT_TRUE(std::getline(file, line));
        ASSERT_EQ(line, std::to_string(i));
    }
    fs::remove(spilled);
}

TEST_F(RunCommand, StopEndsIt) {
    std::stop_source stop;
    agent::ToolContext context;
    context.stop = stop.get_token();
    context.on_output = [&](std::string_view) { stop.request_stop(); };
    EXPECT_EQ(tool_->run({{"command", "echo go; sleep 1000"}}, context).error().code,
              ErrorCode::Cancelled);
}

TEST_F(RunCommand, DoesNotPassSecretsOnOrWaitForAPerson) {
    setenv("BELVEDERE_TEST_PASSWORD", "hunter2", 1);
    const auto result =
        run({{"command", "echo [$BELVEDERE_TEST_PASSWORD] $TERM; read -r line; echo [$line]"}});
    EXPECT_TRUE(result->text.starts_with("[] dumb\n[]\n")) << result->text;
    const auto removed = result->data["removed_variables"].get<std::vector<std::string>>();
    EXPECT_NE(std::ranges::find(removed, "BELVEDERE_TEST_PASSWORD"), removed.end());
}

TEST(OutputCapture, KeepsExactlyWhatFits) {
    OutputCapture capture;
    const std::string text(OutputCapture::kHeadBytes + OutputCapture::kTailBytes, 'x');
    for (size_t at = 0; at < text.size(); at += 1000) {
        capture.append(std::string_view(text).substr(at, 1000));
    }
    EXPECT_FALSE(capture.isCut());
    EXPECT_EQ(capture.text(), text);
    EXPECT_TRUE(capture.spillFile().empty());
    capture.append("y");
    EXPECT_TRUE(capture.isCut());
    EXPECT_EQ(fs::file_size(capture.spillFile()), text.size() + 1);
    EXPECT_TRUE(capture.text().ends_with("xy"));
    fs::remove(capture.spillFile());
}

TEST(OutputCapture, CutsBetweenCharacters) {
    OutputCapture capture;
    for (int i = 0; i < 30000; ++i) {
        capture.append("€");
    }
    EXPECT_EQ(capture.text().find("\\x"), std::string::npos);
    fs::remove(capture.spillFile());
}

}  // namespace
}  // namespace belvedere::tools
