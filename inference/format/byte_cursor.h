// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads little-endian values from bytes of known length; a read past the end yields nothing and
// leaves the cursor where it is. And arithmetic on sizes that come from files. One thread at a
// time.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace belvedere::inference {

static_assert(std::endian::native == std::endian::little, "model files are little-endian");

[[nodiscard]] inline std::optional<uint64_t> checkedMul(uint64_t a, uint64_t b) {
    uint64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) {
        return std::nullopt;
    }
    return product;
}

[[nodiscard]] inline std::optional<uint64_t> checkedAdd(uint64_t a, uint64_t b) {
    uint64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) {
        return std::nullopt;
    }
    return sum;
}

/// value rounded up to a multiple of alignment, a power of two.
[[nodiscard]] inline std::optional<uint64_t> checkedAlign(uint64_t value, uint64_t alignment) {
    const std::optional<uint64_t> sum = checkedAdd(value, alignment - 1);
    if (!sum) {
        return std::nullopt;
    }
    return *sum & ~(alignment - 1);
}

class ByteCursor {
  public:
    explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

    [[nodiscard]] size_t position() const { return position_; }

    [[nodiscard]] size_t remaining() const { return bytes_.size() - position_; }

    template <class T>
    [[nodiscard]] std::optional<T> read() {
        if (remaining() < sizeof(T)) {
            return std::nullopt;
        }
        T value;
        std::memcpy(&value, bytes_.data() + position_, sizeof(T));
        position_ += sizeof(T);
        return value;
    }

    /// The next n bytes; the view is into the file.
    [[nodiscard]] std::optional<std::span<const std::byte>> take(uint64_t n) {
        if (n > remaining()) {
            return std::nullopt;
        }
        const auto taken = bytes_.subspan(position_, static_cast<size_t>(n));
        position_ += static_cast<size_t>(n);
        return taken;
    }

  private:
    std::span<const std::byte> bytes_;
    size_t position_ = 0;
};

[[nodiscard]] inline std::string_view asText(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace belvedere::inference
