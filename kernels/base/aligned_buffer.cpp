// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/aligned_buffer.h"

#include <sys/mman.h>

namespace belvedere {

void* allocateAligned(size_t n_bytes) {
    constexpr size_t kLine = 64;
    constexpr size_t kHugePage = size_t{2} << 20;
    if (n_bytes > SIZE_MAX - kHugePage) {
        return nullptr;
    }
    const bool is_large = n_bytes >= kHugePage;
    const size_t whole_lines = (n_bytes + kLine - 1) / kLine * kLine;
    void* memory = nullptr;
    if (posix_memalign(&memory, is_large ? kHugePage : kLine, whole_lines) != 0) {
        return nullptr;
    }
    if (is_large) {
        // Only pages that are ours to the end, so that no more is used than was asked for. Whether
        // the advice is taken changes the speed alone.
        static_cast<void>(madvise(memory, n_bytes / kHugePage * kHugePage, MADV_HUGEPAGE));
    }
    return memory;
}

}  // namespace belvedere
