// SPDX-License-Identifier: Apache-2.0
#pragma once

// libgit2 (1.5) drops a rule `!name` without wildcards unless the same file has a rule that it
// negates; git does not: a nested .gitignore may let in what one above it, or the global file,
// ignores. This asks again about the paths that libgit2 calls ignored, with its own matcher. One
// thread.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tools/repository/git_handles.h"

namespace belvedere::tools {

class LostNegations {
  public:
    enum class Verdict { Ignored, LetIn, Unknown };

    explicit LostNegations(std::filesystem::path work_folder)
        : work_folder_(std::move(work_folder)) {}

    /// What the .gitignore files from `folder` up say of `path`; the deepest that matches decides.
    /// Both are relative to the work folder; `folder` has a last '/' or is ""; `path` has one where
    /// it is a folder.
    [[nodiscard]] Verdict judge(std::string_view path, std::string_view folder);

    /// True for what libgit2 wrongly calls ignored.
    [[nodiscard]] bool letsIn(std::string_view path);

  private:
    struct RuleFile {
        GitRepository
            after_all_let_in;  ///< the file's rules after one that lets all in: what they ignore
        GitRepository
            after_all_ignored;  ///< the file's rules after one that ignores all: what they let in
        bool has_plain_negation = false;
    };

    const std::optional<RuleFile>& ruleFile(const std::string& folder);

    std::filesystem::path work_folder_;
    std::map<std::string, std::optional<RuleFile>, std::less<>> rule_files_;
};

/// The folder of a path, with a last '/'; "" at the top. A last '/' of the path itself does not
/// count.
[[nodiscard]] std::string_view folderOf(std::string_view path);

}  // namespace belvedere::tools
