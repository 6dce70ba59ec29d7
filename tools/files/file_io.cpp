// SPDX-License-Identifier: Apache-2.0
#include "tools/files/file_io.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

enum class MissingFolders { Refuse, Make };

tl::unexpected<Error> systemError(const std::string& what, int error) {
    switch (error) {
        case ENOENT:
            return fail(ErrorCode::NotFound, "{}: does not exist", what);
        case ELOOP:
            return fail(ErrorCode::InvalidArgument,
                        "{}: became a symbolic link while it was opened", what);
        case ENOTDIR:
            return fail(ErrorCode::InvalidArgument, "{}: a part of the path is not a folder", what);
        default:
            return fail(ErrorCode::Io, "{}: {}", what, std::system_category().message(error));
    }
}

/// The folder at `folder`, a path relative to the root without links.
Result<UniqueFd> openBeneath(const Workspace& workspace,
                             const fs::path& folder,
                             MissingFolders missing) {
    UniqueFd current(open(workspace.root().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!current.ok()) {
        return systemError(workspace.root().string(), errno);
    }
    for (const fs::path& part : folder) {
        if (part.empty() || part == ".") {
            continue;
        }
        UniqueFd next(openat(current.get(), part.c_str(), kFolderFlags));
        if (!next.ok() && errno == ENOENT && missing == MissingFolders::Make) {
            if (mkdirat(current.get(), part.c_str(), 0777) != 0 && errno != EEXIST) {
                return systemError(folder.string(), errno);
            }
            next = UniqueFd(openat(current.get(), part.c_str(), kFolderFlags));
        }
        if (!next.ok()) {
            return systemError(folder.string(), errno);
        }
        current = std::move(next);
    }
    return current;
}

FileIdentity identityOf(const struct stat& info) {
    return {info.st_dev, info.st_ino, info.st_size,
            int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

Result<std::string> readAll(int fd,
                            const std::string& name,
                            uint64_t max_bytes,
                            int64_t expected_bytes) {
    std::string bytes;
    bytes.resize(static_cast<size_t>(expected_bytes) +
                 1);  // one more shows the end without a second read
    size_t n_read = 0;
    while (true) {
        if (n_read == bytes.size()) {
            bytes.resize(bytes.size() * 2);
        }
        const ssize_t n = read(fd, bytes.data() + n_read, bytes.size() - n_read);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return systemError(name, errno);
        }
        if (n == 0) {
            break;
        }
        n_read += static_cast<size_t>(n);
        if (n_read > max_bytes) {  // it grew, or its size is not known (proc)
            return fail(ErrorCode::Unsupported, "{}: has more than the limit of {} bytes", name,
                        max_bytes);
        }
    }
    bytes.resize(n_read);
    return bytes;
}

Result<void> writeAll(int fd, std::string_view bytes, const std::string& name) {
    while (!bytes.empty()) {
        const ssize_t n = write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno != EINTR) {
            return systemError(name, errno);
        }
        bytes.remove_prefix(n > 0 ? static_cast<size_t>(n) : 0);
    }
    if (fsync(fd) != 0 && errno != EINVAL) {  // EINVAL: a file system without it
        return systemError(name, errno);
    }
    return {};
}

/// A new file in a folder that is removed unless it was renamed.
class TemporaryFile {
  public:
    static Result<TemporaryFile> create(int folder_fd, mode_t mode, const std::string& for_name) {
        static std::atomic<unsigned> counter{0};
        const std::string name = fmt::format(".belvedere-{}-{}.tmp", getpid(), counter++);
        UniqueFd fd(openat(folder_fd, name.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
        if (!fd.ok()) {
            return systemError(for_name, errno);
        }
        return TemporaryFile(folder_fd, name, std::move(fd));
    }

    TemporaryFile(TemporaryFile&& other) noexcept
        : folder_fd_(other.folder_fd_),
          name_(std::exchange(other.name_, {})),
          fd_(std::move(other.fd_)) {}

    TemporaryFile& operator=(TemporaryFile&&) = delete;
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    ~TemporaryFile() {
        if (!name_.empty()) {
            unlinkat(folder_fd_, name_.c_str(), 0);
        }
    }

    [[nodiscard]] int fd() const { return fd_.get(); }

    /// 0 or errno. `flags`: RENAME_NOREPLACE or 0.
    int renameTo(const char* target, unsigned flags) {
        if (renameat2(folder_fd_, name_.c_str(), folder_fd_, target, flags) != 0) {
            return errno;
        }
        name_.clear();
        return 0;
    }

  private:
    TemporaryFile(int folder_fd, std::string name, UniqueFd fd)
        : folder_fd_(folder_fd), name_(std::move(name)), fd_(std::move(fd)) {}

    int folder_fd_;
    std::string name_;
    UniqueFd fd_;
};

/// The file that shall be replaced is still the one that was read, and may be written.
Result<void> checkUnchanged(int folder_fd,
                            const char* name,
                            const FileContent& replaced,
                            const std::string& what) {
    struct stat now{};
    if (fstatat(folder_fd, name, &now, AT_SYMLINK_NOFOLLOW) != 0) {
        return systemError(what, errno);
    }
    if (!(identityOf(now) == replaced.identity)) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: was changed by somebody else just now; nothing was written: read it again",
                    what);
    }
    if (faccessat(folder_fd, name, W_OK, AT_EACCESS) != 0) {
        return fail(ErrorCode::InvalidArgument, "{}: is read-only", what);
    }
    return {};
}

/// Renames to a name that must be free, also on file systems that can not promise it.
int renameToFreeName(TemporaryFile& file, int folder_fd, const char* name) {
    const int error = file.renameTo(name, RENAME_NOREPLACE);
    if (error != EINVAL && error != ENOSYS) {
        return error;
    }
    struct stat info{};
    return fstatat(folder_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 ? EEXIST
                                                                     : file.renameTo(name, 0);
}

}  // namespace

Result<UniqueFd> openFolder(const Workspace& workspace, const fs::path& path) {
    const fs::path relative = workspace.relative(path);
    const UniqueFd folder = BV_TRY(openBeneath(workspace, relative, MissingFolders::Refuse));
    UniqueFd readable(openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!readable.ok()) {
        return systemError(relative.string(), errno);
    }
    return readable;
}

Result<FileContent> readWholeFile(const Workspace& workspace,
                                  const fs::path& path,
                                  uint64_t max_bytes) {
    const fs::path relative = workspace.relative(path);
    const std::string name = relative.string();
    if (name == ".") {
        return fail(ErrorCode::InvalidArgument, "{}: is a folder", workspace.root().string());
    }
    const UniqueFd folder =
        BV_TRY(openBeneath(workspace, relative.parent_path(), MissingFolders::Refuse));
    // Without O_NONBLOCK the open of a named pipe would wait for a writer.
    const UniqueFd file(openat(folder.get(), relative.filename().c_str(),
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file.ok()) {
        return systemError(name, errno);
    }
    struct stat info{};
    if (fstat(file.get(), &info) != 0) {
        return systemError(name, errno);
    }
    if (!S_ISREG(info.st_mode)) {
        return fail(
            ErrorCode::InvalidArgument, "{}: is {}", name,
            S_ISDIR(info.st_mode) ? "a folder" : "no regular file (a device, pipe or socket)");
    }
    if (static_cast<uint64_t>(info.st_size) > max_bytes) {
        return fail(ErrorCode::Unsupported, "{}: has {} bytes, more than the limit of {}", name,
                    info.st_size, max_bytes);
    }
    FileContent content;
    content.bytes = BV_TRY(readAll(file.get(), name, max_bytes, info.st_size));
    content.identity = identityOf(info);
    content.mode = info.st_mode & 07777;
    return content;
}

Result<std::optional<FileContent>> readFileIfThere(const Workspace& workspace,
                                                   const fs::path& path,
                                                   uint64_t max_bytes) {
    Result<FileContent> content = readWholeFile(workspace, path, max_bytes);
    if (content.has_value()) {
        return std::optional(std::move(*content));
    }
    if (content.error().code == ErrorCode::NotFound) {
        return std::optional<FileContent>();
    }
    return tl::unexpected<Error>(std::move(content).error());
}

Result<void> writeWholeFile(const Workspace& workspace,
                            const fs::path& path,
                            std::string_view bytes,
                            const FileContent* replaced) {
    const fs::path relative = workspace.relative(path);
    const std::string what = relative.string();
    if (what == ".") {
        return fail(ErrorCode::InvalidArgument, "{}: is a folder", workspace.root().string());
    }
    const UniqueFd folder =
        BV_TRY(openBeneath(workspace, relative.parent_path(), MissingFolders::Make));
    const std::string name = relative.filename().string();
    TemporaryFile file = BV_TRY(TemporaryFile::create(folder.get(), 0666, what));
    BV_TRY(writeAll(file.fd(), bytes, what));
    int error = 0;
    if (replaced != nullptr) {
        if (fchmod(file.fd(), replaced->mode) != 0) {
            return systemError(what, errno);
        }
        BV_TRY(checkUnchanged(folder.get(), name.c_str(), *replaced, what));
        error = file.renameTo(name.c_str(), 0);
    } else {
        error = renameToFreeName(file, folder.get(), name.c_str());
    }
    if (error == EEXIST) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: was made by somebody else just now; nothing was written: read it first",
                    what);
    }
    if (error != 0) {
        return systemError(what, error);
    }
    return {};
}

}  // namespace belvedere::tools
