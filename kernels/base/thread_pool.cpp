// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/thread_pool.h"

#include <algorithm>

#include "kernels/base/check.h"

namespace belvedere {
namespace {

/// Chunks per worker: enough that a worker that was held up costs little, few enough that claiming
/// them costs nothing.
constexpr size_t kChunksPerThread = 4;

/// How long an idle worker spins while the pool is busy: longer than the sampler needs between two
/// tokens.
constexpr int kSpinsBusy = 20000;
/// And how long the caller spins for the last chunk before it lets others run.
constexpr int kSpinsBeforeYield = 2000;

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

uint32_t chunksLeft(uint64_t ticket) {
    return static_cast<uint32_t>(ticket & 0xffffffffU);
}

}  // namespace

ThreadPool::ThreadPool(size_t n_threads)
    : n_threads_(n_threads > 0 ? n_threads
                               : std::max<size_t>(1, std::thread::hardware_concurrency())) {
    workers_.reserve(n_threads_ - 1);
    for (size_t worker = 1; worker < n_threads_; ++worker) {
        workers_.emplace_back([this, worker] { workerLoop(worker); });
    }
}

ThreadPool::~ThreadPool() {
    {
        const std::lock_guard lock(mutex_);
        stopping_.store(true);
    }
    wake_.notify_all();
}

void ThreadPool::setBusy(bool busy) {
    busy_.store(busy, std::memory_order_relaxed);
}

void ThreadPool::run(size_t n_items, size_t grain, SliceFunction slice, void* context) {
    BV_DCHECK(grain > 0);
    if (n_items == 0) {
        return;
    }
    if (n_threads_ == 1 || n_items <= grain) {
        slice(context, 0, n_items, 0);
        return;
    }
    const size_t n_grains = (n_items + grain - 1) / grain;
    const size_t chunk_grains = std::max<size_t>(1, n_grains / (n_threads_ * kChunksPerThread));
    const size_t chunk_items = chunk_grains * grain;
    const auto n_chunks = static_cast<uint32_t>((n_items + chunk_items - 1) / chunk_items);
    slice_.store(slice, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    n_items_.store(n_items, std::memory_order_relaxed);
    chunk_items_.store(chunk_items, std::memory_order_relaxed);
    n_chunks_.store(n_chunks, std::memory_order_relaxed);
    n_done_.store(0, std::memory_order_relaxed);
    const uint64_t job = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
    // Sequentially consistent, like n_sleeping_: either we see the sleeper or it sees the job.
    ticket_.store(job << 32 | n_chunks, std::memory_order_seq_cst);
    if (n_sleeping_.load(std::memory_order_seq_cst) > 0) {
        {
            const std::lock_guard lock(mutex_);
        }
        wake_.notify_all();
    }
    while (takeChunk(0)) {
    }
    for (int spins = 0; n_done_.load(std::memory_order_acquire) != n_chunks; ++spins) {
        if (spins < kSpinsBeforeYield) {
            pause();
        } else {
            std::this_thread::yield();
        }
    }
}

/// Claims and runs one chunk of the current job; false when none is left.
///
/// The exchange succeeds only while the ticket is what we read. An unclaimed chunk keeps its job
/// unfinished, hence run() has not touched the job's fields, hence those read in between belong to
/// this job. (Job numbers repeat after 2^32 jobs.)
bool ThreadPool::takeChunk(size_t worker) {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (true) {
        const uint32_t n_left = chunksLeft(ticket);
        if (n_left == 0) {
            return false;
        }
        const SliceFunction slice = slice_.load(std::memory_order_relaxed);
        void* const context = context_.load(std::memory_order_relaxed);
        const size_t chunk = n_chunks_.load(std::memory_order_relaxed) - n_left;
        const size_t n_items = n_items_.load(std::memory_order_relaxed);
        const size_t chunk_items = chunk_items_.load(std::memory_order_relaxed);
        if (ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
            const size_t begin = chunk * chunk_items;
            slice(context, begin, std::min(begin + chunk_items, n_items), worker);
            n_done_.fetch_add(1, std::memory_order_release);
            return true;
        }
    }
}

bool ThreadPool::hasChunk() const {
    return chunksLeft(ticket_.load(std::memory_order_seq_cst)) > 0;
}

void ThreadPool::workerLoop(size_t worker) {
    int spins = 0;
    while (!stopping_.load(std::memory_order_relaxed)) {
        if (takeChunk(worker)) {
            spins = 0;
        } else if (busy_.load(std::memory_order_relaxed) && spins < kSpinsBusy) {
            ++spins;
            pause();
        } else {
            sleepUntilWork();
            spins = 0;
        }
    }
}

void ThreadPool::sleepUntilWork() {
    std::unique_lock lock(mutex_);
    n_sleeping_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, [this] { return stopping_.load() || hasChunk(); });
    n_sleeping_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace belvedere
