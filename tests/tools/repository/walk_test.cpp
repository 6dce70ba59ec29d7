// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/walk.h"

#include <algorithm>
#include <string>

#include <git2.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/tools/repository/git_folder.h"

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;
using belvedere::testing::TempDir;
using testing::GitFolder;
using testing::shell;

/// Sets the folder where libgit2 looks for the user's configuration; never the machine's own.
class WalkTest : public ::testing::Test {
  protected:
    void SetUp() override {
        static_cast<void>(walkRepository(home_.path(), 10, {}));  // starts libgit2
        setHome(home_.path());
    }

    void TearDown() override { setHome({}); }

    static void setHome(const fs::path& path) {
        for (const int level :
             {GIT_CONFIG_LEVEL_GLOBAL, GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_SYSTEM}) {
            git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, path.empty() ? nullptr : path.c_str());
        }
    }

    TempDir home_;
};

std::string files(const fs::path& root) {
    const auto walk = walkRepository(fs::canonical(root), 100'000, {});
    if (!walk.has_value()) {
        return walk.error().message;
    }
    std::string all;
    for (const std::string& path : walk->files) {
        all += (all.empty() ? "" : " ") + path;
    }
    return all;
}

std::string skipped(const fs::path& root) {
    const auto walk = walkRepository(fs::canonical(root), 100'000, {});
    if (!walk.has_value()) {
        return walk.error().message;
    }
    std::string all;
    for (const SkippedFile& skip : walk->skipped) {
        all += (all.empty() ? "" : "; ") + skip.path + ": " + skipReasonName(skip.reason);
    }
    return all;
}

/// What git itself lists, in our order.
std::string listedByGit(const GitFolder& folder) {
    return shell("cd '" + folder.path().native() +
                 "' && GIT_CONFIG_GLOBAL=/dev/null git ls-files --cached --others "
                 "--exclude-standard | LC_ALL=C sort -u | "
                 "tr '\\n' ' ' | sed 's/ $//'");
}

TEST_F(WalkTest, HonoursNestedRulesAndNegation) {
    const GitFolder folder;
    folder.write(".gitignore", "*.log\n!keep.log\n/build/\ndoc/*.txt\n**/cache/\n");
    folder.write("sub/.gitignore", "!deep.log\nlocal*\n");
    for (const char* path : {"a.log", "keep.log", "build/x.c", "sub/build/y.c", "doc/a.txt",
                             "doc/b/c.txt", "sub/deep.log", "sub/local.c", "sub/x/local.c",
                             "p/cache/q.c", "z.c", "a b.c", "gr\xC3\xBC\xC3\x9F.c"}) {
        folder.write(path, "x");
    }
    EXPECT_EQ(files(folder.path()),
              ".gitignore a b.c doc/b/c.txt gr\xC3\xBC\xC3\x9F.c keep.log sub/.gitignore "
              "sub/build/y.c sub/deep.log z.c");
    folder.git("config core.quotePath false");
    EXPECT_EQ(files(folder.path()), listedByGit(folder));
}

TEST_F(WalkTest, LetsNestedFilesNegateRulesAboveThem) {
    const GitFolder folder;
    folder.write(".gitignore", "*.log\nlib/\n!not-negated\n");
    folder.write("sub/.gitignore", "!lib/\n!deep.log\n");
    folder.write("sub/lib/.gitignore", "own.c\n");
    folder.write("sub/deep/.gitignore", "deep.log\n");
    folder.write("sub/late/.gitignore", "!x.log\n");
    folder.write(".git/info/exclude", "not-negated\n");
    for (const char* path :
         {"lib/a.c", "sub/lib/a.c", "sub/lib/b.log", "sub/lib/own.c", "sub/lib/deep.log",
          "sub/deep.log", "sub/deep/deep.log", "sub/late/x.log", "sub/late/y.log", "not-negated",
          "sub/lib/lib/z.c"}) {
        folder.write(path, "x");
    }
    EXPECT_EQ(files(folder.path()), listedByGit(folder));
    EXPECT_NE(files(folder.path()).find("sub/lib/a.c"), std::string::npos);
    EXPECT_EQ(files(folder.path()).find("sub/lib/own.c"), std::string::npos);
}

TEST_F(WalkTest, TakesTrackedFilesThatAreIgnored) {
    const GitFolder folder;
    folder.write("gen/a.c", "x");
    folder.write("gen/b.c", "x");
    folder.git("add gen/a.c");
    folder.write(".gitignore", "gen/\n");
    EXPECT_EQ(files(folder.path()), ".gitignore gen/a.c");
    EXPECT_EQ(files(folder.path()), listedByGit(folder));
}

TEST_F(WalkTest, ReadsInfoExcludeAndTheGlobalFile) {
    const GitFolder folder;
    home_.write("ignored-everywhere", "*.swp\n");
    home_.write(".gitconfig", "[core]\n\texcludesfile = " +
                                  (home_.path() / "ignored-everywhere").native() + "\n");
    setHome(home_.path());
    folder.write(".git/info/exclude", "private/\n");
    folder.write("a.c.swp", "x");
    folder.write("private/b.c", "x");
    folder.write("c.c", "x");
    EXPECT_EQ(files(folder.path()), "c.c");
}

TEST_F(WalkTest, FoldsCaseWhereTheRepositorySaysSo) {
    const GitFolder folder;
    folder.write(".gitignore", "*.LOG\n");
    folder.write("a.log", "x");
    folder.git("config core.ignorecase false");
    EXPECT_EQ(files(folder.path()), ".gitignore a.log");
    folder.git("config core.ignorecase true");
    EXPECT_EQ(files(folder.path()), ".gitignore");
}

TEST_F(WalkTest, ReportsTheCommit) {
    const GitFolder folder;
    EXPECT_EQ(walkRepository(fs::canonical(folder.path()), 10, {})->head, "");
    folder.commitAll();
    const std::string head = shell("git -C '" + folder.path().native() + "' rev-parse HEAD");
    const auto walk = walkRepository(fs::canonical(folder.path()), 10, {});
    EXPECT_EQ(walk->head + "\n", head);
    EXPECT_TRUE(walk->is_git);
}

TEST_F(WalkTest, NamesSubmodulesAndNestedRepositories) {
    const GitFolder library;
    library.write("lib.c", "x");
    library.commitAll();
    const GitFolder folder;
    folder.write("a.c", "x");
    folder.git("submodule --quiet add '" + library.path().native() + "' third/lib");
    folder.git("init -q nested");
    folder.write("nested/b.c", "x");
    EXPECT_EQ(files(folder.path()), ".gitmodules a.c");
    EXPECT_EQ(skipped(folder.path()), "nested: another repository; third/lib: another repository");
    EXPECT_EQ(files(folder.path() / "third/lib"), "lib.c");
}

TEST_F(WalkTest, WalksAWorktreeAndASubfolder) {
    const GitFolder folder;
    folder.write(".gitignore", "*.o\n");
    folder.write("src/.gitignore", "!keep.o\n");
    folder.write("src/a.c", "x");
    folder.write("src-more/b.c", "x");
    folder.commitAll();
    folder.write("src/a.o", "x");
    folder.write("src/keep.o", "x");
    folder.git("worktree add -q tree HEAD");
    EXPECT_EQ(files(folder.path() / "src"), ".gitignore a.c keep.o");
    EXPECT_EQ(files(folder.path() / "tree"), ".gitignore src-more/b.c src/.gitignore src/a.c");
    EXPECT_EQ(skipped(folder.path()), "tree: another repository");
}

TEST_F(WalkTest, TakesAnIgnoredFolderByItself) {
    const GitFolder folder;
    folder.write(".gitignore", "build/\n");
    folder.write("build/.gitignore", "*.tmp\n");
    folder.write("build/a.c", "x");
    folder.write("build/b.tmp", "x");
    EXPECT_EQ(files(folder.path() / "build"), ".gitignore a.c");
    EXPECT_FALSE(walkRepository(fs::canonical(folder.path() / "build"), 10, {})->is_git);
}

TEST_F(WalkTest, RefusesGitsOwnFolderAndBareRepositories) {
    const GitFolder folder;
    folder.git("init -q --bare bare.git");
    EXPECT_EQ(walkRepository(fs::canonical(folder.path() / "bare.git"), 10, {}).error().code,
              ErrorCode::InvalidArgument);
    EXPECT_EQ(walkRepository(fs::canonical(folder.path() / ".git"), 10, {}).error().code,
              ErrorCode::InvalidArgument);
    EXPECT_EQ(walkRepository(fs::canonical(folder.path() / ".git/refs"), 10, {}).error().code,
              ErrorCode::InvalidArgument);
}

TEST_F(WalkTest, FollowsNoLinkAndSaysWhereItLeads) {
    const GitFolder folder;
    folder.write("src/a.c", "x");
    fs::create_directory_symlink("..", folder.path() / "src/loop");
    fs::create_symlink("/etc/passwd", folder.path() / "out");
    fs::create_symlink("src/a.c", folder.path() / "in");
    fs::create_symlink("gone", folder.path() / "dangling");
    fs::create_symlink("self", folder.path() / "self");
    EXPECT_EQ(files(folder.path()), "src/a.c");
    EXPECT_EQ(skipped(folder.path()),
              "dangling: not readable; in: link; out: link to outside; self: not readable; "
              "src/loop: link");
}

TEST_F(WalkTest, ListsWhatASparseCheckoutLeftOut) {
    const GitFolder folder;
    folder.write("a/x.c", "x");
    folder.write("b/y.c", "x");
    folder.commitAll();
    folder.git("sparse-checkout set --no-sparse-index a");
    EXPECT_EQ(files(folder.path()), "a/x.c");
    EXPECT_EQ(skipped(folder.path()), "b/y.c: not checked out");
}

TEST_F(WalkTest, ForgetsDeletedFilesAndListsConflictsOnce) {
    const GitFolder folder;
    folder.write("a.c", "1\n");
    folder.write("gone.c", "1\n");
    folder.commitAll();
    folder.git("checkout -q -b other");
    folder.write("a.c", "2\n");
    folder.commitAll();
    folder.git("checkout -q main");
    folder.write("a.c", "3\n");
    folder.commitAll();
    folder.git("merge -q other || true");
    fs::remove(folder.path() / "gone.c");
    EXPECT_EQ(files(folder.path()), "a.c");
    EXPECT_EQ(skipped(folder.path()), "");
}

TEST_F(WalkTest, SaysSoWhereTheIndexIsBroken) {
    const GitFolder folder;
    folder.write("a.c", "x");
    folder.write(".git/index", "not an index");
    EXPECT_EQ(files(folder.path()), "a.c");
    EXPECT_EQ(skipped(folder.path()), ".git/index: not readable");
}

TEST_F(WalkTest, WalksAFolderWithoutGitByTheSameRules) {
    const TempDir folder;
    folder.write(".gitignore", "*.log\n!keep.log\nout/\n");
    folder.write("a.log", "x");
    folder.write("keep.log", "x");
    folder.write("out/b.c", "x");
    folder.write("s/.gitignore", "*.tmp\n");
    folder.write("s/c.tmp", "x");
    folder.write("s/c.c", "x");
    EXPECT_EQ(files(folder.path()), ".gitignore keep.log s/.gitignore s/c.c");
    EXPECT_FALSE(fs::exists(folder.path() / ".git"));
    const TempDir empty;
    EXPECT_EQ(files(empty.path()), "");
}

TEST_F(WalkTest, LeavesOutPipesAndHiddenNothing) {
    const TempDir folder;
    folder.write(".hidden/.x", "x");
    ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
    EXPECT_EQ(files(folder.path()), ".hidden/.x");
}

TEST_F(WalkTest, ListsInByteOrderSoThatFoldersStandTogether) {
    const TempDir folder;
    for (const char* path : {"b.c", "a/z.c", "a.c", "a-b/c.c", "B.c"}) {
        folder.write(path, "x");
    }
    EXPECT_EQ(files(folder.path()), "B.c a-b/c.c a.c a/z.c b.c");
}

TEST_F(WalkTest, StopsAtTheLimitAndSaysSo) {
    const TempDir folder;
    for (int i = 0; i < 5; ++i) {
        folder.write(std::to_string(i) + ".c", "x");
    }
    const auto walk = walkRepository(fs::canonical(folder.path()), 3, {});
    ASSERT_TRUE(walk.has_value());
    EXPECT_EQ(walk->files.size(), 3U);
    ASSERT_EQ(walk->skipped.size(), 1U);
    EXPECT_EQ(walk->skipped[0].path, "3.c");
    EXPECT_EQ(walk->skipped[0].reason, SkipReason::TooMany);
}

TEST_F(WalkTest, StopsWhenAsked) {
    const TempDir folder;
    folder.write("a.c", "x");
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(walkRepository(fs::canonical(folder.path()), 10, stop.get_token()).error().code,
              ErrorCode::Cancelled);
}

TEST_F(WalkTest, SaysWhenTheFolderHasVanished) {
    EXPECT_EQ(walkRepository("/nonexistent/folder", 10, {}).error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace belvedere::tools
