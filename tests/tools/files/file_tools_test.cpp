// SPDX-License-Identifier: Apache-2.0
// list_files, read_file, search_text, write_file and edit_file as the model calls them.
#include <filesystem>
#include <fstream>

#include <git2.h>
#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"
#include "tools/files/edit_file.h"
#include "tools/files/list_files.h"
#include "tools/files/read_file.h"
#include "tools/files/search_text.h"
#include "tools/files/text.h"
#include "tools/files/write_file.h"

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;
using testing::call;
using testing::Json;
using testing::textOf;

class FileTools : public ::testing::Test {
  protected:
    std::string list(const Json& arguments) { return textOf(call(*list_, arguments)); }

    std::string read(const Json& arguments) { return textOf(call(*read_, arguments)); }

    std::string search(const Json& arguments) { return textOf(call(*search_, arguments)); }

    std::string write(const Json& arguments) { return textOf(call(*write_, arguments)); }

    std::string edit(const Json& arguments) { return textOf(call(*edit_, arguments)); }

    std::string content(const fs::path& path) const {
        std::ifstream file(dir_.path() / path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    void makeGitFolder() const {
        git_libgit2_init();
        git_repository* repository = nullptr;
        ASSERT_EQ(git_repository_init(&repository, dir_.path().c_str(), 0), 0);
        git_repository_free(repository);
        git_libgit2_shutdown();
    }

    /// git add --force
    void track(const char* path) const {
        git_libgit2_init();
        git_repository* repository = nullptr;
        git_index* index = nullptr;
        ASSERT_EQ(git_repository_open(&repository, dir_.path().c_str()), 0);
        ASSERT_EQ(git_repository_index(&index, repository), 0);
        EXPECT_EQ(git_index_add_bypath(index, path), 0);
        EXPECT_EQ(git_index_write(index), 0);
        git_index_free(index);
        git_repository_free(repository);
        git_libgit2_shutdown();
    }

    belvedere::testing::TempDir dir_;
    std::shared_ptr<const Workspace> workspace_ = testing::openWorkspace(dir_);
    std::shared_ptr<ReadLog> log_ = std::make_shared<ReadLog>();
    std::unique_ptr<agent::Tool> list_ = makeListFiles(workspace_);
    std::unique_ptr<agent::Tool> read_ = makeReadFile(workspace_, log_);
    std::unique_ptr<agent::Tool> search_ = makeSearchText(workspace_);
    std::unique_ptr<agent::Tool> write_ = makeWriteFile(workspace_, log_);
    std::unique_ptr<agent::Tool> edit_ = makeEditFile(workspace_, log_);
};

// list_files

TEST_F(FileTools, ListShowsTwoLevelsInOrder) {
    dir_.write("b.txt", "");
    dir_.write("a/x/deep.txt", "");
    dir_.write("a/y.txt", "");
    fs::create_symlink("b.txt", dir_.path() / "c");
    EXPECT_EQ(list(Json::object()), "a/\na/x/\na/y.txt\nb.txt\nc@\n");
    EXPECT_EQ(list({{"path", "a"}}), "a/x/\na/x/deep.txt\na/y.txt\n");
    EXPECT_EQ(list({{"depth", 1}}), "a/\nb.txt\nc@\n");
    EXPECT_EQ(list({{"path", "a/x/none"}}), "error: a/x/none: does not exist");
}

TEST_F(FileTools, ListWithAPatternShowsFilesOfAllLevels) {
    dir_.write("a.cpp", "");
    dir_.write("x/y/z/b.cpp", "");
    dir_.write("x/c.h", "");
    EXPECT_EQ(list({{"pattern", "*.cpp"}}), "a.cpp\nx/y/z/b.cpp\n");
    EXPECT_EQ(list({{"path", "x"}, {"pattern", "y/**/*.cpp"}}), "x/y/z/b.cpp\n");
    EXPECT_EQ(list({{"pattern", "*.rs"}}), "no file matches\n");
}

TEST_F(FileTools, ListSaysWhereItStopped) {
    for (int i = 0; i < 5; ++i) {
        dir_.write("f" + std::to_string(i), "");
    }
    EXPECT_EQ(
        list({{"limit", 2}}),
        "f0\nf1\n[only the first 2 entries: name a sub-folder, a pattern or a larger limit]\n");
    EXPECT_EQ(list({{"limit", 5}}), "f0\nf1\nf2\nf3\nf4\n");
}

TEST_F(FileTools, ListLeavesOutWhatGitIgnores) {
    makeGitFolder();
    dir_.write(".gitignore", "*.o\nbuild/\n");
    dir_.write("a.c", "");
    dir_.write("a.o", "");
    dir_.write("build/x", "");
    dir_.write("sub/.gitignore", "*.tmp\n!keep.tmp\n");
    dir_.write("sub/keep.tmp", "");
    dir_.write("sub/other.tmp", "");
    dir_.write("tracked.o", "");
    track("tracked.o");
    EXPECT_EQ(list(Json::object()),
              ".gitignore\na.c\nsub/\nsub/.gitignore\nsub/keep.tmp\ntracked.o\n[left out: 3 "
              "entries that git "
              "ignores]\n");
    EXPECT_EQ(list({{"include_ignored", true}, {"depth", 1}}),
              ".gitignore\na.c\na.o\nbuild/\nsub/\ntracked.o\n");
}

TEST_F(FileTools, ListOfASubfolderOfARepositoryHasItsRules) {
    makeGitFolder();
    dir_.write(".gitignore", "/sub/out/\n");
    dir_.write("sub/out/x", "");
    dir_.write("sub/a", "");
    const auto tool = makeListFiles(*Workspace::open(dir_.path() / "sub"));
    EXPECT_EQ(textOf(call(*tool, Json::object())), "a\n[left out: 1 entries that git ignores]\n");
}

TEST_F(FileTools, ListDoesNotFollowLinksOut) {
    dir_.write("inside", "");
    fs::create_symlink("/etc", dir_.path() / "out");
    EXPECT_EQ(list({{"depth", 5}}), "inside\nout@\n");
    EXPECT_TRUE(list({{"path", "out"}}).starts_with("error: path out: leads to /etc, outside"));
}

// read_file

TEST_F(FileTools, ReadNumbersLines) {
    dir_.write("a.txt", "one\ntwo\n\nfour");
    EXPECT_EQ(read({{"path", "a.txt"}}),
              "1\tone\n2\ttwo\n3\t\n4\tfour\n[no line end at the end of the file]\n");
    EXPECT_EQ(
        read({{"path", "a.txt"}, {"offset", 2}, {"limit", 1}}),
        "2\ttwo\n[lines 2 to 2 of 4; go on with offset 3]\n[no line end at the end of the file]\n");
    EXPECT_EQ(read({{"path", "a.txt"}, {"offset", 9}}),
              "error: a.txt: offset 9 is behind its 4 lines");
    dir_.write("empty", "");
    EXPECT_EQ(read({{"path", "empty"}}), "[the file is empty]\n");
}

TEST_F(FileTools, ReadStatesWhatTheLinesCanNotShow) {
    dir_.write("crlf",
               "\xEF\xBB\xBF"
               "a\r\nb\r\n");
    EXPECT_EQ(read({{"path", "crlf"}}),
              "1\ta\n2\tb\n[lines end with CRLF]\n[starts with a UTF-8 byte order mark]\n");
    dir_.write("mixed", "a\r\nb\n");
    EXPECT_EQ(read({{"path", "mixed"}}), "1\ta\n2\tb\n[mixed line ends: 1 with CRLF, 1 with LF]\n");
    dir_.write("latin1", "caf\xE9\n");
    EXPECT_EQ(read({{"path", "latin1"}}),
              "1\tcaf\\xE9\n[1 bytes are no printable UTF-8 and shown as \\xNN; old_text of an "
              "edit can not contain "
              "them]\n");
    dir_.write("binary", std::string_view("ab\0c", 4));
    EXPECT_EQ(read({{"path", "binary"}}),
              "error: binary: is a binary file (it has NUL bytes; 4 bytes in all)");
}

TEST_F(FileTools, ReadKeepsItsLimits) {
    std::string many;
    for (int i = 0; i < 3000; ++i) {
        many += "x\n";
    }
    dir_.write("many", many);
    EXPECT_NE(read({{"path", "many"}}).find("[lines 1 to 2000 of 3000; go on with offset 2001]"),
              std::string::npos);
    dir_.write("long", std::string(1999, 'a') + "ä" + std::string(10, 'b') + "\n");
    EXPECT_EQ(read({{"path", "long"}}),
              "1\t" + std::string(1999, 'a') + " [line cut]\n[1 lines were cut at 2000 bytes]\n");
    std::string wide;
    for (int i = 0; i < 200; ++i) {
        wide += std::string(1000, 'w') + "\n";
    }
    dir_.write("wide", wide);
    const std::string shown = read({{"path", "wide"}});
    EXPECT_LE(shown.size(), 66U * 1024);
    EXPECT_NE(shown.find("of 200; go on with offset"), std::string::npos);
    EXPECT_EQ(read({{"path", "many"}, {"limit", 2001}}),
              "error: read_file: limit: 2001 is outside 1 to 2000");
}

TEST_F(FileTools, ReadAsksForNamesOfSecrets) {
    EXPECT_EQ(read_->defaultVerdict({{"path", "src/a.cpp"}}), agent::Verdict::Allow);
    dir_.write(".env", "KEY=1");
    fs::create_symlink(".env", dir_.path() / "plain.txt");
    for (const char* path :
         {".env", "deep/.env.local", "key.pem", "./x/../.env", "plain.txt", "home/id_rsa"}) {
        EXPECT_EQ(read_->defaultVerdict({{"path", path}}), agent::Verdict::Ask) << path;
    }
    EXPECT_EQ(read_->defaultVerdict({{"path", ".env.example"}}), agent::Verdict::Allow);
    EXPECT_EQ(read_->subject({{"path", "./x/../.env"}}), ".env");  // rules see the real path
}

// search_text

TEST_F(FileTools, SearchFindsLinesWithContext) {
    dir_.write("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    dir_.write("sub/b.txt", "two\r\n");
    EXPECT_EQ(search({{"pattern", "^two$"}}),
              "a.txt:2: two\nsub/b.txt:1: two\n[2 matching lines in 2 of 2 files searched]\n");
    EXPECT_EQ(search({{"pattern", "two|four"}, {"path", "a.txt"}, {"context", 1}}),
              "a.txt-1- one\na.txt:2: two\na.txt-3- three\na.txt:4: four\na.txt-5- five\n"
              "[2 matching lines in 1 of 1 files searched]\n");
    EXPECT_EQ(search({{"pattern", "one|seven"}, {"path", "a.txt"}, {"context", 1}}),
              "a.txt:1: one\na.txt-2- two\n--\na.txt-6- six\na.txt:7: seven\n"
              "[2 matching lines in 1 of 1 files searched]\n");
    EXPECT_EQ(search({{"pattern", "none"}}), "[0 matching lines in 0 of 2 files searched]\n");
}

TEST_F(FileTools, SearchTakesLiteralsCaseAndGlobs) {
    dir_.write("a.cpp", "f(x)\nF(X)\n");
    dir_.write("b.h", "f(x)\n");
    EXPECT_EQ(search({{"pattern", "f(x)"}}), "[0 matching lines in 0 of 2 files searched]\n");
    EXPECT_EQ(search({{"pattern", "f(x)"}, {"literal", true}, {"glob", "*.cpp"}}),
              "a.cpp:1: f(x)\n[1 matching lines in 1 of 1 files searched]\n");
    EXPECT_EQ(search({{"pattern", "f\\(x\\)"}, {"ignore_case", true}, {"glob", "*.{cpp,cc}"}}),
              "a.cpp:1: f(x)\na.cpp:2: F(X)\n[2 matching lines in 1 of 1 files searched]\n");
    EXPECT_TRUE(search({{"pattern", "f("}}).starts_with("error: search_text: pattern: missing )"));
    EXPECT_EQ(search({{"pattern", ""}}), "error: search_text: pattern: is empty");
}

TEST_F(FileTools, SearchSaysWhatItLeftOut) {
    dir_.write("text", "needle\n");
    dir_.write("binary", std::string_view("needle\0", 7));
    dir_.write(".env", "needle\n");
    dir_.write("large", std::string(5 << 20, 'x') + "needle\n");
    EXPECT_EQ(search({{"pattern", "needle"}}),
              "text:1: needle\n[1 matching lines in 1 of 1 files searched]\n"
              "[not searched: 1 binary, 1 above 4 MiB, 1 that look like secrets, 0 unreadable, 0 "
              "entries that git "
              "ignores]\n");
    EXPECT_EQ(search_->defaultVerdict({{"pattern", "x"}, {"path", ".env"}}), agent::Verdict::Ask);
    EXPECT_NE(search({{"pattern", "needle"}, {"path", "large"}}).find("[line cut]"),
              std::string::npos);
}

TEST_F(FileTools, SearchStopsAtItsLimit) {
    std::string text;
    for (int i = 0; i < 50; ++i) {
        text += "hit\n";
    }
    dir_.write("a", text);
    const std::string found = search({{"pattern", "hit"}, {"limit", 3}});
    EXPECT_EQ(found,
              "a:1: hit\na:2: hit\na:3: hit\n[3 matching lines in 1 of 1 files searched; there are "
              "more: narrow the "
              "search or raise limit]\n");
    // Nested repetition, at which a backtracking engine would not end.
    dir_.write("b", std::string(100'000, 'a') + "\n");
    EXPECT_EQ(search({{"pattern", "^(a+)+$"}, {"path", "b"}}).find("[0 matching"),
              std::string::npos);
    EXPECT_NE(search({{"pattern", "^(a+)+b$"}, {"path", "b"}}).find("[0 matching"),
              std::string::npos);
}

TEST_F(FileTools, SearchCanBeStopped) {
    dir_.write("a", "x\n");
    std::stop_source stop;
    stop.request_stop();
    agent::ToolContext context;
    context.stop = stop.get_token();
    EXPECT_EQ(search_->run({{"pattern", "x"}}, context).error().code, ErrorCode::Cancelled);
}

// write_file

TEST_F(FileTools, WriteCreatesFilesAndReportsADiff) {
    const auto result = call(*write_, {{"path", "new/a.txt"}, {"content", "x\ny\n"}});
    EXPECT_EQ(textOf(result), "created new/a.txt: 2 lines, 4 bytes\n");
    EXPECT_EQ(content("new/a.txt"), "x\ny\n");
    EXPECT_EQ(result->data["diff"], "--- /dev/null\n+++ b/new/a.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n");
    EXPECT_EQ(result->data["is_new"], true);
}

TEST_F(FileTools, WriteNeedsAReadOfWhatExists) {
    dir_.write("a.txt", "old\n");
    const Json arguments = {{"path", "a.txt"}, {"content", "new\n"}};
    EXPECT_EQ(write(arguments),
              "error: a.txt: exists and was not read in this session: call read_file first");
    (void)call(*read_, {{"path", "a.txt"}}, "another session");
    EXPECT_TRUE(write(arguments).starts_with("error: a.txt: exists and was not read"));
    (void)read({{"path", "a.txt"}});
    dir_.write("a.txt", "changed\n");
    EXPECT_EQ(write(arguments),
              "error: a.txt: has changed since it was read: call read_file again");
    EXPECT_EQ(content("a.txt"), "changed\n");
    (void)read({{"path", "./a.txt"}});
    EXPECT_EQ(write(arguments), "replaced a.txt: 1 lines, 4 bytes\n");
    EXPECT_EQ(content("a.txt"), "new\n");
    // What it wrote itself it has seen.
    EXPECT_EQ(write({{"path", "a.txt"}, {"content", "newer\n"}}),
              "replaced a.txt: 1 lines, 6 bytes\n");
}

TEST_F(FileTools, WriteTellsWhenTheFormOfTheFileIsLost) {
    dir_.write("a.txt", "\xEF\xBB\xBFx\r\n");
    (void)read({{"path", "a.txt"}});
    EXPECT_EQ(write({{"path", "a.txt"}, {"content", "y\n"}}),
              "replaced a.txt: 1 lines, 2 bytes\n[the old file had CRLF line ends, the new one has "
              "none]\n"
              "[the old file had a UTF-8 byte order mark, the new one has none]\n");
}

TEST_F(FileTools, WriteStaysInsideAndOutOfGit) {
    const belvedere::testing::TempDir other;
    fs::create_symlink(other.path(), dir_.path() / "out");
    fs::create_symlink(other.path() / "new", dir_.path() / "dangling");
    for (const std::string& path : {std::string("../x"), std::string("out/x"),
                                    std::string("dangling"), other.path().string() + "/x"}) {
        EXPECT_NE(write({{"path", path}, {"content", "x"}}).find("outside the workspace"),
                  std::string::npos)
            << path;
    }
    EXPECT_TRUE(fs::is_empty(other.path()));
    for (const char* path : {".git/hooks/pre-commit", "sub/.git/config", "sub/../.git/config"}) {
        EXPECT_NE(write({{"path", path}, {"content", "x"}}).find("is inside .git"),
                  std::string::npos)
            << path;
    }
    EXPECT_EQ(write({{"path", "folder/"}, {"content", "x"}}),
              "error: path folder/: names a folder");
}

TEST_F(FileTools, WriteThroughALinkChangesItsTarget) {
    dir_.write("real.txt", "old");
    fs::create_symlink("real.txt", dir_.path() / "link.txt");
    (void)read({{"path", "real.txt"}});
    EXPECT_EQ(write({{"path", "link.txt"}, {"content", "new"}}),
              "replaced real.txt: 1 lines, 3 bytes\n");
    EXPECT_TRUE(fs::is_symlink(dir_.path() / "link.txt"));
    EXPECT_EQ(content("real.txt"), "new");
}

TEST_F(FileTools, WritePreviewShowsTheDiffOrTheReason) {
    dir_.write("a.txt", "old\n");
    EXPECT_EQ(write_->preview({{"path", "a.txt"}, {"content", "new\n"}}),
              "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n");
    EXPECT_NE(write_->preview({{"path", "../a"}, {"content", ""}}).find("outside"),
              std::string::npos);
    EXPECT_EQ(content("a.txt"), "old\n");
    EXPECT_EQ(write_->defaultVerdict({{"path", "a.txt"}, {"content", ""}}), agent::Verdict::Ask);
}

// edit_file

TEST_F(FileTools, EditReplacesAfterARead) {
    dir_.write("a.cpp", "int a = 1;\nint b = 2;\n");
    const Json arguments = {{"path", "a.cpp"}, {"old_string", "b = 2"}, {"new_string", "b = 3"}};
    EXPECT_EQ(edit(arguments),
              "error: a.cpp: exists and was not read in this session: call read_file first");
    (void)read({{"path", "a.cpp"}});
    EXPECT_EQ(edit_->preview(arguments),
              "--- a/a.cpp\n+++ b/a.cpp\n@@ -1,2 +1,2 @@\n int a = 1;\n-int b = 2;\n+int b = 3;\n");
    EXPECT_EQ(content("a.cpp"), "int a = 1;\nint b = 2;\n");
    const auto result = call(*edit_, arguments);
    EXPECT_EQ(textOf(result), "edited a.cpp at line 2\n");
    EXPECT_EQ(result->data["diff"],
              "--- a/a.cpp\n+++ b/a.cpp\n@@ -1,2 +1,2 @@\n int a = 1;\n-int b = 2;\n+int b = 3;\n");
    EXPECT_EQ(content("a.cpp"), "int a = 1;\nint b = 3;\n");
    // And again without another read.
    EXPECT_EQ(edit({{"path", "a.cpp"},
                    {"old_text", "int"},
                    {"new_text", "long"},
                    {"replace_all", "true"}}),
              "edited a.cpp at 2 places\n");
    EXPECT_EQ(content("a.cpp"), "long a = 1;\nlong b = 3;\n");
}

TEST_F(FileTools, EditRefusesAStaleFile) {
    dir_.write("a.txt", "one two\n");
    (void)read({{"path", "a.txt"}});
    dir_.write("a.txt", "one two three\n");
    EXPECT_EQ(edit({{"path", "a.txt"}, {"old_text", "two"}, {"new_text", "2"}}),
              "error: a.txt: has changed since it was read: call read_file again");
    EXPECT_EQ(content("a.txt"), "one two three\n");
}

TEST_F(FileTools, EditLeavesEveryOtherByteAlone) {
    const std::string before = "\xEF\xBB\xBF// caf\xE9\r\nold\r\n\x80\xFF tail";
    dir_.write("a.txt", before);
    (void)read({{"path", "a.txt"}});
    const auto result =
        call(*edit_, {{"path", "a.txt"}, {"old_text", "old\n"}, {"new_text", "new\nline\n"}});
    EXPECT_EQ(textOf(result), "edited a.txt at line 2\n");
    EXPECT_EQ(content("a.txt"), "\xEF\xBB\xBF// caf\xE9\r\nnew\r\nline\r\n\x80\xFF tail");
    EXPECT_TRUE(isUtf8(result->data["diff"].get<std::string>()));
}

TEST_F(FileTools, EditErrorsNameTheFileAndTheClosestLines) {
    dir_.write("a.txt", "alpha\nbeta\n");
    (void)read({{"path", "a.txt"}});
    const std::string error = edit({{"path", "a.txt"}, {"old_text", "betta"}, {"new_text", "x"}});
    EXPECT_TRUE(error.starts_with("error: a.txt: old_text: not found")) << error;
    EXPECT_NE(error.find("2\tbeta"), std::string::npos) << error;
    EXPECT_EQ(edit({{"path", "none.txt"}, {"old_text", "a"}, {"new_text", "b"}}),
              "error: none.txt: does not exist");
    EXPECT_EQ(edit({{"path", "a.txt"}, {"old_text", "a"}}), "error: edit_file: new_text: missing");
    dir_.write("b", std::string_view("a\0", 2));
    EXPECT_EQ(edit({{"path", "b"}, {"old_text", "a"}, {"new_text", "b"}}),
              "error: b: is a binary file");
}

}  // namespace
}  // namespace belvedere::tools
