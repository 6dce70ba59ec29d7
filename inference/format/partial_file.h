// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file that is there whole or not at all: it is written beside its place, brought to the disk and
// then renamed; without that it is removed. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/base/result.h"

namespace belvedere::inference {

class PartialFile {
  public:
    enum class Readers { User, Everybody };  ///< Everybody: as the umask has it

    PartialFile(std::string target, Readers readers);
    ~PartialFile();
    PartialFile(const PartialFile&) = delete;
    PartialFile& operator=(const PartialFile&) = delete;

    /// Errors, as those of the others: Io; here also where the disk has no room for n_bytes.
    [[nodiscard]] Result<void> open(uint64_t n_bytes);

    [[nodiscard]] Result<void> write(std::span<const std::byte> bytes, uint64_t begin);

    /// Puts the file in its place. n_bytes: its length, at least what was written.
    [[nodiscard]] Result<void> finish(uint64_t n_bytes);

  private:
    [[nodiscard]] tl::unexpected<Error> failed() const;

    const std::string target_;
    const Readers readers_;
    std::string path_;
    int descriptor_ = -1;
};

}  // namespace belvedere::inference
