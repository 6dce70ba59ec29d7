// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file mapped for reading. The mapping is private and read-only, so nothing we do reaches the
// file. Another program that shortens the file in place takes pages away, and reading one of those
// ends the process (SIGBUS): call checkWhole() before a long use. Immutable after open: any thread.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "kernels/base/result.h"

namespace belvedere::inference {

class MappedFile {
  public:
    /// Errors: NotFound, Io; InvalidArgument where the path is not a regular file.
    [[nodiscard]] static Result<std::unique_ptr<MappedFile>> open(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, n_bytes_}; }

    /// Errors: Io where the file is shorter now than when it was mapped.
    [[nodiscard]] Result<void> checkWhole() const;

    /// The pages of [begin, end) were copied elsewhere: the system may drop them from memory.
    void forget(const void* begin, size_t n_bytes) const;

  private:
    MappedFile() = default;

    std::string path_;
    int descriptor_ = -1;
    const std::byte* data_ = nullptr;
    size_t n_bytes_ = 0;
};

}  // namespace belvedere::inference
