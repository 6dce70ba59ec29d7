// SPDX-License-Identifier: Apache-2.0
#include "tools/files/search_text.h"

#include <algorithm>
#include <optional>

#include <re2/re2.h>

#include "tools/files/file_io.h"
#include "tools/files/glob.h"
#include "tools/files/tool_paths.h"
#include "tools/files/walk.h"

namespace belvedere::tools {
namespace {

constexpr int64_t kDefaultMatches = 100;
constexpr int64_t kMaxMatches = 1000;
constexpr int64_t kMaxContext = 10;
constexpr size_t kMaxMatchBytes = 400;
constexpr size_t kMaxResultBytes = 64 * 1024;
constexpr uint64_t kMaxSearchedFileBytes = 4 << 20;

struct SearchTextInput {
    std::string pattern;
    std::string path = ".";
    std::string glob;
    bool literal = false;
    bool ignore_case = false;
    int64_t context = 0;
    int64_t limit = kDefaultMatches;
    bool include_ignored = false;
};

Fields<SearchTextInput> searchTextFields() {
    using In = SearchTextInput;
    return {{&In::pattern,
             {.name = "pattern",
              .description = "Regular expression (RE2: no look-around, no back-references), "
                             "matched within a line.",
              .is_required = true,
              .aliases = {"query", "regex", "text", "search"}}},
            {&In::path,
             {.name = "path",
              .description = "File or folder to search. Default: the workspace.",
              .aliases = {"directory", "dir", "folder", "file_path"}}},
            {&In::glob,
             {.name = "glob",
              .description = "Only files that match, e.g. *.cpp or src/**/*.{h,cpp}.",
              .aliases = {"include", "file_pattern"}}},
            {&In::literal,
             {.name = "literal",
              .description = "Take the pattern as plain text. Default: false.",
              .aliases = {"fixed_strings", "is_literal"}}},
            {&In::ignore_case,
             {.name = "ignore_case",
              .description = "Upper and lower case are the same. Default: false.",
              .aliases = {"case_insensitive"}}},
            {&In::context,
             {.name = "context",
              .description = "Lines to show before and after each match. Default: 0.",
              .aliases = {"context_lines"},
              .min = 0,
              .max = kMaxContext}},
            {&In::limit,
             {.name = "limit",
              .description = "Most matching lines to show. Default: 100.",
              .aliases = {"max_results", "max_matches"},
              .min = 1,
              .max = kMaxMatches}},
            {&In::include_ignored,
             {.name = "include_ignored",
              .description = "Also files that git ignores. Default: false.",
              .aliases = {"no_ignore"}}}};
}

/// Collects the matches of many files into one answer, within the limits.
class Search {
  public:
    Search(const re2::RE2& expression, const SearchTextInput& input)
        : expression_(expression),
          n_context_(static_cast<size_t>(input.context)),
          limit_(static_cast<size_t>(input.limit)) {}

    /// False: the limit is reached.
    bool file(const std::string& path, std::string_view bytes) {
        ++n_files_;
        const std::vector<std::string_view> lines = linesWithEnds(bytes);
        size_t n_shown = 0;  // lines before this one were shown or passed
        bool has_match = false;
        for (size_t i = 0; i < lines.size(); ++i) {
            const std::string_view line = withoutLineEnd(lines[i]);
            if (!re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), expression_)) {
                continue;
            }
            if (n_matches_ == limit_ || text_.size() >= kMaxResultBytes) {
                is_cut_ = true;
                return false;
            }
            ++n_matches_;
            n_matching_files_ += has_match ? 0 : 1;
            const size_t first = std::max(n_shown, i - std::min(i, n_context_));
            if (n_context_ > 0 && !text_.empty() && (!has_match || first > n_shown)) {
                text_ += "--\n";
            }
            has_match = true;
            show(path, lines, first, i, '-');
            show(path, lines, i, i + 1, ':');
            n_shown = i + 1;
            // What follows, up to the next match, which is shown as one.
            const size_t end = std::min(lines.size(), i + 1 + n_context_);
            while (n_shown < end && !matches(lines[n_shown])) {
                show(path, lines, n_shown, n_shown + 1, '-');
                ++n_shown;
            }
        }
        return true;
    }

    size_t n_binary = 0;
    size_t n_too_large = 0;
    size_t n_secret = 0;
    size_t n_unreadable = 0;

    [[nodiscard]] agent::ToolOutput output(const WalkSummary& walk) const {
        agent::ToolOutput output;
        output.text = text_;
        output.text += fmt::format(
            "[{} matching lines in {} of {} files searched{}]\n", n_matches_, n_matching_files_,
            n_files_, is_cut_ ? "; there are more: narrow the search or raise limit" : "");
        if (n_binary + n_too_large + n_secret + n_unreadable + walk.n_ignored + walk.n_unreadable >
            0) {
            output.text += fmt::format(
                "[not searched: {} binary, {} above 4 MiB, {} that look like secrets, {} "
                "unreadable, {} entries "
                "that git ignores]\n",
                n_binary, n_too_large, n_secret, n_unreadable + walk.n_unreadable, walk.n_ignored);
        }
        output.data = {{"n_matches", n_matches_},
                       {"n_files", n_matching_files_},
                       {"n_files_searched", n_files_},
                       {"is_cut", is_cut_}};
        return output;
    }

