// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parsing half of GgufFile: walks the bytes once, front to back, and checks each rule before
// the value is used. Private to inference/format. One thread.

#include <span>
#include <string_view>

#include "inference/format/byte_cursor.h"
#include "inference/format/gguf.h"

namespace belvedere::inference {

class GgufReader {
  public:
    GgufReader(std::span<const std::byte> bytes, const GgufLimits& limits, GgufFile& file)
        : bytes_(bytes), cursor_(bytes), limits_(limits), file_(file) {}

    [[nodiscard]] Result<void> run();

  private:
    /// A tensor as its info states it, before the data section is known.
    struct PlacedTensor {
        uint64_t offset = 0;
        uint64_t n_bytes = 0;
    };

    [[nodiscard]] Result<void> readHeader();
    [[nodiscard]] Result<void> readMetadata();
    [[nodiscard]] Result<void> readAlignment();
    [[nodiscard]] Result<void> readTensorInfos();
    [[nodiscard]] Result<void> readTensorInfo(uint64_t index);
    [[nodiscard]] Result<void> placeTensors();
    [[nodiscard]] Result<void> checkOverlap(uint64_t data_begin) const;

    [[nodiscard]] Result<GgufValue> readValue(std::string_view key, uint32_t type);
    [[nodiscard]] Result<GgufValue> readNumber(std::string_view key, GgufType type);
    [[nodiscard]] Result<GgufArray> readArray(std::string_view key);
    [[nodiscard]] Result<std::string_view> readString(const char* what, uint64_t max_bytes);
    template <class T>
    [[nodiscard]] Result<T> read(const char* what);

    std::span<const std::byte> bytes_;
    ByteCursor cursor_;
    const GgufLimits& limits_;
    GgufFile& file_;
    uint64_t n_tensors_ = 0;
    uint64_t n_keys_ = 0;
    uint64_t alignment_ = 32;
    std::vector<PlacedTensor> placed_;
};

}  // namespace belvedere::inference
