// SPDX-License-Identifier: Apache-2.0
#include "tools/files/ignore_rules.h"

#include <git2.h>

namespace belvedere::tools {

IgnoreRules::IgnoreRules(const Workspace& workspace) {
    git_libgit2_init();
    if (git_repository_open_ext(&repository_, workspace.root().c_str(), 0, nullptr) != 0) {
        repository_ = nullptr;
        return;
    }
    const char* folder = git_repository_workdir(repository_);
    if (folder == nullptr) {
        git_repository_free(repository_);
        repository_ = nullptr;
        return;
    }
    std::error_code error;
    const std::filesystem::path top = std::filesystem::canonical(folder, error);
    const std::string prefix =
        error ? "." : workspace.root().lexically_relative(top).generic_string();
    prefix_ = prefix == "." ? "" : prefix + "/";
}

IgnoreRules::~IgnoreRules() {
    git_repository_free(repository_);
    git_libgit2_shutdown();
}

bool IgnoreRules::ignores(const std::string& path, bool is_folder) const {
    if (repository_ == nullptr) {
        return false;
    }
    const std::string full = prefix_ + path;
    int is_ignored = 0;
    // A rule that ends with '/' holds for folders only; the slash says that this is one.
    if (git_ignore_path_is_ignored(&is_ignored, repository_,
                                   (is_folder ? full + "/" : full).c_str()) != 0 ||
        is_ignored == 0) {
        return false;
    }
    git_index* index = nullptr;
    if (git_repository_index(&index, repository_) != 0) {
        return true;
    }
    size_t position = 0;
    const bool is_tracked = is_folder
                                ? git_index_find_prefix(&position, index, (full + "/").c_str()) == 0
                                : git_index_get_bypath(index, full.c_str(), 0) != nullptr;
    git_index_free(index);
    return !is_tracked;
}

}  // namespace belvedere::tools
