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

}  // namespace

Result<void> writeSafetensorsFile(const std::string& path,
                                  const std::string& name,
                                  std::span<const size_t> shape,
                                  std::span<const float> values) {
    BV_CHECK(std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>()) ==
             values.size());
    nlohmann::ordered_json header;
    header[name] = {{"dtype", "F32"},
                    {"shape", std::vector<size_t>(shape.begin(), shape.end())},
                    {"data_offsets", {size_t{0}, values.size_bytes()}}};
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t n_header = text.size();
    TemporaryFile file(fmt::format("{}.{}.part", path, ::getpid()));
    if (!file.isOpen() || !file.write(&n_header, sizeof(n_header)) ||
        !file.write(text.data(), text.size()) || !file.write(values.data(), values.size_bytes()) ||
        !file.renameTo(path)) {
        return fail(ErrorCode::Io, "writing {}: {}", path, std::strerror(errno));
    }
    return {};
}

}  // namespace belvedere::inference
