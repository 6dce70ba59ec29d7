// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file descriptor with one owner, closed with it. Any thread, one at a time.

#include <utility>

#include <unistd.h>

namespace belvedere::tools {

class UniqueFd {
  public:
    UniqueFd() = default;

    explicit UniqueFd(int fd) : fd_(fd) {}

    ~UniqueFd() { reset(); }

    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;

    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

    UniqueFd& operator=(UniqueFd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }

    [[nodiscard]] int get() const { return fd_; }

    [[nodiscard]] bool ok() const { return fd_ >= 0; }

    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

    void reset() {
        if (fd_ >= 0) {
            ::close(fd_);
            fd_ = -1;
        }
    }

  private:
    int fd_ = -1;
};

}  // namespace belvedere::tools
