// SPDX-License-Identifier: Apache-2.0
#pragma once

// A digest of bytes that tells damage and mix-ups, as fast as memory is read. Not against forgers:
// what is read is checked for itself. Any thread.
//
// Eight lanes take 64 bits each in turn; a step is one to one in the lane and in what it takes, so
// bytes that differ in one step of one lane never have the same digest, and others hardly ever do.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace belvedere::inference {

struct Digest {
    uint64_t low = 0;
    uint64_t high = 0;

    bool operator==(const Digest&) const = default;
};

namespace detail {

inline constexpr uint64_t kOddFactor = 0xD6E8FEB86659FD93;  // any odd number with bits all over

/// One to one.
[[nodiscard]] inline uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 32)) * kOddFactor;
    x = (x ^ (x >> 29)) * kOddFactor;
    return x ^ (x >> 32);
}

[[nodiscard]] inline uint64_t step(uint64_t lane, uint64_t word) {
    return std::rotl((lane ^ word) * kOddFactor, 29);
}

}  // namespace detail

[[nodiscard]] inline Digest digestOf(std::span<const std::byte> bytes) {
    constexpr size_t kLanes = 8;
    uint64_t lanes[kLanes];
    for (size_t i = 0; i < kLanes; ++i) {
        lanes[i] = detail::mix(i + 1);
    }
    const auto take = [&lanes](const std::byte* block) {
        uint64_t words[kLanes];
        std::memcpy(words, block, sizeof(words));
#pragma GCC unroll 8
        for (size_t i = 0; i < kLanes; ++i) {
            lanes[i] = detail::step(lanes[i], words[i]);
        }
    };
    constexpr size_t kBlock = kLanes * sizeof(uint64_t);
    const size_t n_whole = bytes.size() / kBlock * kBlock;
    for (size_t i = 0; i < n_whole; i += kBlock) {
        take(bytes.data() + i);
    }
    if (n_whole < bytes.size()) {
        std::byte rest[kBlock] = {};
        std::memcpy(rest, bytes.data() + n_whole, bytes.size() - n_whole);
        take(rest);
    }
    Digest digest = {detail::mix(bytes.size()), detail::mix(~uint64_t{bytes.size()})};
    for (size_t i = 0; i < kLanes; ++i) {
        digest.low = detail::mix(digest.low ^ lanes[i]);
        digest.high = detail::mix(digest.high + lanes[kLanes - 1 - i]);
    }
    return digest;
}

[[nodiscard]] inline uint64_t checksumOf(std::span<const std::byte> bytes) {
    return digestOf(bytes).low;
}

}  // namespace belvedere::inference
