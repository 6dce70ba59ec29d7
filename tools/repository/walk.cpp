// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/walk.h"

#include <algorithm>
#include <array>
#include <memory>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "tools/repository/git_handles.h"
#include "tools/repository/lost_negations.h"
#include "tools/repository/safe_reader.h"

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kTypeMask = 0170000;
constexpr unsigned kGitLink = 0160000;
constexpr unsigned kSymbolicLink = 0120000;
constexpr unsigned kFolder = 0040000;

/// libgit2's own state is global and counted; ours lives as long as the program.
void startGit() {
    struct Library {
        Library() {
            git_libgit2_init();
            // We only read, so a checkout of another user (a mounted folder) is no danger: hooks
            // and filters never run.
            git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
            // Extensions that change nothing about the index and the ignore rules.
            std::array<const char*, 3> extensions = {"worktreeconfig", "partialclone",
                                                     "preciousobjects"};
            git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, extensions.data(), extensions.size());
        }

        ~Library() { git_libgit2_shutdown(); }
    };

    static const Library library;
}

/// As libgit2 names it: relative to the work folder, folders with a last '/'.
struct Entry {
    std::string path;
    unsigned mode = 0;
};

class Walker {
  public:
    Walker(const fs::path& root, size_t max_files, const std::stop_token& stop)
        : root_(root), max_files_(max_files), stop_(stop) {}

    Result<WalkResult> walk();

  private:
    Result<void> open();
    Result<void> openPlain();
    [[nodiscard]] bool isIgnoredWhole(git_repository* repository) const;
    void readHead();
    Result<void> listPresent();
    Result<void> listLetIn(const std::string& folder,
                           const fs::path& work_folder,
                           LostNegations& negations);
    Result<void> list(git_repository* repository, std::string prefix);
    Result<void> listTracked();
    void addPresent(std::string path, unsigned mode);
    void addTracked(const git_index_entry& entry, const std::string& path, bool is_present);
    void addLink(const std::string& path);
    void addUnreadableFolders();
    void sortAndLimit();

    void skip(std::string path, SkipReason reason, std::string detail) {
        result_.skipped.push_back({std::move(path), reason, std::move(detail)});
    }

    void addGitTrouble(const char* path, const std::string& message) {
        skip(path, SkipReason::Unreadable,
             fmt::format("only .gitignore tells what is ignored, git cannot read it: {}", message));
    }

    static int onFile(const git_diff* diff, const git_diff_delta* delta, const char*, void* self);
    static int onEntry(const git_diff* diff, const char*, const char* path, void* self);

    const fs::path& root_;
    size_t max_files_;
    const std::stop_token& stop_;
    GitRepository repository_;
    std::string prefix_;  ///< of root_ in the working folder, with a last '/'; "" at its top
    std::string base_;    ///< before the paths of the pass that runs, with a last '/'
    std::vector<Entry> present_;  ///< of the pass that runs
    std::vector<Entry> ignored_;  ///< by libgit2's word; folders stand for all in them
    std::vector<std::string> unreadable_folders_;
    WalkResult result_;
};

Result<WalkResult> Walker::walk() {
    BV_TRY(open());
    readHead();
    BV_TRY(listPresent());
    if (result_.is_git) {
        BV_TRY(listTracked());
    }
    addUnreadableFolders();
    sortAndLimit();
    return std::move(result_);
}

Result<void> Walker::open() {
    git_repository* found = nullptr;
    if (git_repository_open_ext(&found, root_.c_str(), 0, nullptr) != 0) {
        const std::string message = lastGitError();
        std::error_code code;
        if (fs::exists(root_ / ".git", code)) {
            addGitTrouble(".git", message);
        }
        return openPlain();
    }
    GitRepository repository(found);
    std::error_code code;
    const char* work_folder = git_repository_workdir(found);
    const fs::path top = work_folder == nullptr ? fs::path() : fs::canonical(work_folder, code);
    const fs::path git_folder = fs::canonical(git_repository_path(found), code);
    const auto [end, unused] =
        std::mismatch(git_folder.begin(), git_folder.end(), root_.begin(), root_.end());
    if (end == git_folder.end() && (work_folder == nullptr ? git_folder == root_ : true)) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: git's own folder has no source files: attach a checkout", root_.native());
    }
    if (work_folder == nullptr) {
        return openPlain();
    }
    git_index* index = nullptr;
    if (git_repository_index(&index, found) != 0) {
        addGitTrouble(".git/index", lastGitError());
        return openPlain();
    }
    const GitIndex index_owner(index);
    const fs::path relative = root_.lexically_relative(top);
    prefix_ = relative == "." ? "" : relative.generic_string() + "/";
    if (prefix_.starts_with("../") || isIgnoredWhole(found)) {
        prefix_.clear();
        return openPlain();
    }
    repository_ = std::move(repository);
    result_.is_git = true;
    return {};
}

