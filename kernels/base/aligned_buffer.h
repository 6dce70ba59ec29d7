// SPDX-License-Identifier: Apache-2.0
#pragma once

// Raw memory for arrays of numbers, aligned to a cache line. Move-only; not for objects with
// constructors.

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <type_traits>

namespace belvedere {

template <class T>
class AlignedBuffer {
    static_assert(std::is_trivial_v<T>);

  public:
    static constexpr size_t kAlignment = 64;

    AlignedBuffer() = default;

    /// `n` elements, not initialised. Check ok() where n comes from a file: the allocation may
    /// fail.
    explicit AlignedBuffer(size_t n) : n_(n) {
        if (n > 0 && n <= SIZE_MAX / sizeof(T) - kAlignment) {
            const size_t bytes = (n * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
            data_.reset(static_cast<T*>(std::aligned_alloc(kAlignment, bytes)));
        }
    }

    /// A size without memory, for adding up what would be needed: data() is null.
    [[nodiscard]] static AlignedBuffer measured(size_t n) {
        AlignedBuffer buffer;
        buffer.n_ = n;
        return buffer;
    }

    [[nodiscard]] bool ok() const { return n_ == 0 || data_ != nullptr; }

    [[nodiscard]] T* data() { return data_.get(); }

    [[nodiscard]] const T* data() const { return data_.get(); }

    [[nodiscard]] size_t size() const { return n_; }

    [[nodiscard]] T& operator[](size_t i) { return data_.get()[i]; }

    [[nodiscard]] const T& operator[](size_t i) const { return data_.get()[i]; }

    [[nodiscard]] std::span<T> span() { return {data(), n_}; }

    [[nodiscard]] std::span<const T> span() const { return {data(), n_}; }

  private:
    struct Free {
        void operator()(T* pointer) const { std::free(pointer); }
    };

    std::unique_ptr<T[], Free> data_;
    size_t n_ = 0;
};

}  // namespace belvedere
