// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/output_capture.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "tools/files/text.h"

namespace belvedere::tools {

void OutputCapture::append(std::string_view bytes) {
    const bool was_cut = isCut();
    n_bytes_ += bytes.size();
    if (was_cut) {
        spill(bytes);
    }
    const size_t n_head = std::min(bytes.size(), kHeadBytes - head_.size());
    const std::string_view rest = bytes.substr(n_head);
    head_ += bytes.substr(0, n_head);
    tail_ += rest;
    if (!was_cut && isCut()) {
        beginSpilling();
        spill(head_);
        spill(tail_);
    }
    if (tail_.size() > 2 * kTailBytes) {
        tail_.erase(0, tail_.size() - kTailBytes);
    }
}

void OutputCapture::beginSpilling() {
    std::error_code error;
    std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    std::string name = (folder / "belvedere-output-XXXXXX").string();
    spill_fd_ = UniqueFd(error ? -1 : mkostemp(name.data(), O_CLOEXEC));  // readable by us only
    if (spill_fd_.ok()) {
        spill_file_ = name;
    } else {
        spill_error_ = error ? error.message() : std::system_category().message(errno);
    }
}

void OutputCapture::spill(std::string_view bytes) {
    bytes = bytes.substr(0, std::min<uint64_t>(bytes.size(), kMaxSpilledBytes - n_spilled_));
    while (spill_fd_.ok() && !bytes.empty()) {
        const ssize_t n = write(spill_fd_.get(), bytes.data(), bytes.size());
        if (n < 0 && errno != EINTR) {
            spill_error_ = std::system_category().message(errno);
            spill_fd_.reset();
        } else if (n > 0) {
            n_spilled_ += static_cast<uint64_t>(n);
            bytes.remove_prefix(static_cast<size_t>(n));
        }
    }
}

std::string OutputCapture::text() const {
    if (!isCut()) {
        return showText(head_ + tail_).text;
    }
    std::string_view head = head_;
    head = head.substr(0, completeUtf8Bytes(head));
    std::string_view tail = tail_;
    tail = tail.substr(tail.size() - kTailBytes);
    // Not within a character.
    while (!tail.empty() && (static_cast<unsigned char>(tail.front()) & 0xC0) == 0x80) {
        tail.remove_prefix(1);
    }
    std::string where;
    if (spill_file_.empty()) {
        where = "not kept: " + spill_error_;
    } else if (n_spilled_ < n_bytes_) {
        where = fmt::format("the first {} bytes are in {}{}", n_spilled_, spill_file_.string(),
                            spill_error_.empty() ? "" : ": " + spill_error_);
    } else {
        where = "all of it is in " + spill_file_.string();
    }
    return fmt::format("{}\n[... {} of {} bytes left out; {} ...]\n{}", showText(head).text,
                       n_bytes_ - head.size() - tail.size(), n_bytes_, where, showText(tail).text);
}

}  // namespace belvedere::tools
