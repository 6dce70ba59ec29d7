// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a command prints, kept within bounds: the start and the end in memory, all of it (up to
// kMaxSpilledBytes) in a file of the temporary folder once it is too much to show. One thread.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tools/unique_fd.h"

namespace belvedere::tools {

class OutputCapture {
  public:
    static constexpr size_t kHeadBytes = 16 * 1024;
    static constexpr size_t kTailBytes = 16 * 1024;
    static constexpr uint64_t kMaxSpilledBytes = 64 << 20;

    void append(std::string_view bytes);

    /// The output as the model sees it: valid UTF-8; where the middle is missing, a line says how
    /// much and names the file.
    [[nodiscard]] std::string text() const;

    [[nodiscard]] uint64_t nBytes() const { return n_bytes_; }

    [[nodiscard]] bool isCut() const { return n_bytes_ > kHeadBytes + kTailBytes; }

    [[nodiscard]] const std::filesystem::path& spillFile() const {
        return spill_file_;
    }  ///< empty: none

  private:
    void spill(std::string_view bytes);
    void beginSpilling();

    std::string head_;
    std::string tail_;  ///< at most 2 * kTailBytes, trimmed as it grows
    uint64_t n_bytes_ = 0;
    uint64_t n_spilled_ = 0;
    UniqueFd spill_fd_;
    std::filesystem::path spill_file_;
    std::string spill_error_;
};

}  // namespace belvedere::tools
