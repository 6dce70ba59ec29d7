// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace belvedere {
namespace {

TEST(ThreadPool, GivesEveryItemToExactlyOneSlice) {
    for (const size_t n_threads : {1U, 2U, 3U, 7U}) {
        ThreadPool pool(n_threads);
        EXPECT_EQ(pool.threadCount(), n_threads);
        for (const size_t grain : {1U, 4U, 16U}) {
            for (size_t n_items = 0; n_items < 150; ++n_items) {
                std::vector<int> count(n_items,
                                       0);  // disjoint slices: no two threads share an element
                pool.parallelFor(n_items, grain, [&](size_t begin, size_t end, size_t worker) {
                    EXPECT_LT(worker, n_threads);
                    EXPECT_EQ(begin % grain, 0U);
                    EXPECT_TRUE(end % grain == 0 || end == n_items);
                    EXPECT_LT(begin, end);
                    for (size_t i = begin; i < end; ++i) {
                        ++count[i];
                    }
                });
                EXPECT_EQ(std::accumulate(count.begin(), count.end(), size_t{0}), n_items);
                EXPECT_EQ(std::count(count.begin(), count.end(), 1),
                          static_cast<std::ptrdiff_t>(n_items));
            }
        }
    }
}

TEST(ThreadPool, ManyTinyJobsInARowSeeEachOthersResults) {
    for (const bool busy : {false, true}) {
        ThreadPool pool(4);
        pool.setBusy(busy);
        std::vector<uint64_t> values(64, 1);
        const int n_jobs = busy ? 20000 : 2000;
        for (int job = 0; job < n_jobs; ++job) {
            // Each job reads what the last one wrote, shifted by one place: a slice that ran late
            // or twice would show.
            const std::vector<uint64_t> before = values;
            pool.parallelFor(values.size(), 1, [&](size_t begin, size_t end, size_t) {
                for (size_t i = begin; i < end; ++i) {
                    values[i] = before[(i + 1) % before.size()] * 3 + i;
                }
            });
        }
        std::vector<uint64_t> expected(64, 1);
        for (int job = 0; job < n_jobs; ++job) {
            const std::vector<uint64_t> before = expected;
            for (size_t i = 0; i < expected.size(); ++i) {
                expected[i] = before[(i + 1) % before.size()] * 3 + i;
            }
        }
        EXPECT_EQ(values, expected);
    }
}

TEST(ThreadPool, WorkersTakePartInALongJob) {
    ThreadPool pool(3);
    std::atomic<size_t> n_inside{0};
    std::atomic<size_t> most_inside{0};
    // Each slice waits until two are inside at once, which the calling thread alone can never be.
    pool.parallelFor(2, 1, [&](size_t, size_t, size_t) {
        n_inside.fetch_add(1);
        while (n_inside.load() < 2) {
            std::this_thread::yield();
        }
        most_inside.store(n_inside.load());
    });
    EXPECT_EQ(most_inside.load(), 2U);
}

TEST(ThreadPool, BusyMayChangeBetweenJobsAndThePoolEndsIdleOrBusy) {
    for (int round = 0; round < 50; ++round) {
        ThreadPool pool(3);
        std::atomic<size_t> sum{0};
        for (int job = 0; job < 10; ++job) {
            pool.setBusy(job % 3 == 0);
            pool.parallelFor(100, 8, [&](size_t begin, size_t end, size_t) {
                sum.fetch_add(end - begin, std::memory_order_relaxed);
            });
        }
        EXPECT_EQ(sum.load(), 1000U);
    }
}

TEST(ThreadPool, ZeroThreadsMeansOnePerCore) {
    const ThreadPool pool(0);
    EXPECT_GE(pool.threadCount(), 1U);
}

}  // namespace
}  // namespace belvedere
