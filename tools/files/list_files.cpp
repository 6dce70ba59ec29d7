// SPDX-License-Identifier: Apache-2.0
#include "tools/files/list_files.h"

#include <optional>

#include "tools/files/glob.h"
#include "tools/files/text.h"
#include "tools/files/tool_paths.h"
#include "tools/files/walk.h"
#include "tools/tool_input.h"

namespace belvedere::tools {
namespace {

constexpr int64_t kDefaultEntries = 500;
constexpr int64_t kMaxEntries = 5000;
constexpr int64_t kDefaultDepth = 2;
constexpr int64_t kMaxDepth = 100;

struct ListFilesInput {
    std::string path = ".";
    std::string pattern;
    int64_t depth = 0;  // 0: kDefaultDepth, or all with a pattern
    int64_t limit = kDefaultEntries;
    bool include_ignored = false;
};

Fields<ListFilesInput> listFilesFields() {
    using In = ListFilesInput;
    return {{&In::path,
             {.name = "path",
              .description = "Folder to list, relative to the workspace. Default: the workspace.",
              .aliases = {"directory", "dir", "folder", "dir_path"}}},
            {&In::pattern,
             {.name = "pattern",
              .description = "Only files that match, e.g. *.cpp (any folder) or src/**/*.h.",
              .aliases = {"glob", "include"}}},
            {&In::depth,
             {.name = "depth",
              .description = "Levels to show. Default: 2, with a pattern all.",
              .aliases = {"max_depth"},
              .min = 1,
              .max = kMaxDepth}},
            {&In::limit,
             {.name = "limit",
              .description = "Most entries to show. Default: 500.",
              .aliases = {"max_entries", "max_results"},
              .min = 1,
              .max = kMaxEntries}},
            {&In::include_ignored,
             {.name = "include_ignored",
              .description = "Also what git ignores. Default: false.",
              .aliases = {"no_ignore"}}}};
}

class ListFiles : public TypedTool<ListFilesInput> {
  public:
    explicit ListFiles(std::shared_ptr<const Workspace> workspace)
        : TypedTool(listFilesFields()), workspace_(std::move(workspace)) {}

    [[nodiscard]] std::string name() const override { return "list_files"; }

    [[nodiscard]] std::string description() const override {
        return "Lists files and folders of the workspace, one path a line; folders end with '/', "
               "symbolic links with "
               "'@' and are not followed. Leaves out .git and what git ignores. Shows 2 levels by "
               "default, at most "
               "500 entries (limit: up to 5000).";
    }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Read; }

  protected:
    [[nodiscard]] std::string titleOf(const ListFilesInput& input) const override {
        return input.pattern.empty()
                   ? "List " + shownPath(input.path)
                   : "List " + showText(input.pattern).text + " in " + shownPath(input.path);
    }

    [[nodiscard]] std::string subjectOf(const ListFilesInput& input) const override {
        return subjectPath(*workspace_, input.path);
    }

    Result<agent::ToolOutput> runTyped(const ListFilesInput& input,
                                       const agent::ToolContext& context) override;

  private:
    std::shared_ptr<const Workspace> workspace_;  ///< immutable
};

Result<agent::ToolOutput> ListFiles::runTyped(const ListFilesInput& input,
                                              const agent::ToolContext& context) {
    const std::filesystem::path folder = BV_TRY(workspace_->resolve(input.path));
    std::optional<Glob> glob;
    if (!input.pattern.empty()) {
        glob = BV_TRY(Glob::parse(input.pattern));
    }
    const int64_t levels = input.depth > 0 ? input.depth : (glob ? kMaxDepth : kDefaultDepth);
    const std::string base = workspace_->relative(folder);
    const size_t base_bytes = base == "." ? 0 : base.size() + 1;

    agent::ToolOutput output;
    int64_t n_entries = 0;
    bool is_cut = false;
    const auto visit = [&](const WalkEntry& entry) {
        const bool is_folder = entry.kind == WalkEntry::Kind::Folder;
        const bool is_deepest = entry.depth >= static_cast<size_t>(levels);
        // A pattern names files, seen from the listed folder or from the workspace.
        const bool is_wanted =
            !glob || (!is_folder &&
                      (glob->matches(entry.path) || glob->matches(entry.path.substr(base_bytes))));
        if (is_wanted) {
            if (n_entries == input.limit) {
                is_cut = true;
                return WalkStep::End;
            }
            ++n_entries;
            output.text += showText(entry.path).text;
            output.text += is_folder ? "/\n" : (entry.kind == WalkEntry::Kind::Link ? "@\n" : "\n");
        }
        return is_deepest ? WalkStep::SkipFolder : WalkStep::Go;
    };
    const WalkSummary summary =
        BV_TRY(walkFolder(*workspace_, folder,
                          {.include_ignored = input.include_ignored, .stop = context.stop}, visit));

    if (n_entries == 0) {
        output.text = glob ? "no file matches\n" : "the folder is empty\n";
    }
    if (is_cut) {
        output.text += fmt::format(
            "[only the first {} entries: name a sub-folder, a pattern or a larger limit]\n",
            input.limit);
    }
    if (summary.n_ignored > 0) {
        output.text += fmt::format("[left out: {} entries that git ignores]\n", summary.n_ignored);
    }
    if (summary.n_unreadable > 0) {
        output.text += fmt::format("[{} folders could not be read]\n", summary.n_unreadable);
    }
    output.data = {{"path", showText(base).text}, {"n_entries", n_entries}, {"is_cut", is_cut}};
    return output;
}

}  // namespace

std::unique_ptr<agent::Tool> makeListFiles(std::shared_ptr<const Workspace> workspace) {
    return std::make_unique<ListFiles>(std::move(workspace));
}

}  // namespace belvedere::tools
