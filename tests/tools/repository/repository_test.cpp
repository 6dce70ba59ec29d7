// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/repository.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"
#include "tests/tools/repository/word_counter.h"
#include "tools/repository/database.h"

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;
using belvedere::testing::TempDir;
using testing::WordCounter;

std::shared_ptr<Repository> attach(const fs::path& root,
                                   RepositoryConfig config = {},
                                   const std::string& counter = "words") {
    auto repository = Repository::attach(root, config, std::make_shared<WordCounter>(counter));
    EXPECT_TRUE(repository.has_value()) << repository.error().message;
    return *repository;
}

IngestReport ingest(Repository& repository) {
    auto report = repository.ingest({}, {});
    EXPECT_TRUE(report.has_value()) << (report.has_value() ? "" : report.error().message);
    return report.has_value() ? *report : IngestReport{};
}

/// "path:first-last" of pieces, separated by blanks.
std::string places(const std::vector<std::shared_ptr<const agent::SourcePiece>>& pieces) {
    std::string all;
    for (const auto& piece : pieces) {
        all += (all.empty() ? "" : " ") + piece->path + ":" + std::to_string(piece->first_line) +
               "-" + std::to_string(piece->last_line);
    }
    return all;
}

agent::ContextChoice choose(const Repository& repository,
                            std::string_view question,
                            size_t budget_tokens) {
    auto choice = repository.choose(question, budget_tokens, {});
    EXPECT_TRUE(choice.has_value()) << (choice.has_value() ? "" : choice.error().message);
    return choice.has_value() ? *choice : agent::ContextChoice{};
}

/// Moves a file's time into the past, so that it counts as settled.
void settle(const fs::path& file) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1));
}

void settleAll(const fs::path& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) {
            settle(entry.path());
        }
    }
}

std::string filler(const std::string& word, int n_lines) {
    std::string text;
    for (int i = 0; i < n_lines; ++i) {
        text += "    total += " + word + "(" + std::to_string(i) + ");\n";
    }
    return text;
}

