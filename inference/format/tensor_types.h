// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names and sizes of every tensor type a GGUF can hold, also those that we cannot compute with:
// these must be refused by name, and their bytes still checked against the file. Plain data, any
// thread. Source: ggml's type table (GGUF v3).

#include <cstdint>

namespace belvedere::inference {

struct TensorTypeInfo {
    uint32_t id;
    const char* name;
    uint32_t block_elements;
    uint32_t block_bytes;
};

/// nullptr where the id was removed from the format or never existed.
[[nodiscard]] const TensorTypeInfo* findTensorType(uint32_t id);

}  // namespace belvedere::inference
