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

/// Reads far more than any cache holds, with all threads together.
class MemoryReader {
  public:
    explicit MemoryReader(size_t n_threads)
        : words_(kWords), pool_(n_threads), sums_(n_threads * 8) {
        pool_.setBusy(true);
        pool_.parallelFor(kWords, kChunk, [this](size_t begin, size_t end, size_t) {
            std::fill(words_.data() + begin, words_.data() + end, begin);
        });
        pool_.setBusy(false);
    }

    /// Bytes a second, the mean of some passes over 512 MiB.
    double bandwidth(int n_passes) {
        pool_.setBusy(true);
        const double seconds = secondsOf([this, n_passes] {
            for (int i = 0; i < n_passes; ++i) {
                readAll();
            }
        });
        pool_.setBusy(false);
        return static_cast<double>(kWords * sizeof(uint64_t)) * n_passes / seconds;
    }

  private:
    static constexpr size_t kWords = size_t{64} << 20;
    static constexpr size_t kChunk = 4096;

    void readAll() {
        pool_.parallelFor(kWords, kChunk, [this](size_t begin, size_t end, size_t worker) {
            uint64_t a = 0, b = 0, c = 0, d = 0;
            for (size_t i = begin; i < end; i += 4) {
                a += words_[i];
                b += words_[i + 1];
                c += words_[i + 2];
                d += words_[i + 3];
            }
            sums_[worker * 8] += a + b + c + d;
        });
    }

    AlignedBuffer<uint64_t> words_;
    ThreadPool pool_;
    std::vector<uint64_t> sums_;
};

/// Bytes a second that all threads together read from memory, the best of four passes.
inline double memoryBandwidth(size_t n_threads) {
    MemoryReader reader(n_threads);
    double best = 0.0;
    for (int i = 0; i < 4; ++i) {
        best = std::max(best, reader.bandwidth(1));
    }
    return best;
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