  private:
    [[nodiscard]] bool matches(std::string_view line) const {
        line = withoutLineEnd(line);
        return re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), expression_);
    }

    void show(const std::string& path,
              const std::vector<std::string_view>& lines,
              size_t begin,
              size_t end,
              char mark) {
        for (size_t i = begin; i < end; ++i) {
            const std::string line = showText(withoutLineEnd(lines[i])).text;
            const std::string_view cut = cutText(line, kMaxMatchBytes);
            text_ += fmt::format("{}{}{}{} {}{}\n", shownPath(path), mark, i + 1, mark, cut,
                                 cut.size() < line.size() ? " [line cut]" : "");
        }
    }

    const re2::RE2& expression_;
    const size_t n_context_;
    const size_t limit_;
    std::string text_;
    size_t n_matches_ = 0;
    size_t n_files_ = 0;
    size_t n_matching_files_ = 0;
    bool is_cut_ = false;
};

class SearchText : public TypedTool<SearchTextInput> {
  public:
    explicit SearchText(std::shared_ptr<const Workspace> workspace)
        : TypedTool(searchTextFields()), workspace_(std::move(workspace)) {}

    [[nodiscard]] std::string name() const override { return "search_text"; }

    [[nodiscard]] std::string description() const override {
        return "Searches the text files of the workspace for a regular expression or a plain text. "
               "Matches are shown "
               "as path:line: text, context as path-line- text. Leaves out .git, what git ignores, "
               "binary files, files "
               "above 4 MiB and files whose names look like secrets. At most 100 matching lines "
               "(limit: up to 1000) "
               "and 64 KiB; lines are cut at 400 bytes.";
    }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Read; }

  protected:
    [[nodiscard]] std::string titleOf(const SearchTextInput& input) const override {
        return fmt::format("Search \"{}\" in {}", shownPath(input.pattern), shownPath(input.path));
    }

    [[nodiscard]] std::string subjectOf(const SearchTextInput& input) const override {
        return subjectPath(*workspace_, input.path);
    }

    [[nodiscard]] agent::Verdict verdictOf(const SearchTextInput& input) const override {
        return verdictForReading(*workspace_, input.path);
    }

    Result<agent::ToolOutput> runTyped(const SearchTextInput& input,
                                       const agent::ToolContext& context) override;

  private:
    void searchOne(Search& search, const std::string& relative, bool& goes_on) const;

    std::shared_ptr<const Workspace> workspace_;  ///< immutable
};

void SearchText::searchOne(Search& search, const std::string& relative, bool& goes_on) const {
    const Result<FileContent> content =
        readWholeFile(*workspace_, workspace_->root() / relative, kMaxSearchedFileBytes);
    if (!content.has_value()) {
        ++(content.error().code == ErrorCode::Unsupported ? search.n_too_large
                                                          : search.n_unreadable);
    } else if (isBinary(content->bytes)) {
        ++search.n_binary;
    } else {
        goes_on = search.file(relative, content->bytes);
    }
}

Result<agent::ToolOutput> SearchText::runTyped(const SearchTextInput& input,
                                               const agent::ToolContext& context) {
    if (input.pattern.empty()) {
        return fail(ErrorCode::InvalidArgument, "search_text: pattern: is empty");
    }
    const std::filesystem::path path = BV_TRY(workspace_->resolve(input.path));
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_literal(input.literal);
    options.set_case_sensitive(!input.ignore_case);
    const re2::RE2 expression(input.pattern, options);
    if (!expression.ok()) {
        return fail(ErrorCode::InvalidArgument,
                    "search_text: pattern: {} (set literal to search for plain text)",
                    expression.error());
    }
    std::optional<Glob> glob;
    if (!input.glob.empty()) {
        glob = BV_TRY(Glob::parse(input.glob));
    }

    Search search(expression, input);
    std::error_code error;
    if (std::filesystem::is_regular_file(
            path, error)) {  // named by the user or the model: searched in any case
        const FileContent content = BV_TRY(readWholeFile(*workspace_, path, kMaxFileBytes));
        if (isBinary(content.bytes)) {
            return fail(ErrorCode::Unsupported, "{}: is a binary file", shownPath(input.path));
        }
        (void)search.file(workspace_->relative(path), content.bytes);
        return search.output({});
    }
    const std::string base = workspace_->relative(path);
    const size_t base_bytes = base == "." ? 0 : base.size() + 1;
    const auto visit = [&](const WalkEntry& entry) {
        bool goes_on = true;
        if (entry.kind == WalkEntry::Kind::File &&
            (!glob || glob->matches(entry.path) || glob->matches(entry.path.substr(base_bytes)))) {
            if (looksLikeSecretFile(entry.path)) {
                ++search.n_secret;
            } else {
                searchOne(search, entry.path, goes_on);
            }
        }
        return goes_on ? WalkStep::Go : WalkStep::End;
    };
    const WalkSummary walk =
        BV_TRY(walkFolder(*workspace_, path,
                          {.include_ignored = input.include_ignored, .stop = context.stop}, visit));
    return search.output(walk);
}

}  // namespace

std::unique_ptr<agent::Tool> makeSearchText(std::shared_ptr<const Workspace> workspace) {
    return std::make_unique<SearchText>(std::move(workspace));
}

}  // namespace belvedere::tools
