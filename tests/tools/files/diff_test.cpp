// SPDX-License-Identifier: Apache-2.0
#include "tools/files/diff.h"

#include <random>

#include <gtest/gtest.h>

namespace belvedere::tools {
namespace {

std::string diff(const std::string& old_text, const std::string& new_text) {
    return unifiedDiff("f", &old_text, &new_text);
}

TEST(Diff, EqualTextsHaveNone) {
    EXPECT_EQ(diff("", ""), "");
    EXPECT_EQ(diff("a\nb\n", "a\nb\n"), "");
}

TEST(Diff, OneChangedLineWithItsContext) {
    EXPECT_EQ(diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
              "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(Diff, FarChangesAreTwoHunksAndNearOnesOne) {
    EXPECT_EQ(diff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n"),
              "--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n"
              "@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
    EXPECT_EQ(diff("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n"),
              "--- a/f\n+++ b/f\n@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
}

TEST(Diff, NewAndRemovedFilesAndMissingLineEnds) {
    const std::string text = "x\ny";
    EXPECT_EQ(unifiedDiff("f", nullptr, &text),
              "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n");
    EXPECT_EQ(unifiedDiff("f", &text, nullptr),
              "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n\\ No newline at end of file\n");
    EXPECT_EQ(diff("x\n", "x"),
              "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+x\n\\ No newline at end of file\n");
}

TEST(Diff, ShowsForeignBytesAsText) {
    EXPECT_EQ(diff("\xE9\n", "e\n"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-\\xE9\n+e\n");
}

/// What the runs say, applied to the old lines.
std::vector<std::string_view> applied(const std::vector<DiffRun>& runs,
                                      const std::vector<std::string_view>& old_lines,
                                      const std::vector<std::string_view>& new_lines) {
    std::vector<std::string_view> result;
    size_t old_at = 0;
    size_t new_at = 0;
    for (const DiffRun& run : runs) {
        EXPECT_EQ(run.old_first, old_at);
        EXPECT_EQ(run.new_first, new_at);
        const bool is_equal = run.kind == DiffRun::Kind::Equal;
        EXPECT_TRUE(!is_equal || run.n_old == run.n_new);
        for (size_t i = 0; i < run.n_new; ++i) {
            result.push_back(is_equal ? old_lines[old_at + i] : new_lines[new_at + i]);
        }
        old_at += run.n_old;
        new_at += run.n_new;
    }
    EXPECT_EQ(old_at, old_lines.size());
    return result;
}

/// Lines kept by the best possible edit: longest common subsequence by the textbook table.
size_t longestCommon(const std::vector<std::string_view>& a,
                     const std::vector<std::string_view>& b) {
    std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
    for (size_t i = 1; i <= a.size(); ++i) {
        for (size_t j = 1; j <= b.size(); ++j) {
            table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1
                                               : std::max(table[i - 1][j], table[i][j - 1]);
        }
    }
    return table[a.size()][b.size()];
}

TEST(Diff, RandomTextsAreRebuiltWithTheFewestChanges) {
    std::mt19937 random(7);
    const std::vector<std::string_view> words = {"a\n", "b\n", "c\n", "d\n"};
    const auto lines = [&] {
        std::vector<std::string_view> result;
        for (size_t n = random() % 30; n > 0; --n) {
            result.push_back(words[random() % words.size()]);
        }
        return result;
    };
    for (int i = 0; i < 2000; ++i) {
        const auto old_lines = lines();
        const auto new_lines = lines();
        const std::vector<DiffRun> runs = diffLines(old_lines, new_lines);
        ASSERT_EQ(applied(runs, old_lines, new_lines), new_lines);
        size_t n_kept = 0;
        for (const DiffRun& run : runs) {
            n_kept += run.kind == DiffRun::Kind::Equal ? run.n_old : 0;
        }
        ASSERT_EQ(n_kept, longestCommon(old_lines, new_lines));
    }
}

TEST(Diff, TooManyDifferencesAreOneRightChange) {
    std::vector<std::string> storage;
    for (int i = 0; i < 6000; ++i) {
        storage.push_back(std::to_string(i) + "\n");
    }
    const std::vector<std::string_view> old_lines(storage.begin(), storage.begin() + 3000);
    const std::vector<std::string_view> new_lines(storage.begin() + 3000, storage.end());
    const std::vector<DiffRun> runs = diffLines(old_lines, new_lines);
    EXPECT_EQ(runs.size(), 1U);
    EXPECT_EQ(applied(runs, old_lines, new_lines), new_lines);
}

}  // namespace
}  // namespace belvedere::tools