TEST(Repository, RefusesWhatIsNoFolder) {
    const TempDir folder;
    const auto counter = std::make_shared<WordCounter>();
    EXPECT_EQ(Repository::attach(folder.path() / "none", {}, counter).error().code,
              ErrorCode::NotFound);
    const auto file = Repository::attach(folder.write("a.c", "x"), {}, counter);
    EXPECT_EQ(file.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(file.error().message.find("a.c"), std::string::npos);
}

TEST(Repository, CountsFilesPiecesAndTokensByFolder) {
    const TempDir folder;
    folder.write("src/a.cpp", filler("f", 40));
    folder.write("src/deep/b.cpp", "int x;\n");
    folder.write("src.md", "words\n");
    folder.write("bin/data.bin", std::string("\0\1\2", 3));
    folder.write("empty.c", "\n\n");
    const auto repository = attach(folder.path());
    EXPECT_FALSE(repository->isIngested());
    EXPECT_EQ(repository->tree(), nullptr);
    const IngestReport report = ingest(*repository);
    EXPECT_EQ(report.n_files, 4U);
    EXPECT_EQ(report.n_pieces, 4U);
    EXPECT_EQ(report.n_folders, 2U);
    ASSERT_EQ(report.skipped.size(), 1U);
    EXPECT_EQ(report.skipped[0].path, "bin/data.bin");
    const auto tree = repository->tree();
    ASSERT_NE(tree, nullptr);
    const TreeNode& root = tree->front();
    EXPECT_EQ(root.n_tokens, report.n_tokens);
    EXPECT_EQ(root.n_files, 4U);
    ASSERT_EQ(root.children.size(), 3U);
    const TreeNode& src = (*tree)[static_cast<size_t>(root.children[0])];
    EXPECT_EQ(src.path, "src");
    EXPECT_EQ(src.n_files, 2U);
    EXPECT_EQ((*tree)[static_cast<size_t>(src.children[0])].path, "src/deep");
    EXPECT_EQ((*tree)[static_cast<size_t>(src.children[1])].name, "a.cpp");
    EXPECT_EQ((*tree)[static_cast<size_t>(root.children[1])].path, "empty.c");
    EXPECT_EQ((*tree)[static_cast<size_t>(root.children[2])].path, "src.md");
}

TEST(Repository, GivesAllInOrderWhereItFits) {
    const TempDir folder;
    folder.write("b.py", "def size(path):\n    return 1\n");
    folder.write("a/x.py", "K = 3\r\n\r\n");
    const auto repository = attach(folder.path());
    const IngestReport report = ingest(*repository);
    const auto choice = choose(*repository, "Where is size defined?", report.n_tokens);
    EXPECT_TRUE(choice.is_whole_repository);
    EXPECT_EQ(places(choice.pieces), "a/x.py:1-1 b.py:1-2");
    EXPECT_EQ(places(choice.best), "b.py:1-2");
    EXPECT_EQ(choice.pieces[0]->text, "\n### a/x.py:1-1\nK = 3");
    EXPECT_EQ(*choice.pieces[0]->ids, WordCounter().encode(choice.pieces[0]->text));
    EXPECT_EQ(choice.n_tokens, report.n_tokens);
    EXPECT_EQ(choice.n_files, 2U);
    EXPECT_FALSE(
        choose(*repository, "Where is size defined?", report.n_tokens - 1).is_whole_repository);
}

TEST(Repository, KeepsTheBudgetAndRepeatsItself) {
    const TempDir folder;
    for (int i = 0; i < 40; ++i) {
        folder.write("f" + std::to_string(i) + ".c",
                     "int value" + std::to_string(i) + "(int a) {\n" + filler("g", 20) + "}\n");
    }
    const auto repository = attach(folder.path());
    ingest(*repository);
    const auto choice = choose(*repository, "What does value7 take?", 1000);
    EXPECT_FALSE(choice.is_whole_repository);
    EXPECT_LE(choice.n_tokens, 1000U);
    EXPECT_GT(choice.n_tokens, 500U);
    size_t n_tokens = 0;
    for (const auto& piece : choice.pieces) {
        n_tokens += piece->ids->size();
    }
    EXPECT_EQ(n_tokens, choice.n_tokens);
    EXPECT_EQ(places(choice.best), "f7.c:1-22");
    EXPECT_TRUE(std::is_sorted(choice.pieces.begin(), choice.pieces.end(),
                               [](auto& a, auto& b) { return a->path < b->path; }));
    EXPECT_EQ(places(choose(*repository, "What does value7 take?", 1000).pieces),
              places(choice.pieces));
    const auto other = attach(folder.path(), {.n_threads = 7});
    ingest(*other);
    EXPECT_EQ(places(choose(*other, "What does value7 take?", 1000).pieces), places(choice.pieces));
    EXPECT_TRUE(choose(*repository, "What does value7 take?", 0).pieces.empty());
}

TEST(Repository, BeginsWithTheReadmeWhereNothingMatches) {
    const TempDir folder;
    folder.write("README.md", "About\n");
    folder.write("deep/down/a.c", filler("g", 200));
    const auto repository = attach(folder.path());
    ingest(*repository);
    const auto choice = choose(*repository, "Hello?", 300);
    EXPECT_EQ(choice.pieces.front()->path, "README.md");
    EXPECT_TRUE(choice.best.empty());
}

/// A small project with uses, declarations, tests and notes around each definition.
class RankingTest : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_.write("cache/pages.h",
                      "#pragma once\n// Pages of the cache.\n\nclass PageTable;\n\nint "
                      "pageCount(int n_tokens);\n"
                      "inline constexpr int kPageSize = 128;\n\nclass PageTable {\n  public:\n"
                      "    int lookUp(int token, bool must_exist) const;\n};\n");
        folder_.write("cache/pages.cpp",
                      "#include \"cache/pages.h\"\n\nint pageCount(int n_tokens) {\n"
                      "    return (n_tokens + kPageSize - 1) / kPageSize;\n}\n\n" +
                          filler("padding", 40) +
                          "\nint PageTable::lookUp(int token, bool must_exist) const {\n    return "
                          "token;\n}\n");
        folder_.write("app/main.cpp", "int main() {\n" + filler("pageCount", 25) +
                                          filler("table.lookUp", 25) + "}\n");
        folder_.write("tests/pages_test.cpp", "TEST(PageCount, IsRoundedUp) {\n" +
                                                  filler("pageCount", 25) +
                                                  filler("kPageSize +", 25) + "}\n");
        folder_.write("py/session.py",
                      "import os\n\nDEFAULT_TIMEOUT = 30\n\n\nclass Session(object):\n"
                      "    \"\"\"Keeps connections.\"\"\"\n\n    def get(self, url, **kwargs):\n"
                      "        return self.request('GET', url, timeout=DEFAULT_TIMEOUT)\n");
        folder_.write("py/client.py",
                      "from session import Session\n\n\ndef main():\n" + filler("session.get", 40));
        folder_.write(
            "doc/notes.md",
            "The page size is kPageSize. pageCount rounds up. DEFAULT_TIMEOUT is long.\n");
        repository_ = attach(folder_.path());
        ingest(*repository_);
    }

    std::string best(std::string_view question) const {
        const auto choice = choose(*repository_, question, 900);
        return choice.best.empty() ? "" : places({choice.best.front()});
    }

    TempDir folder_;
    std::shared_ptr<Repository> repository_;
};

