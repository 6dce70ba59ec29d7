// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "inference/format/safetensors.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

/// An open temporary file that is removed unless it was renamed.
class TemporaryFile {
  public:
    explicit TemporaryFile(std::string path)
        : path_(std::move(path)),
          descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}

    ~TemporaryFile() {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
            ::unlink(path_.c_str());
        }
    }

    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    [[nodiscard]] bool isOpen() const { return descriptor_ >= 0; }

    [[nodiscard]] bool write(const void* data, size_t n_bytes) const {
        const auto* next = static_cast<const char*>(data);
        while (n_bytes > 0) {
            const ssize_t n = ::write(descriptor_, next, n_bytes);
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n <= 0) {
                return false;
            }
            next += n;
            n_bytes -= static_cast<size_t>(n);
        }
        return true;
    }

    [[nodiscard]] bool renameTo(const std::string& target) {
        if (::fsync(descriptor_) != 0 || std::rename(path_.c_str(), target.c_str()) != 0) {
            return false;
        }
        ::close(descriptor_);
        descriptor_ = -1;
        return true;
    }

  private:
    std::string path_;
    int descriptor_;
};

std::span<const std::byte> bytesOf(const OutputTensor& tensor) {
    return std::visit([](const auto& values) { return std::as_bytes(std::span(values)); },
                      tensor.values);
}

/// The length of the header and the header, padded to 8 bytes.
std::string headerOf(std::span<const OutputTensor> tensors) {
    nlohmann::ordered_json header;
    size_t begin = 0;
    for (const OutputTensor& tensor : tensors) {
        const size_t n_bytes = bytesOf(tensor).size();
        BV_CHECK(std::accumulate(tensor.shape.begin(), tensor.shape.end(), sizeof(float),
                                 std::multiplies<>()) == n_bytes);
        header[tensor.name] = {
            {"dtype", std::holds_alternative<std::vector<float>>(tensor.values) ? "F32" : "I32"},
            {"shape", tensor.shape},
            {"data_offsets", {begin, begin + n_bytes}}};
        begin += n_bytes;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t n_header = text.size();
    return std::string(reinterpret_cast<const char*>(&n_header), sizeof(n_header)) + text;
}

}  // namespace

Result<void> writeSafetensorsFile(const std::string& path, std::span<const OutputTensor> tensors) {
    const std::string header = headerOf(tensors);
    TemporaryFile file(fmt::format("{}.{}.part", path, ::getpid()));
    bool is_written = file.isOpen() && file.write(header.data(), header.size());
    for (const OutputTensor& tensor : tensors) {
        is_written = is_written && file.write(bytesOf(tensor).data(), bytesOf(tensor).size());
    }
    if (!is_written || !file.renameTo(path)) {
        return fail(ErrorCode::Io, "writing {}: {}", path, std::strerror(errno));
    }
    return {};
}

}  // namespace belvedere::inference
