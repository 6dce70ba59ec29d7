// SPDX-License-Identifier: Apache-2.0
#include "tools/files/diff.h"

#include <algorithm>

#include <fmt/core.h>

#include "tools/files/text.h"

namespace belvedere::tools {
namespace {

using Lines = std::vector<std::string_view>;

constexpr int kMaxDifferences = 1000;  // the trace below takes 4 * 1000^2 bytes
constexpr size_t kContextLines = 3;

/// Appends, joining runs of one kind that touch.
void append(std::vector<DiffRun>& runs, const DiffRun& run) {
    if (run.n_old == 0 && run.n_new == 0) {
        return;
    }
    if (!runs.empty() && runs.back().kind == run.kind) {
        runs.back().n_old += run.n_old;
        runs.back().n_new += run.n_new;
    } else {
        runs.push_back(run);
    }
}

/// Myers' greedy search between two sequences with nothing in common at either end. x counts old
/// lines, y new lines, k = x - y is a diagonal; farthest[k] is the largest x that d differences
/// reach on it.
class MyersSearch {
  public:
    MyersSearch(
        const Lines& old_lines, const Lines& new_lines, size_t start, size_t n_old, size_t n_new)
        : old_(old_lines),
          new_(new_lines),
          start_(start),
          n_old_(static_cast<int>(n_old)),
          n_new_(static_cast<int>(n_new)) {}

    void run(std::vector<DiffRun>& runs) {
        if (n_old_ > 0 && n_new_ > 0 && search()) {
            trace(runs);
        } else {
            append(runs, changeOf(0, n_old_, 0, n_new_));
        }
    }

  private:
    /// Fills history_; false: too many differences.
    bool search() {
        const int limit = std::min(n_old_ + n_new_, kMaxDifferences);
        std::vector<int> farthest(static_cast<size_t>(2 * limit + 3), 0);
        const auto at = [&](int k) -> int& { return farthest[static_cast<size_t>(k + limit + 1)]; };
        for (int d = 0; d <= limit; ++d) {
            for (int k = -d; k <= d; k += 2) {
                int x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
                while (x < n_old_ && x - k < n_new_ && x - k >= 0 && isSame(x, x - k)) {
                    ++x;
                }
                at(k) = x;
                if (x >= n_old_ && x - k >= n_new_) {
                    history_.emplace_back();
                    return true;
                }
            }
            // Row d: diagonals -d to d.
            const auto middle = farthest.begin() + limit + 1;
            history_.emplace_back(middle - d, middle + d + 1);
        }
        return false;
    }

    /// Walks back from the end; each step is one inserted or deleted line and the equal lines
    /// behind it.
    void trace(std::vector<DiffRun>& runs) {
        std::vector<DiffRun> reversed;
        int x = n_old_;
        int y = n_new_;
        for (int d = static_cast<int>(history_.size()) - 1; d > 0; --d) {
            const std::vector<int>& row = history_[static_cast<size_t>(d - 1)];
            const auto at = [&](int k) {
                return k < -(d - 1) || k > d - 1 ? -1 : row[static_cast<size_t>(k + d - 1)];
            };
            const int k = x - y;
            const bool is_insertion = k == -d || (k != d && at(k - 1) < at(k + 1));
            const int x_before = is_insertion ? at(k + 1) : at(k - 1);
            const int y_before = x_before - (is_insertion ? k + 1 : k - 1);
            const int x_after = is_insertion ? x_before : x_before + 1;
            const int y_after = is_insertion ? y_before + 1 : y_before;
            reversed.push_back(equalOf(x_after, y_after, x - x_after));
            reversed.push_back(
                changeOf(x_before, x_after - x_before, y_before, y_after - y_before));
            x = x_before;
            y = y_before;
        }
        reversed.push_back(equalOf(0, 0, x));
        for (auto run = reversed.rbegin(); run != reversed.rend(); ++run) {
            append(runs, *run);
        }
    }

    [[nodiscard]] bool isSame(int x, int y) const {
        return old_[start_ + static_cast<size_t>(x)] == new_[start_ + static_cast<size_t>(y)];
    }

    [[nodiscard]] DiffRun equalOf(int x, int y, int n) const {
        return {DiffRun::Kind::Equal, start_ + static_cast<size_t>(x), static_cast<size_t>(n),
                start_ + static_cast<size_t>(y), static_cast<size_t>(n)};
    }

    [[nodiscard]] DiffRun changeOf(int x, int n_deleted, int y, int n_inserted) const {
        return {DiffRun::Kind::Change, start_ + static_cast<size_t>(x),
                static_cast<size_t>(n_deleted), start_ + static_cast<size_t>(y),
                static_cast<size_t>(n_inserted)};
    }

