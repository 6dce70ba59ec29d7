// SPDX-License-Identifier: Apache-2.0
#include "inference/format/partial_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace belvedere::inference {

PartialFile::PartialFile(std::string target, Readers readers)
    : target_(std::move(target)), readers_(readers) {}

PartialFile::~PartialFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
        ::unlink(path_.c_str());
    }
}

Result<void> PartialFile::open(uint64_t n_bytes) {
    if (readers_ == Readers::User) {
        path_ = target_ + ".XXXXXX";
        descriptor_ = ::mkostemp(path_.data(), O_CLOEXEC);
    } else {
        path_ = fmt::format("{}.{}.part", target_, ::getpid());
        descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    if (descriptor_ < 0) {
        return failed();
    }
    // Whoever fills a disk should hear of it before and not after minutes of writing.
    struct statvfs disk{};
    if (::fstatvfs(descriptor_, &disk) == 0 && disk.f_bavail * disk.f_frsize < n_bytes) {
        return fail(ErrorCode::Io, "{}: {} bytes are needed, {} are free", target_, n_bytes,
                    disk.f_bavail * disk.f_frsize);
    }
    return {};
}

Result<void> PartialFile::write(std::span<const std::byte> bytes, uint64_t begin) {
    while (!bytes.empty()) {
        const ssize_t n =
            ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(begin));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return failed();
        }
        bytes = bytes.subspan(static_cast<size_t>(n));
        begin += static_cast<uint64_t>(n);
    }
    return {};
}

Result<void> PartialFile::finish(uint64_t n_bytes) {
    if (::ftruncate(descriptor_, static_cast<off_t>(n_bytes)) != 0 || ::fsync(descriptor_) != 0 ||
        ::rename(path_.c_str(), target_.c_str()) != 0) {
        return failed();
    }
    ::close(descriptor_);
    descriptor_ = -1;
    // The name is on the disk when its folder is.
    const std::filesystem::path folder = std::filesystem::path(target_).parent_path();
    const int directory =
        ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        ::fsync(directory);
        ::close(directory);
    }
    return {};
}

tl::unexpected<Error> PartialFile::failed() const {
    return fail(ErrorCode::Io, "writing {}: {}", target_, std::strerror(errno));
}

}  // namespace belvedere::inference
