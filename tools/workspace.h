// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder we are allowed in. Every path a tool touches goes through resolve(): symbolic links
// are followed and whatever ends outside the root is refused. Immutable; any thread.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace belvedere::tools {

class Workspace {
  public:
    /// Errors: NotFound, InvalidArgument where root is no folder.
    static Result<std::shared_ptr<const Workspace>> open(const std::filesystem::path& root);

    [[nodiscard]] const std::filesystem::path& root() const { return root_; }

    /// Absolute path of a file or folder below the root; it need not exist, its nearest existing
    /// parent decides. Errors: InvalidArgument naming the path: outside the root (also through
    /// links), empty, or with a NUL.
    [[nodiscard]] Result<std::filesystem::path> resolve(std::string_view path) const;

    /// Relative to the root, with '/'.
    [[nodiscard]] std::string relative(const std::filesystem::path& path) const;

  private:
    explicit Workspace(std::filesystem::path root) : root_(std::move(root)) {}

    std::filesystem::path root_;
};

}  // namespace belvedere::tools
