// SPDX-License-Identifier: Apache-2.0
// Any bytes as a snapshot, as they are and with checksums that are right: each is read or refused
// with a message. The corpus: snapshots of a model of two layers, of 1, 128 and 300 tokens, one
// with a ban.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/check.h"
#include "tests/inference/cache/snapshot_probe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace belvedere;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are bytes.
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    std::vector<std::byte> bytes(begin, begin + size);
    for (int round = 0; round < 2; ++round) {
        const auto read = testing::readSnapshot(bytes);
        if (!read.has_value()) {
            BV_CHECK(!read.error().message.empty() && read.error().code != ErrorCode::Internal);
        }
        testing::repair(bytes);
    }
    return 0;
}
