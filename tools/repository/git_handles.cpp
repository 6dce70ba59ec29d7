// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/git_handles.h"

namespace belvedere::tools {

std::string lastGitError() {
    const git_error* error = git_error_last();
    return error != nullptr && error->message != nullptr ? error->message : "unknown error";
}

GitRepository makePlainRepository(const std::filesystem::path& work_folder) {
    git_odb* odb = nullptr;
    git_repository* repository = nullptr;
    if (git_odb_new(&odb) != 0) {
        return nullptr;
    }
    const GitOdb odb_owner(odb);
    if (git_repository_wrap_odb(&repository, odb) != 0) {
        return nullptr;
    }
    GitRepository owner(repository);
    if (!work_folder.empty() &&
        git_repository_set_workdir(repository, work_folder.c_str(), 0) != 0) {
        return nullptr;
    }
    return owner;
}

}  // namespace belvedere::tools
