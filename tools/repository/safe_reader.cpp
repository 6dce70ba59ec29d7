// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/safe_reader.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace belvedere::tools {
namespace {

tl::unexpected<Error> failWithErrno(std::string_view path, int error) {
    if (error == ENOENT) {
        return fail(ErrorCode::NotFound, "{}: it has vanished", path);
    }
    if (error == ELOOP || error == ENOTDIR) {
        return fail(ErrorCode::InvalidArgument, "{}: a symbolic link stands in the way", path);
    }
    return fail(ErrorCode::Io, "{}: {}", path, std::generic_category().message(error));
}

FileStamp stampOf(const struct stat& status) {
    constexpr int64_t kNanoseconds = 1'000'000'000;
    return {static_cast<uint64_t>(status.st_size),
            status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec,
            static_cast<uint64_t>(status.st_ino)};
}

std::string_view fileName(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

FileDescriptor::~FileDescriptor() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

Result<void> SafeReader::enterFolder(std::string_view path) {
    const std::string_view folder = path.substr(0, path.rfind('/') + 1);  // "" at the top
    if (folder_.isOpen() && folder == folder_path_) {
        return {};
    }
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    FileDescriptor current(::open(root_.c_str(), kFlags));
    if (!current.isOpen()) {
        return failWithErrno(root_.native(), errno);
    }
    for (std::string_view rest = folder; !rest.empty();) {
        const std::string name(rest.substr(0, rest.find('/')));
        rest.remove_prefix(name.size() + 1);
        if (name.empty() || name == "." || name == "..") {
            return fail(ErrorCode::InvalidArgument, "{}: not a path below the folder", path);
        }
        FileDescriptor next(::openat(current.get(), name.c_str(), kFlags | O_NOFOLLOW));
        if (!next.isOpen()) {
            return failWithErrno(path, errno);
        }
        current = std::move(next);
    }
    folder_ = std::move(current);
    folder_path_ = folder;
    return {};
}

Result<FileStamp> SafeReader::stamp(std::string_view path) {
    BV_TRY(enterFolder(path));
    struct stat status{};
    if (::fstatat(folder_.get(), std::string(fileName(path)).c_str(), &status,
                  AT_SYMLINK_NOFOLLOW) != 0) {
        return failWithErrno(path, errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::InvalidArgument, "{}: not a regular file", path);
    }
    return stampOf(status);
}

Result<FileStamp> SafeReader::read(std::string_view path, uint64_t max_bytes, std::string& bytes) {
    BV_TRY(enterFolder(path));
    // O_NONBLOCK: a pipe put in the file's place must not hang us.
    constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const FileDescriptor file(::openat(folder_.get(), std::string(fileName(path)).c_str(), kFlags));
    if (!file.isOpen()) {
        return failWithErrno(path, errno);
    }
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) {
        return failWithErrno(path, errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::InvalidArgument, "{}: not a regular file", path);
    }
    const FileStamp stamp = stampOf(status);
    if (stamp.size_bytes > max_bytes) {
        return fail(ErrorCode::InvalidArgument, "{}: {} bytes, limit {}", path, stamp.size_bytes,
                    max_bytes);
    }
    bytes.resize(stamp.size_bytes);
    size_t n_read = 0;
    while (n_read < bytes.size()) {
        const ssize_t n = ::read(file.get(), bytes.data() + n_read, bytes.size() - n_read);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return failWithErrno(path, errno);
        }
        if (n == 0) {
            break;  // it shrank; its new time makes the next ingestion read it again
        }
        n_read += static_cast<size_t>(n);
    }
    bytes.resize(n_read);
    return stamp;
}

}  // namespace belvedere::tools
