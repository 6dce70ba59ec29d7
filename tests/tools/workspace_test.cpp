// SPDX-License-Identifier: Apache-2.0
#include "tools/workspace.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;
using belvedere::testing::TempDir;

/// outside/secret.txt and root/, which is the workspace.
class WorkspaceTest : public ::testing::Test {
  protected:
    WorkspaceTest() {
        dir_.write("outside/secret.txt", "secret");
        dir_.write("root/src/a.cpp", "a");
        dir_.write("root-sibling/b.txt", "b");
        workspace_ = *Workspace::open(root_);
    }

    std::string resolved(std::string_view path) const {
        const Result<fs::path> result = workspace_->resolve(path);
        return result.has_value() ? workspace_->relative(*result)
                                  : "error: " + result.error().message;
    }

    void expectRefused(std::string_view path) const {
        const Result<fs::path> result = workspace_->resolve(path);
        ASSERT_FALSE(result.has_value()) << path << " became " << *result;
        EXPECT_EQ(result.error().code, ErrorCode::InvalidArgument) << result.error().message;
        EXPECT_NE(result.error().message.find("outside the workspace"), std::string::npos)
            << result.error().message;
    }

    TempDir dir_;
    const fs::path root_ = dir_.path() / "root";
    std::shared_ptr<const Workspace> workspace_;
};

TEST_F(WorkspaceTest, OpensOnlyFolders) {
    EXPECT_EQ(Workspace::open(dir_.path() / "nowhere").error().code, ErrorCode::NotFound);
    EXPECT_EQ(Workspace::open(root_ / "src/a.cpp").error().code, ErrorCode::InvalidArgument);
}

TEST_F(WorkspaceTest, ResolvesWhatIsInside) {
    EXPECT_EQ(resolved("src/a.cpp"), "src/a.cpp");
    EXPECT_EQ(resolved("./src//./a.cpp"), "src/a.cpp");
    EXPECT_EQ(resolved("src/../src/a.cpp"), "src/a.cpp");
    EXPECT_EQ(resolved((root_ / "src/a.cpp").string()), "src/a.cpp");
    EXPECT_EQ(resolved("."), ".");
    EXPECT_EQ(resolved("new/folder/file.txt"), "new/folder/file.txt");
    EXPECT_EQ(resolved("new/../src"), "src");
    EXPECT_EQ(resolved("..."), "...");
}

TEST_F(WorkspaceTest, RefusesWhatIsOutside) {
    expectRefused("..");
    expectRefused("../outside/secret.txt");
    expectRefused("src/../../outside/secret.txt");
    expectRefused("new/../../outside");
    expectRefused("/etc/passwd");
    expectRefused("/");
    expectRefused((dir_.path() / "outside/secret.txt").string());
    expectRefused((dir_.path() / "root-sibling/b.txt").string());
    expectRefused("../root-sibling/b.txt");
}

TEST_F(WorkspaceTest, RefusesEmptyPathsAndNul) {
    EXPECT_EQ(resolved(""), "error: the path is empty");
    EXPECT_EQ(resolved(std::string_view("a\0b", 3)), "error: path a: has a NUL byte");
}

TEST_F(WorkspaceTest, FollowsLinksThatStayInside) {
    fs::create_symlink("src", root_ / "inside");
    fs::create_symlink(root_ / "src/a.cpp", root_ / "absolute");
    EXPECT_EQ(resolved("inside/a.cpp"), "src/a.cpp");
    EXPECT_EQ(resolved("absolute"), "src/a.cpp");
}

TEST_F(WorkspaceTest, RefusesLinksThatLeaveAndSaysWhere) {
    fs::create_symlink(dir_.path() / "outside", root_ / "absolute");
    fs::create_symlink("../outside/secret.txt", root_ / "relative");
    fs::create_symlink("absolute", root_ / "chain");
    expectRefused("absolute/secret.txt");
    expectRefused("absolute");
    expectRefused("relative");
    expectRefused("chain/secret.txt");
    EXPECT_NE(resolved("relative").find((dir_.path() / "outside/secret.txt").string()),
              std::string::npos);
}

TEST_F(WorkspaceTest, RefusesALinkToAMissingFileOutside) {
    fs::create_symlink(dir_.path() / "outside/new.txt", root_ / "dangling");
    expectRefused("dangling");
    expectRefused("dangling/deeper");
}

TEST_F(WorkspaceTest, GoesUpFromWhereALinkLeads) {
    dir_.write("root/deep/er/x", "");
    fs::create_symlink("deep/er", root_ / "link");
    EXPECT_EQ(resolved("link/../y"), "deep/y");
    fs::create_symlink("../outside", root_ / "out");
    expectRefused("out/../outside/secret.txt");
}

TEST_F(WorkspaceTest, RefusesLoops) {
    fs::create_symlink("two", root_ / "one");
    fs::create_symlink("one", root_ / "two");
    EXPECT_EQ(workspace_->resolve("one").error().code, ErrorCode::InvalidArgument);
}

TEST_F(WorkspaceTest, AcceptsAbsolutePathsThroughALinkToTheRoot) {
    fs::create_symlink("root", dir_.path() / "alias");
    EXPECT_EQ(resolved((dir_.path() / "alias/src/a.cpp").string()), "src/a.cpp");
    const auto by_alias = *Workspace::open(dir_.path() / "alias");
    EXPECT_EQ(by_alias->root(), workspace_->root());
}

}  // namespace
}  // namespace belvedere::tools
