// SPDX-License-Identifier: Apache-2.0
#pragma once

// Opens files below one folder without ever following a symbolic link, neither of the file nor of a
// folder on the way: what a changed tree or a hostile index names cannot lead outside. One thread
// per reader; it keeps the last folder open, as files come sorted.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace belvedere::tools {

/// What must be the same for a file to count as unchanged.
struct FileStamp {
    uint64_t size_bytes = 0;
    int64_t mtime_ns = 0;
    uint64_t inode = 0;

    bool operator==(const FileStamp&) const = default;
};

class FileDescriptor {
  public:
    FileDescriptor() = default;

    explicit FileDescriptor(int fd) : fd_(fd) {}

    FileDescriptor(FileDescriptor&& other) noexcept;
    FileDescriptor& operator=(FileDescriptor&& other) noexcept;
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    ~FileDescriptor();

    [[nodiscard]] int get() const { return fd_; }

    [[nodiscard]] bool isOpen() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

class SafeReader {
  public:
    explicit SafeReader(std::filesystem::path root) : root_(std::move(root)) {}

    /// Size and times without reading. Errors: NotFound, Io (the system's words), InvalidArgument
    /// where a link or something that is no regular file stands in the way, or the path is absolute
    /// or has "..".
    [[nodiscard]] Result<FileStamp> stamp(std::string_view path);

    /// The whole file into `bytes`; a file that is larger than `max_bytes` is an InvalidArgument.
    /// Errors: as stamp.
    [[nodiscard]] Result<FileStamp> read(std::string_view path,
                                         uint64_t max_bytes,
                                         std::string& bytes);

  private:
    [[nodiscard]] Result<void> enterFolder(std::string_view path);

    std::filesystem::path root_;
    std::string folder_path_;  ///< of folder_, relative, with a last '/'
    FileDescriptor folder_;
};

}  // namespace belvedere::tools
