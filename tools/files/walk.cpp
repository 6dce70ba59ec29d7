// SPDX-License-Identifier: Apache-2.0
#include "tools/files/walk.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "tools/files/file_io.h"
#include "tools/files/ignore_rules.h"

namespace belvedere::tools {
namespace {

constexpr size_t kMaxDepth = 200;  // a guard for the stack; deeper folders count as unreadable

struct CloseDir {
    void operator()(DIR* dir) const { closedir(dir); }
};

struct NamedEntry {
    std::string name;
    WalkEntry::Kind kind = WalkEntry::Kind::Other;
};

WalkEntry::Kind kindOf(int folder_fd, const dirent& entry) {
    unsigned char type = entry.d_type;
    if (type == DT_UNKNOWN) {  // file systems that do not tell
        struct stat info{};
        if (fstatat(folder_fd, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            type = static_cast<unsigned char>(IFTODT(info.st_mode));
        }
    }
    switch (type) {
        case DT_REG:
            return WalkEntry::Kind::File;
        case DT_DIR:
            return WalkEntry::Kind::Folder;
        case DT_LNK:
            return WalkEntry::Kind::Link;
        default:
            return WalkEntry::Kind::Other;
    }
}

class Walk {
  public:
    Walk(const Workspace& workspace,
         const WalkOptions& options,
         const std::function<WalkStep(const WalkEntry&)>& visit)
        : options_(options), visit_(visit) {
        if (!options.include_ignored) {
            rules_ = std::make_unique<IgnoreRules>(workspace);
        }
    }

    /// Takes the descriptor. False: the walk is over.
    bool folder(UniqueFd folder_fd, const std::string& path, size_t depth) {
        const int fd = folder_fd.get();
        const std::unique_ptr<DIR, CloseDir> dir(fdopendir(fd));
        if (dir == nullptr) {
            ++summary_.n_unreadable;
            return true;
        }
        (void)folder_fd.release();  // closed with the DIR
        for (const NamedEntry& entry : sortedEntries(dir.get(), fd)) {
            if (options_.stop.stop_requested()) {
                is_cancelled_ = true;
                return false;
            }
            const WalkEntry found{path.empty() ? entry.name : path + "/" + entry.name, entry.kind,
                                  depth};
            const bool is_folder = entry.kind == WalkEntry::Kind::Folder;
            if (rules_ != nullptr && rules_->ignores(found.path, is_folder)) {
                ++summary_.n_ignored;
                continue;
            }
            const WalkStep step = visit_(found);
            if (step == WalkStep::End) {
                return false;
            }
            if (is_folder && step == WalkStep::Go && !enter(fd, entry.name, found)) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool isCancelled() const { return is_cancelled_; }

    [[nodiscard]] const WalkSummary& summary() const { return summary_; }

  private:
    bool enter(int parent_fd, const std::string& name, const WalkEntry& entry) {
        UniqueFd child(
            openat(parent_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!child.ok() || entry.depth >= kMaxDepth) {
            ++summary_.n_unreadable;
            return true;
        }
        return folder(std::move(child), entry.path, entry.depth + 1);
    }

    static std::vector<NamedEntry> sortedEntries(DIR* dir, int fd) {
        std::vector<NamedEntry> entries;
        while (const dirent* entry = readdir(dir)) {
            const std::string_view name = entry->d_name;
            if (name != "." && name != ".." && name != ".git") {
                entries.push_back({std::string(name), kindOf(fd, *entry)});
            }
        }
        std::ranges::sort(entries, {}, &NamedEntry::name);
        return entries;
    }

    const WalkOptions& options_;
    const std::function<WalkStep(const WalkEntry&)>& visit_;
    std::unique_ptr<IgnoreRules> rules_;
    WalkSummary summary_;
    bool is_cancelled_ = false;
};

}  // namespace

Result<WalkSummary> walkFolder(const Workspace& workspace,
                               const std::filesystem::path& folder,
                               const WalkOptions& options,
                               const std::function<WalkStep(const WalkEntry&)>& visit) {
    UniqueFd fd = BV_TRY(openFolder(workspace, folder));
    const std::string relative = workspace.relative(folder);
    Walk walk(workspace, options, visit);
    walk.folder(std::move(fd), relative == "." ? "" : relative, 1);
    if (walk.isCancelled()) {
        return fail(ErrorCode::Cancelled, "{}: stopped", relative);
    }
    return walk.summary();
}

bool looksLikeSecretFile(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name.ends_with(".pub") || name.ends_with(".example") || name.ends_with(".sample") ||
        name.ends_with(".template")) {
        return false;
    }
    constexpr std::array<std::string_view, 9> kNames = {
        ".env",      ".netrc",           ".pgpass",          ".pypirc",     ".npmrc",
        ".htpasswd", ".git-credentials", "credentials.json", "secrets.json"};
    constexpr std::array<std::string_view, 5> kStarts = {".env.", "id_rsa", "id_ed25519",
                                                         "id_ecdsa", "id_dsa"};
    constexpr std::array<std::string_view, 7> kEnds = {".pem",  ".key", ".p12",     ".pfx",
                                                       ".kdbx", ".jks", ".keystore"};
    return std::ranges::find(kNames, name) != kNames.end() ||
           std::ranges::any_of(kStarts, [&](auto start) { return name.starts_with(start); }) ||
           std::ranges::any_of(kEnds, [&](auto end) { return name.ends_with(end); });
}

bool isInsideGit(std::string_view path) {
    while (!path.empty()) {
        const size_t end = std::min(path.find('/'), path.size());
        if (path.substr(0, end) == ".git") {
            return true;
        }
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    return false;
}

}  // namespace belvedere::tools
