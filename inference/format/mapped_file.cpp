// SPDX-License-Identifier: Apache-2.0
#include "inference/format/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace belvedere::inference {

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path) {
    std::unique_ptr<MappedFile> file(new MappedFile);
    file->path_ = path;
    // O_NONBLOCK: opening a named pipe must not wait for a writer.
    file->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->descriptor_ < 0) {
        const int error = errno;
        const ErrorCode code =
            error == ENOENT || error == ENOTDIR ? ErrorCode::NotFound : ErrorCode::Io;
        return fail(code, "{}: {}", path, std::strerror(error));
    }
    struct stat status{};
    if (::fstat(file->descriptor_, &status) != 0) {
        return fail(ErrorCode::Io, "{}: {}", path, std::strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::InvalidArgument, "{}: not a regular file", path);
    }
    file->n_bytes_ = static_cast<size_t>(status.st_size);
    if (file->n_bytes_ == 0) {
        return file;
    }
    void* data = ::mmap(nullptr, file->n_bytes_, PROT_READ, MAP_PRIVATE, file->descriptor_, 0);
    if (data == MAP_FAILED) {
        return fail(ErrorCode::Io, "{}: cannot map {} bytes: {}", path, file->n_bytes_,
                    std::strerror(errno));
    }
    file->data_ = static_cast<const std::byte*>(data);
    return file;
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) {
        ::munmap(const_cast<std::byte*>(data_), n_bytes_);
    }
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

Result<void> MappedFile::checkWhole() const {
    struct stat status{};
    if (::fstat(descriptor_, &status) != 0) {
        return fail(ErrorCode::Io, "{}: {}", path_, std::strerror(errno));
    }
    if (static_cast<uint64_t>(status.st_size) < n_bytes_) {
        return fail(ErrorCode::Io,
                    "{}: the file shrank from {} to {} bytes while in use: load it again", path_,
                    n_bytes_, status.st_size);
    }
    return {};
}

void MappedFile::forget(const void* begin, size_t n_bytes) const {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
    const auto last = (reinterpret_cast<uintptr_t>(begin) + n_bytes) / page * page;
    if (first < last) {
        ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
}

}  // namespace belvedere::inference
