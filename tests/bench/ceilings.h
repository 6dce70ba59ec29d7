// SPDX-License-Identifier: Apache-2.0
#pragma once

// What this machine allows, measured in the same run as what is compared with it. Benchmarks only.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/base/aligned_buffer.h"
#include "kernels/base/thread_pool.h"
#include "kernels/kernels.h"

namespace belvedere::bench {

inline double secondsOf(const std::function<void()>& work) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Bytes a second that all threads together read from memory.
inline double memoryBandwidth(size_t n_threads) {
    constexpr size_t kWords = size_t{64} << 20;  // 512 MiB: far more than any cache
    AlignedBuffer<uint64_t> words(kWords);
    ThreadPool pool(n_threads);
    pool.setBusy(true);
    pool.parallelFor(kWords, 4096, [&](size_t begin, size_t end, size_t) {
        std::fill(words.data() + begin, words.data() + end, begin);
    });
    std::vector<uint64_t> sums(n_threads * 8);
    const auto read = [&] {
        pool.parallelFor(kWords, 4096, [&](size_t begin, size_t end, size_t worker) {
            uint64_t a = 0, b = 0, c = 0, d = 0;
            for (size_t i = begin; i < end; i += 4) {
                a += words[i];
                b += words[i + 1];
                c += words[i + 2];
                d += words[i + 3];
            }
            sums[worker * 8] += a + b + c + d;
        });
    };
    double best = 1e9;
    for (int i = 0; i < 4; ++i) {
        best = std::min(best, secondsOf(read));
    }
    return static_cast<double>(kWords * sizeof(uint64_t)) / best;
}

/// Multiplies and adds a second of the fast matrix product where everything is in cache.
inline double productPeak(size_t n_threads, kernels::WeightType type = kernels::WeightType::Q8_0) {
    constexpr size_t kRows = 64;
    constexpr size_t kCols = 512;
    constexpr size_t kTokens = 64;
    constexpr size_t kRounds = 200;
    const kernels::KernelTable& k = kernels::active();
    ThreadPool pool(n_threads);
    const std::vector<std::byte> weights(kRows * kernels::rowBytes(type, kCols));
    AlignedBuffer<std::byte> packed(std::max<size_t>(k.packed_bytes(type, kRows, kCols), 1));
    if (k.packed_bytes(type, kRows, kCols) > 0) {
        k.pack(type, weights.data(), kRows, kCols, packed.data(), 0, kRows);
    }
    const std::vector<float> x(kTokens * kCols, 0.5F);
    AlignedBuffer<std::byte> activations(k.activation_bytes(type, kTokens, kCols));
    k.quantize_activations(type, x.data(), kCols, kTokens, kCols, activations.data(), 0, kTokens);
    std::vector<std::vector<float>> out(n_threads, std::vector<float>(kTokens * kRows));
    const double seconds = secondsOf([&] {
        pool.parallelFor(
            n_threads * kRounds, kRounds, [&](size_t begin, size_t end, size_t worker) {
                for (size_t i = begin; i < end; ++i) {
                    const bool is_packed = k.packed_bytes(type, kRows, kCols) > 0;
                    k.mat_mul_fast(
                        {type, is_packed ? static_cast<const void*>(packed.data()) : weights.data(),
                         kRows, kCols, activations.data(), out[worker].data(), kRows, kTokens, 0,
                         kRows});
                }
            });
    });
    return 2.0 * kRows * kCols * kTokens * kRounds * static_cast<double>(n_threads) / seconds;
}

}  // namespace belvedere::bench