/// A folder that an outer repository ignores and tracks nothing of (a build folder, a download)
/// stands for itself.
bool Walker::isIgnoredWhole(git_repository* repository) const {
    int is_ignored = 0;
    if (prefix_.empty() ||
        git_ignore_path_is_ignored(&is_ignored, repository, prefix_.c_str()) != 0 ||
        is_ignored == 0) {
        return false;
    }
    git_index* index = nullptr;
    if (git_repository_index(&index, repository) != 0) {
        return true;
    }
    const GitIndex owner(index);
    return git_index_find_prefix(nullptr, index, prefix_.c_str()) != 0;
}

Result<void> Walker::openPlain() {
    repository_ = makePlainRepository(root_);
    if (repository_ == nullptr) {
        return fail(ErrorCode::NotFound, "walking {}: {}", root_.native(), lastGitError());
    }
    return {};
}

void Walker::readHead() {
    git_reference* head = nullptr;
    if (!result_.is_git || git_repository_head(&head, repository_.get()) != 0) {
        return;
    }
    const GitReference owner(head);
    if (const git_oid* id = git_reference_target(head); id != nullptr) {
        std::array<char, GIT_OID_HEXSZ + 1> text{};
        result_.head = git_oid_tostr(text.data(), text.size(), id);
    }
}

Result<void> Walker::listPresent() {
    BV_TRY(list(repository_.get(), prefix_));
    const fs::path work_folder = git_repository_workdir(repository_.get());
    LostNegations negations(work_folder);
    // A copy: the folders listed below add to what is ignored.
    for (const Entry& entry : std::exchange(ignored_, {})) {
        if (!negations.letsIn(entry.path)) {
            continue;
        }
        if ((entry.mode & kTypeMask) == kFolder) {
            BV_TRY(listLetIn(entry.path, work_folder, negations));
        } else {
            addPresent(entry.path, entry.mode);
        }
    }
    return {};
}

/// A folder that a lost negation lets in: its own rules by libgit2, then those of the folders above
/// it.
Result<void> Walker::listLetIn(const std::string& folder,
                               const fs::path& work_folder,
                               LostNegations& negations) {
    const GitRepository inner = makePlainRepository(work_folder / folder);
    if (inner == nullptr) {
        return fail(ErrorCode::Io, "walking {}: {}", folder, lastGitError());
    }
    std::vector<Entry> outer = std::exchange(present_, {});
    base_ = folder;
    const Result<void> listed = list(inner.get(), "");
    base_.clear();
    std::vector<Entry> found = std::exchange(present_, std::move(outer));
    BV_TRY(Result<void>(listed));
    for (const Entry& entry : found) {
        bool is_ignored = false;
        for (size_t end = entry.path.find('/', folder.size()); !is_ignored;
             end = entry.path.find('/', end + 1)) {
            const std::string part = entry.path.substr(0, end == std::string::npos ? end : end + 1);
            is_ignored = negations.judge(part, folderOf(folder)) == LostNegations::Verdict::Ignored;
            if (end == std::string::npos || end + 1 == entry.path.size()) {
                break;
            }
        }
        if (!is_ignored) {
            addPresent(entry.path, entry.mode);
        }
    }
    return {};
}

/// Every file that is not ignored is "untracked" against an empty index: one pass of libgit2's own
/// walker, which reads each folder and each rule file once.
Result<void> Walker::list(git_repository* repository, std::string prefix) {
    git_index* empty = nullptr;
    if (git_index_new(&empty) != 0) {
        return fail(ErrorCode::OutOfMemory, "walking {}: {}", root_.native(), lastGitError());
    }
    const GitIndex index_owner(empty);
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    options.flags = GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS |
                    GIT_DIFF_INCLUDE_IGNORED | GIT_DIFF_DISABLE_PATHSPEC_MATCH;
    options.notify_cb = onFile;
    options.progress_cb = onEntry;
    options.payload = this;
    char* pathspec = prefix.data();
    if (!prefix.empty()) {
        options.pathspec = {&pathspec, 1};
    }
    git_diff* diff = nullptr;
    const int status = git_diff_index_to_workdir(&diff, repository, empty, &options);
    const GitDiff diff_owner(diff);
    if (stop_.stop_requested()) {
        return fail(ErrorCode::Cancelled, "walking {}: cancelled", root_.native());
    }
    std::error_code code;
    if (!fs::is_directory(root_, code)) {
        return fail(ErrorCode::NotFound, "{}: the folder has vanished", root_.native());
    }
    if (status != 0) {
        return fail(ErrorCode::Io, "walking {}: {}", root_.native(), lastGitError());
    }
    if (base_.empty()) {
        for (const Entry& entry : std::exchange(present_, {})) {
            addPresent(entry.path, entry.mode);
        }
    }
    return {};
}

int Walker::onFile(const git_diff* /*diff*/,
                   const git_diff_delta* delta,
                   const char* /*spec*/,
                   void* self) {
    constexpr int kDoNotKeep = 1;
    auto* walker = static_cast<Walker*>(self);
    auto& entries = delta->status == GIT_DELTA_IGNORED ? walker->ignored_ : walker->present_;
    entries.push_back({walker->base_ + delta->new_file.path, delta->new_file.mode});
    return kDoNotKeep;
}

