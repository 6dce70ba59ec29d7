// SPDX-License-Identifier: Apache-2.0
#pragma once

// A temporary folder with a git repository made by the real git, without any configuration of the
// user's.

#include <string>

#include "tests/support/temp_dir.h"

namespace belvedere::testing {

class GitFolder {
  public:
    GitFolder() { git("init -q -b main ."); }

    /// Runs `git <arguments>` in the folder, or in one below it; a failure fails the test.
    void git(const std::string& arguments, const std::string& folder = ".") const;

    /// Adds everything that is not ignored and commits it.
    void commitAll() const {
        git("add -A");
        git("commit -q --allow-empty -m all");
    }

    [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

    void write(const std::string& relative, std::string_view content) const {
        folder_.write(relative, content);
    }

  private:
    TempDir folder_;
};

/// Output of a command of the shell; a failure fails the test.
std::string shell(const std::string& command);

}  // namespace belvedere::testing
