// SPDX-License-Identifier: Apache-2.0
// Any bytes as a part of a checkpoint: as config.json where they begin as JSON does, else as
// safetensors; each is read or refused with a message. The corpus: a MiniMax-M3 of a few kB in
// published and in joined names, one in MXFP8, and configs of the families.
#include <cstddef>
#include <cstdint>

#include "kernels/base/check.h"
#include "tests/inference/format/safetensors_probe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace belvedere;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are bytes.
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    const bool is_json = size > 0 && data[0] == '{';
    const auto read = is_json ? testing::readConfigJson(bytes) : testing::readSafetensors(bytes);
    if (!read.has_value()) {
        BV_CHECK(!read.error().message.empty() && read.error().code != ErrorCode::Internal);
    }
    return 0;
}