TEST_F(RankingTest, PutsTheDefinitionFirst) {
    EXPECT_EQ(best("Where is pageCount defined?"), "cache/pages.cpp:1-32");
    EXPECT_EQ(best("What is the value of kPageSize?"), "cache/pages.h:1-12");
    EXPECT_EQ(best("What parameters does `lookUp` take?"), "cache/pages.cpp:33-50");
    EXPECT_EQ(best("Where is the class PageTable?"), "cache/pages.h:1-12");
    EXPECT_EQ(best("What does function get take?"), "py/session.py:1-10");
    EXPECT_EQ(best("What is the value of the constant DEFAULT_TIMEOUT?"), "py/session.py:1-10");
    EXPECT_EQ(best("where is default_timeout set"), "py/session.py:1-10");
}

TEST_F(RankingTest, AnswersFreeQuestionsByWords) {
    EXPECT_EQ(best("Which class keeps connections open?"), "py/session.py:1-10");
    EXPECT_EQ(best("How large is a page of the cache?").substr(0, 11), "cache/pages");
}

TEST_F(RankingTest, PrefersTestsOnlyWhenAsked) {
    EXPECT_EQ(best("Which test checks that the page count is rounded up?"),
              "tests/pages_test.cpp:1-32");
}

TEST_F(RankingTest, TellsNamesOfCodeThatStandNowhere) {
    using Names = std::vector<std::string>;
    const auto absent = [&](std::string_view question) {
        const auto choice = choose(*repository_, question, 900);
        EXPECT_EQ(choice.asks_only_absent, choice.absent_names.size() == 1) << question;
        return choice.absent_names;
    };
    EXPECT_EQ(absent("Where is page_counter defined?"), Names{"page_counter"});
    EXPECT_EQ(absent("Who calls `flush`?"), Names{"flush"});
    EXPECT_EQ(absent("What does evict() take?"), Names{"evict"});
    EXPECT_EQ(absent("What is the value of kPageSizes?"), Names{"kPageSizes"});
    // In the text in another case, in a path, or as an ordinary word.
    EXPECT_EQ(absent("Where is DEFAULT_timeout set?"), Names{});
    EXPECT_EQ(absent("What does pages_test.cpp check?"), Names{});
    EXPECT_EQ(absent("Is utf8 text evicted from the swap?"), Names{});
    EXPECT_EQ(absent("Does Postgres keep sessions?"), Names{});
}

TEST_F(RankingTest, TellsAbsentNamesBesidePresentOnes) {
    const auto choice = choose(*repository_, "Does pageCount call page_counter?", 900);
    EXPECT_EQ(choice.absent_names, std::vector<std::string>{"page_counter"});
    EXPECT_FALSE(choice.asks_only_absent);
}

