// SPDX-License-Identifier: Apache-2.0
#pragma once

// A folder that exists for one test and is removed with everything in it.

#include <filesystem>
#include <string_view>

namespace belvedere::testing {

class TempDir {
  public:
    TempDir();
    ~TempDir();
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    /// Writes a file below the folder, making its parents; returns its path.
    std::filesystem::path write(const std::filesystem::path& relative,
                                std::string_view content) const;

  private:
    std::filesystem::path path_;
};

}  // namespace belvedere::testing
