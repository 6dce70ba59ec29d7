// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/aligned_buffer.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace belvedere {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

template <class T>
size_t remainder(const AlignedBuffer<T>& buffer, size_t alignment) {
    return reinterpret_cast<uintptr_t>(buffer.data()) % alignment;
}

TEST(AlignedBuffer, BeginsWithACacheLine) {
    for (const size_t n : {1U, 63U, 64U, 1000U, 100000U}) {
        const AlignedBuffer<uint8_t> buffer(n);
        ASSERT_TRUE(buffer.ok());
        EXPECT_EQ(remainder(buffer, 64), 0U);
    }
}

TEST(AlignedBuffer, BeginsWithAHugePageWhereItHoldsOne) {
    for (const size_t n : {2 * kMiB, 3 * kMiB + 5, 4 * kMiB}) {
        AlignedBuffer<uint8_t> buffer(n);
        ASSERT_TRUE(buffer.ok());
        EXPECT_EQ(remainder(buffer, 2 * kMiB), 0U);
        buffer[0] = 1;
        buffer[n - 1] = 2;
        EXPECT_EQ(buffer[0] + buffer[n - 1], 3);
    }
}

TEST(AlignedBuffer, IsNotOkWhereThereIsNotSoMuchMemory) {
    EXPECT_FALSE(AlignedBuffer<uint64_t>(SIZE_MAX / 16).ok());
    EXPECT_FALSE(AlignedBuffer<uint64_t>(SIZE_MAX / 2).ok());
    EXPECT_FALSE(AlignedBuffer<uint8_t>(SIZE_MAX).ok());
    EXPECT_TRUE(AlignedBuffer<uint8_t>(0).ok());
}

}  // namespace
}  // namespace belvedere
