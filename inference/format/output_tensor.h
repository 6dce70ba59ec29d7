// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tensor of results, to be written as safetensors. A plain value: any thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace belvedere::inference {

struct OutputTensor {
    std::string name;
    std::vector<size_t> shape;
    std::variant<std::vector<float>, std::vector<int32_t>> values;  ///< row-major
};

}  // namespace belvedere::inference
