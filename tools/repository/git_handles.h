// SPDX-License-Identifier: Apache-2.0
#pragma once

// Owners of libgit2 objects. Only for the files of the walk.

#include <filesystem>
#include <memory>
#include <string>

#include <git2.h>

namespace belvedere::tools {

template <auto Free>
struct GitFree {
    template <class T>
    void operator()(T* pointer) const {
        Free(pointer);
    }
};

using GitRepository = std::unique_ptr<git_repository, GitFree<git_repository_free>>;
using GitIndex = std::unique_ptr<git_index, GitFree<git_index_free>>;
using GitDiff = std::unique_ptr<git_diff, GitFree<git_diff_free>>;
using GitOdb = std::unique_ptr<git_odb, GitFree<git_odb_free>>;
using GitReference = std::unique_ptr<git_reference, GitFree<git_reference_free>>;

/// What libgit2 said last on this thread.
[[nodiscard]] std::string lastGitError();

/// A repository of no objects and no folder of its own, only to ask for the ignore rules of
/// `work_folder` ("" for none: then only of rules added to it). Null where libgit2 fails. Nothing
/// is written.
[[nodiscard]] GitRepository makePlainRepository(const std::filesystem::path& work_folder);

}  // namespace belvedere::tools
