// SPDX-License-Identifier: Apache-2.0
#pragma once

// Persistent workers that share the slices of one kernel call. The calling thread is worker 0.
// One caller at a time (the engine thread, or one ingestion job with a pool of its own).
//
//     pool.parallelFor(n_rows, kRowTile, [&](size_t begin, size_t end, size_t worker) { ... });

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace belvedere {

class ThreadPool {
  public:
    /// `n_threads` counts the calling thread: n_threads - 1 workers are started. 0 means one per
    /// core of the machine.
    explicit ThreadPool(size_t n_threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    [[nodiscard]] size_t threadCount() const { return n_threads_; }

    /// Calls slice(begin, end, worker) so that every item of [0, n_items) is in exactly one slice;
    /// borders are multiples of `grain`. Slices are handed out as workers become free. Returns when
    /// all are done. slice must not throw.
    template <class Slice>
    void parallelFor(size_t n_items, size_t grain, Slice&& slice) {
        using S = std::remove_reference_t<Slice>;
        run(
            n_items, grain,
            [](void* context, size_t begin, size_t end, size_t worker) {
                (*static_cast<S*>(context))(begin, end, worker);
            },
            const_cast<void*>(static_cast<const void*>(&slice)));
    }

    /// While busy, idle workers spin briefly before they sleep: lower latency between the kernels
    /// of one token. The engine turns it on for the time it generates and off after, so that an
    /// idle program uses no CPU.
    void setBusy(bool busy);

  private:
    using SliceFunction = void (*)(void* context, size_t begin, size_t end, size_t worker);

    void run(size_t n_items, size_t grain, SliceFunction slice, void* context);
    bool takeChunk(size_t worker);
    bool hasChunk() const;
    void workerLoop(size_t worker);
    void sleepUntilWork();

    const size_t n_threads_;

    // The current job. Atomic because a worker reads them before it knows, by winning a chunk, that
    // they are still current.
    std::atomic<SliceFunction> slice_{nullptr};
    std::atomic<void*> context_{nullptr};
    std::atomic<size_t> n_items_{0};
    std::atomic<size_t> chunk_items_{1};
    std::atomic<uint32_t> n_chunks_{0};

    /// High half: number of the job; low half: its chunks not yet handed out. One exchange on it
    /// claims a chunk.
    alignas(64) std::atomic<uint64_t> ticket_{0};
    alignas(64) std::atomic<uint32_t> n_done_{0};  ///< finished chunks of the current job
    alignas(64) std::atomic<bool> busy_{false};
    std::atomic<bool> stopping_{false};
    std::atomic<size_t> n_sleeping_{0};
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<std::jthread> workers_;  // last: joins before the state above dies
};

}  // namespace belvedere
