// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random numbers that are the same on every machine and compiler: SplitMix64, seeded by adding the
// constant once. Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators",
// figure 17. One thread at a time.

#include <cstdint>

namespace belvedere::inference {

class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint64_t next() {
        state_ += 0x9E3779B97F4A7C15U;
        uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31);
    }

    /// In [0, 1), a multiple of 2^-53.
    double nextUnit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  private:
    uint64_t state_;
};

}  // namespace belvedere::inference