    const Lines& old_;
    const Lines& new_;
    const size_t start_;
    const int n_old_;
    const int n_new_;
    std::vector<std::vector<int>> history_;  ///< farthest x by d, then diagonal
};

void writeLines(std::string& out, char mark, const Lines& lines, size_t first, size_t n) {
    for (size_t i = first; i < first + n; ++i) {
        out += mark;
        out += showText(lines[i]).text;
        if (!lines[i].ends_with('\n')) {
            out += "\n\\ No newline at end of file\n";
        }
    }
}

/// "3,2": one line is only its number, no lines are the line before them.
std::string rangeText(size_t first, size_t n) {
    if (n == 1) {
        return fmt::format("{}", first + 1);
    }
    return fmt::format("{},{}", n == 0 ? first : first + 1, n);
}

/// One hunk: the changes runs[begin, end) (with the equal runs between them) and the context around
/// them.
void writeHunk(std::string& out,
               const Lines& old_lines,
               const Lines& new_lines,
               const std::vector<DiffRun>& runs,
               size_t begin,
               size_t end) {
    const size_t before = begin > 0 ? std::min(kContextLines, runs[begin - 1].n_old) : 0;
    const size_t after = end < runs.size() ? std::min(kContextLines, runs[end].n_old) : 0;
    const DiffRun& last = runs[end - 1];
    const size_t old_first = runs[begin].old_first - before;
    const size_t new_first = runs[begin].new_first - before;
    const size_t old_end = last.old_first + last.n_old + after;
    const size_t new_end = last.new_first + last.n_new + after;
    out += fmt::format("@@ -{} +{} @@\n", rangeText(old_first, old_end - old_first),
                       rangeText(new_first, new_end - new_first));
    writeLines(out, ' ', old_lines, old_first, before);
    for (size_t i = begin; i < end; ++i) {
        const DiffRun& run = runs[i];
        if (run.kind == DiffRun::Kind::Equal) {
            writeLines(out, ' ', old_lines, run.old_first, run.n_old);
        } else {
            writeLines(out, '-', old_lines, run.old_first, run.n_old);
            writeLines(out, '+', new_lines, run.new_first, run.n_new);
        }
    }
    writeLines(out, ' ', old_lines, last.old_first + last.n_old, after);
}

}  // namespace

std::vector<DiffRun> diffLines(const Lines& old_lines, const Lines& new_lines) {
    const size_t n_shorter = std::min(old_lines.size(), new_lines.size());
    size_t n_start = 0;
    while (n_start < n_shorter && old_lines[n_start] == new_lines[n_start]) {
        ++n_start;
    }
    size_t n_end = 0;
    while (n_end < n_shorter - n_start &&
           old_lines[old_lines.size() - 1 - n_end] == new_lines[new_lines.size() - 1 - n_end]) {
        ++n_end;
    }
    std::vector<DiffRun> runs;
    append(runs, {DiffRun::Kind::Equal, 0, n_start, 0, n_start});
    MyersSearch(old_lines, new_lines, n_start, old_lines.size() - n_start - n_end,
                new_lines.size() - n_start - n_end)
        .run(runs);
    append(runs, {DiffRun::Kind::Equal, old_lines.size() - n_end, n_end, new_lines.size() - n_end,
                  n_end});
    return runs;
}

std::string unifiedDiff(const std::string& path,
                        const std::string* old_text,
                        const std::string* new_text) {
    const Lines old_lines = old_text == nullptr ? Lines() : linesWithEnds(*old_text);
    const Lines new_lines = new_text == nullptr ? Lines() : linesWithEnds(*new_text);
    const std::vector<DiffRun> runs = diffLines(old_lines, new_lines);
    std::string out;
    size_t i = 0;
    while (i < runs.size()) {
        if (runs[i].kind == DiffRun::Kind::Equal) {
            ++i;
            continue;
        }
        size_t end = i + 1;
        // A short equal run between two changes belongs to the same hunk.
        while (end + 1 < runs.size() && runs[end].n_old <= 2 * kContextLines) {
            end += 2;
        }
        writeHunk(out, old_lines, new_lines, runs, i, end);
        i = end;
    }
    if (out.empty()) {
        return out;
    }
    const std::string shown = showText(path).text;
    return fmt::format("--- {}\n+++ {}\n{}", old_text == nullptr ? "/dev/null" : "a/" + shown,
                       new_text == nullptr ? "/dev/null" : "b/" + shown, out);
}

}  // namespace belvedere::tools