int Walker::onEntry(const git_diff* /*diff*/,
                    const char* /*old_path*/,
                    const char* path,
                    void* self) {
    auto* walker = static_cast<Walker*>(self);
    if (path != nullptr && std::string_view(path).ends_with('/') &&
        ::access(
            (fs::path(git_repository_workdir(walker->repository_.get())) / walker->base_ / path)
                .c_str(),
            R_OK | X_OK) != 0) {
        walker->unreadable_folders_.push_back(walker->base_ +
                                              path);  // libgit2 takes it for an empty one
    }
    return walker->stop_.stop_requested() ? -1 : 0;
}

void Walker::addPresent(std::string path, unsigned mode) {
    if (!path.starts_with(prefix_)) {
        return;
    }
    path.erase(0, prefix_.size());
    switch (mode & kTypeMask) {
        case kGitLink:
            return;  // listTracked has it
        case kFolder:
            path.erase(path.find_last_not_of('/') + 1);
            return skip(std::move(path), SkipReason::Submodule,
                        "a repository of its own: attach it by itself");
        case kSymbolicLink:
            return addLink(path);
        default:
            result_.files.push_back(std::move(path));
    }
}

Result<void> Walker::listTracked() {
    git_index* index = nullptr;
    if (git_repository_index(&index, repository_.get()) != 0) {
        return fail(ErrorCode::Io, "walking {}: {}", root_.native(), lastGitError());
    }
    const GitIndex owner(index);
    std::sort(result_.files.begin(), result_.files.end());
    const size_t n_present = result_.files.size();
    std::string last;
    for (size_t i = 0; i < git_index_entrycount(index); ++i) {
        const git_index_entry* entry = git_index_get_byindex(index, i);
        std::string path = entry->path;
        if (!path.starts_with(prefix_) ||
            path == last) {  // the same path again: stages of a conflict
            continue;
        }
        last = path;
        path.erase(0, prefix_.size());
        const auto end = result_.files.begin() + static_cast<std::ptrdiff_t>(n_present);
        addTracked(*entry, path, std::binary_search(result_.files.begin(), end, path));
        if (i % 1024 == 0 && stop_.stop_requested()) {
            return fail(ErrorCode::Cancelled, "walking {}: cancelled", root_.native());
        }
    }
    return {};
}

void Walker::addTracked(const git_index_entry& entry, const std::string& path, bool is_present) {
    if ((entry.mode & kTypeMask) == kGitLink) {
        return skip(path, SkipReason::Submodule, "a submodule: attach it by itself");
    }
    if (is_present) {
        return;
    }
    struct stat status{};
    if (::lstat((root_ / path).c_str(), &status) != 0) {
        if ((entry.flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) != 0) {
            skip(path, SkipReason::NotCheckedOut, "left out by a sparse checkout");
        }
        return;  // else it is deleted: not a file of the folder any more
    }
    if (S_ISREG(status.st_mode)) {
        result_.files.push_back(path);  // tracked although an ignore rule matches
    } else if (S_ISLNK(status.st_mode)) {
        addLink(path);
    } else if (!S_ISDIR(status.st_mode)) {
        skip(path, SkipReason::Unreadable, "not a regular file");
    }
}

void Walker::addLink(const std::string& path) {
    std::error_code code;
    const fs::path target = fs::canonical(root_ / path, code);
    if (code) {
        return skip(path, SkipReason::Unreadable,
                    fmt::format("a symbolic link: {}", code.message()));
    }
    const std::string relative = target.lexically_relative(root_).generic_string();
    if (relative == ".." || relative.starts_with("../")) {
        return skip(path, SkipReason::OutsideLink, fmt::format("leads to {}", target.native()));
    }
    skip(path, SkipReason::InsideLink, fmt::format("leads to {}", relative));
}

void Walker::addUnreadableFolders() {
    for (const std::string& folder : unreadable_folders_) {
        int is_ignored = 0;
        git_ignore_path_is_ignored(&is_ignored, repository_.get(), folder.c_str());
        if (is_ignored == 0 && folder.starts_with(prefix_)) {
            skip(folder.substr(prefix_.size()), SkipReason::Unreadable,
                 "a folder that may not be read");
        }
    }
}

void Walker::sortAndLimit() {
    auto& files = result_.files;
    std::sort(files.begin(), files.end());
    files.erase(std::unique(files.begin(), files.end()), files.end());
    if (files.size() > max_files_) {
        skip(files[max_files_], SkipReason::TooMany,
             fmt::format("this file and {} more by path: {} files, limit {}",
                         files.size() - max_files_ - 1, files.size(), max_files_));
        files.resize(max_files_);
    }
    auto& skipped = result_.skipped;
    std::sort(skipped.begin(), skipped.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    const auto last = std::unique(skipped.begin(), skipped.end(),
                                  [](const auto& a, const auto& b) { return a.path == b.path; });
    skipped.erase(last, skipped.end());
}

}  // namespace

Result<WalkResult> walkRepository(const fs::path& root,
                                  size_t max_files,
                                  const std::stop_token& stop) {
    startGit();
    return Walker(root, max_files, stop).walk();
}

}  // namespace belvedere::tools