TEST_F(RankingTest, SurvivesStrangeQuestions) {
    for (const char* question :
         {"", "?", "\" OR *", "a:b NEAR(c)", "\xFF\xFE", "the of and", "'; DROP TABLE file; --"}) {
        EXPECT_TRUE(repository_->choose(question, 500, {}).has_value()) << question;
    }
    EXPECT_TRUE(repository_->choose(std::string(100'000, 'x'), 500, {}).has_value());
}

TEST(Repository, ReadsOnlyWhatChanged) {
    const TempDir folder;
    const TempDir index;
    for (int i = 0; i < 5; ++i) {
        settle(folder.write(
            "f" + std::to_string(i) + ".c",
            "int stale" + std::string(3, static_cast<char>('a' + i)) + "() { return 1; }\n"));
    }
    const RepositoryConfig config{.index_dir = index.path()};
    {
        const auto repository = attach(folder.path(), config);
        EXPECT_EQ(ingest(*repository).n_read, 5U);
        EXPECT_EQ(ingest(*repository).n_read, 0U);
        folder.write("f1.c", "int fresh() { return 1; }\n");
        folder.write("new.c", "int added() { return 1; }\n");
        fs::remove(folder.path() / "f2.c");
        const IngestReport report = ingest(*repository);
        EXPECT_EQ(report.n_read, 2U);
        EXPECT_EQ(report.n_files, 5U);
        EXPECT_EQ(places(choose(*repository, "Where is fresh defined?", 60).best), "f1.c:1-1");
        EXPECT_TRUE(choose(*repository, "stalebbb staleccc", 60).best.empty());
        settleAll(folder.path());
        ingest(*repository);
    }
    const auto again = attach(folder.path(), config);
    const IngestReport report = ingest(*again);
    EXPECT_EQ(report.n_read, 0U);
    EXPECT_EQ(report.n_files, 5U);
    EXPECT_EQ(places(choose(*again, "Where is added defined?", 60).best), "new.c:1-1");
}

TEST(Repository, ReadsAgainWhatChangedWithinTheSameInstant) {
    const TempDir folder;
    const fs::path file = folder.write("a.c", "int alpha;\n");
    const auto time = fs::last_write_time(file);
    const auto repository = attach(folder.path());
    ingest(*repository);
    std::ofstream(file) << "int omega;\n";  // the same size and inode
    fs::last_write_time(file, time);
    ingest(*repository);
    EXPECT_EQ(choose(*repository, "", 1000).pieces.at(0)->text, "\n### a.c:1-1\nint omega;");
}

TEST(Repository, CountsAgainWithAnotherTokenizer) {
    const TempDir folder;
    const TempDir index;
    settle(folder.write("a.c", "int alpha;\n"));
    const RepositoryConfig config{.index_dir = index.path()};
    ingest(*attach(folder.path(), config, "first"));
    const auto repository = attach(folder.path(), config, "second");
    EXPECT_EQ(ingest(*repository).n_read, 1U);
    EXPECT_EQ(ingest(*repository).n_read, 0U);
    EXPECT_EQ(places(choose(*repository, "Where is alpha?", 1000).best), "a.c:1-1");
}

TEST(Repository, MakesADamagedForeignOrNewerIndexAnew) {
    const TempDir folder;
    const TempDir index;
    settle(folder.write("a.c", "int alpha;\n"));
    const RepositoryConfig config{.index_dir = index.path()};
    ingest(*attach(folder.path(), config));
    fs::path database;
    for (const auto& entry : fs::directory_iterator(index.path())) {
        database = entry.path().extension() == ".db" ? entry.path() : database;
    }
    ASSERT_FALSE(database.empty());
    const auto check = [&](const char* what) {
        const auto repository = attach(folder.path(), config);
        EXPECT_EQ(ingest(*repository).n_read, 1U) << what;
        EXPECT_EQ(places(choose(*repository, "Where is alpha?", 1000).best), "a.c:1-1") << what;
    };
    std::ofstream(database) << "this is no database";
    check("no database");
    fs::resize_file(database, fs::file_size(database) / 2);
    check("half");
    ASSERT_TRUE(
        Database::open(database.native())->execute("PRAGMA user_version=999999").has_value());
    check("newer");
    ASSERT_TRUE(
        Database::open(database.native())->execute("UPDATE file SET pieces = x'0102'").has_value());
    check("bad pieces");
    ASSERT_TRUE(Database::open(database.native())
                    ->execute("UPDATE info SET value = '/elsewhere' WHERE key = 'root'")
                    .has_value());
    check("another folder");
}

TEST(Repository, WorksInMemoryBesideAnotherUserOfTheIndex) {
    const TempDir folder;
    const TempDir index;
    settle(folder.write("a.c", "int alpha;\n"));
    const RepositoryConfig config{.index_dir = index.path()};
    const auto first = attach(folder.path(), config);
    const auto second = attach(folder.path(), config);
    ingest(*first);
    EXPECT_EQ(ingest(*second).n_read, 1U);
    EXPECT_EQ(places(choose(*second, "Where is alpha?", 1000).best), "a.c:1-1");
    const TempDir other;
    const auto third =
        attach(folder.path(), {.index_dir = other.write("file", "x") / "below a file"});
    EXPECT_EQ(ingest(*third).n_files, 1U);
}

TEST(Repository, SaysSoWhenTheDiskIsFull) {
    const TempDir folder;
    const TempDir index;
    for (int i = 0; i < 50; ++i) {
        folder.write("f" + std::to_string(i) + ".c", filler("word" + std::to_string(i), 200));
    }
    const auto repository = attach(folder.path(), {.index_dir = index.path()});
    rlimit old_limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{200'000, old_limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const auto report = repository->ingest({}, {});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    std::signal(SIGXFSZ, old_handler);
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, ErrorCode::Io) << report.error().message;
    EXPECT_NE(report.error().message.find(index.path().native()), std::string::npos)
        << report.error().message;
    EXPECT_FALSE(repository->isIngested());
    EXPECT_EQ(ingest(*repository).n_files, 50U);
}

TEST(Repository, KeepsTheOldStateWhenCancelled) {
    const TempDir folder;
    settle(folder.write("a.c", "int alpha;\n"));
    const auto repository = attach(folder.path());
    ingest(*repository);
    for (int i = 0; i < 300; ++i) {
        folder.write("b" + std::to_string(i) + ".c", filler("g", 100));
    }
    std::stop_source stop;
    const auto report = repository->ingest(
        [&](const IngestProgress& progress) {
            if (progress.n_files_total > 0) {
                stop.request_stop();
            }
        },
        stop.get_token());
    // The first report may come with the last file: then there was nothing left to cancel.
    if (!report.has_value()) {
        EXPECT_EQ(report.error().code, ErrorCode::Cancelled);
        EXPECT_EQ(repository->report()->n_files, 1U);
        EXPECT_EQ(places(choose(*repository, "Where is alpha?", 1000).pieces), "a.c:1-1");
    }
    EXPECT_EQ(ingest(*repository).n_files, 301U);
    std::stop_source stopped;
    stopped.request_stop();
    EXPECT_EQ(repository->ingest({}, stopped.get_token()).error().code, ErrorCode::Cancelled);
    EXPECT_EQ(repository->report()->n_files, 301U);
}

TEST(Repository, AnswersWhileItIsIngestedAgain) {
    const TempDir folder;
    const TempDir index;
    for (int i = 0; i < 60; ++i) {
        folder.write("f" + std::to_string(i) + ".c",
                     "int stays" + std::to_string(i) + ";\n" + filler("g", 50));
    }
    const auto repository = attach(folder.path(), {.index_dir = index.path()});
    ingest(*repository);
    std::atomic<bool> is_done = false;
    std::jthread asker([&] {
        while (!is_done) {
            EXPECT_EQ(
                places(choose(*repository, "Where is stays7 defined?", 3000).best).substr(0, 5),
                "f7.c:");
            EXPECT_NE(repository->tree(), nullptr);
        }
    });
    for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < 60; i += 3) {
            folder.write(
                "f" + std::to_string(i + 1 + round % 2) + ".c",
                "int stays" + std::to_string(i + 1 + round % 2) + ";\n" + filler("h", 40 + round));
        }
        ingest(*repository);
    }
    is_done = true;
}

TEST(Repository, ReportsProgressToTheEnd) {
    const TempDir folder;
    for (int i = 0; i < 20; ++i) {
        folder.write("f" + std::to_string(i) + ".c", "int x;\n");
    }
    const auto repository = attach(folder.path());
    std::vector<IngestProgress> seen;
    ASSERT_TRUE(
        repository->ingest([&](const IngestProgress& progress) { seen.push_back(progress); }, {})
            .has_value());
    ASSERT_GE(seen.size(), 2U);
    EXPECT_EQ(seen.front().n_files_total, 0U);
    EXPECT_EQ(seen.back().n_files_done, 20U);
    EXPECT_EQ(seen.back().n_files_total, 20U);
    EXPECT_EQ(seen.back().n_tokens, repository->report()->n_tokens);
}

TEST(Repository, SkipsWithAReasonAndAllowsAgain) {
    const TempDir folder;
    folder.write("big.c", filler("g", 1000));
    folder.write("latin.c", "// M\xFCller\n");
    folder.write(".env", "KEY=1\n");
    folder.write("ok.c", "int ok;\n");
    const TempDir index;
    const auto reasons = [&](uint64_t max_file_bytes) {
        const auto repository =
            attach(folder.path(), {.max_file_bytes = max_file_bytes, .index_dir = index.path()});
        std::string all;
        for (const SkippedFile& skip : ingest(*repository).skipped) {
            all += skip.path + ": " + skipReasonName(skip.reason) + " (" + skip.detail + "); ";
        }
        return all;
    };
    const std::string secret = ".env: looks like a secret (by its name); ";
    const std::string latin =
        "latin.c: not UTF-8 text (invalid UTF-8 from line 1 on: convert it to have it read); ";
    EXPECT_EQ(reasons(10'000), secret + "big.c: too large (0.0 MiB, limit 0.0 MiB); " + latin);
    settleAll(folder.path());
    EXPECT_EQ(reasons(1'000'000), secret + latin);
    EXPECT_EQ(reasons(1'000'000), secret + latin);
    EXPECT_EQ(reasons(10'000), secret + "big.c: too large (0.0 MiB, limit 0.0 MiB); " + latin);
}

TEST(Repository, SurvivesAFileThatBecomesSomethingElse) {
    const TempDir folder;
    folder.write("a.c", "int alpha;\n");
    folder.write("b.c", "int omega;\n");
    const auto repository = attach(folder.path());
    ingest(*repository);
    folder.write("a.c", std::string("\0\0", 2));
    fs::remove(folder.path() / "b.c");
    fs::create_directory(folder.path() / "b.c");
    const IngestReport report = ingest(*repository);
    EXPECT_EQ(report.n_files, 0U);
    EXPECT_EQ(report.skipped.size(), 1U);
    EXPECT_TRUE(choose(*repository, "Where is alpha?", 1000).pieces.empty());
}

TEST(Repository, SaysWhenTheFolderHasVanished) {
    const TempDir parent;
    parent.write("repo/a.c", "int alpha;\n");
    const auto repository = attach(parent.path() / "repo");
    EXPECT_EQ(repository->choose("alpha", 100, {}).error().code, ErrorCode::InvalidArgument);
    ingest(*repository);
    fs::remove_all(parent.path() / "repo");
    EXPECT_EQ(repository->choose("alpha", 100, {}).error().code, ErrorCode::NotFound);
    EXPECT_EQ(repository->ingest({}, {}).error().code, ErrorCode::NotFound);
    EXPECT_EQ(repository->readFile("a.c").error().code, ErrorCode::NotFound);
    EXPECT_TRUE(repository->isIngested());
}

TEST(Repository, ShowsFilesOfTheFolderOnly) {
    const TempDir parent;
    parent.write("outside.c", "int out;\n");
    parent.write("repo/a.c", "one\r\ntwo\r\n\r\n");
    parent.write("repo/data.bin", std::string("a\0b", 3));
    fs::create_symlink("../outside.c", parent.path() / "repo/link.c");
    fs::create_symlink("a.c", parent.path() / "repo/alias.c");
    ASSERT_EQ(::mkfifo((parent.path() / "repo/pipe").c_str(), 0600), 0);
    const auto repository = attach(parent.path() / "repo");
    EXPECT_EQ(repository->readFile("a.c").value(), "one\ntwo");
    EXPECT_EQ(repository->readFile("alias.c").value(), "one\ntwo");
    for (const char* path :
         {"../outside.c", "link.c", "", "/etc/passwd", "data.bin", "pipe", "."}) {
        EXPECT_EQ(repository->readFile(path).error().code, ErrorCode::InvalidArgument) << path;
    }
    EXPECT_EQ(repository->readFile("none.c").error().code, ErrorCode::NotFound);
}

TEST(Repository, IngestsManySmallFiles) {
    const TempDir folder;
    for (int i = 0; i < 5'000; ++i) {
        folder.write("d" + std::to_string(i % 50) + "/f" + std::to_string(i) + ".c",
                     "int v" + std::to_string(i) + " = 1;\n");
    }
    const auto repository = attach(folder.path());
    EXPECT_EQ(ingest(*repository).n_files, 5'000U);
    EXPECT_EQ(places(choose(*repository, "Where is v4321 defined?", 1000).best), "d21/f4321.c:1-1");
}

}  // namespace
}  // namespace belvedere::tools
