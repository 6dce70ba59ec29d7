// SPDX-License-Identifier: Apache-2.0
#include "tests/inference/mxfp8.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/check.h"

namespace belvedere::testing {
namespace {

constexpr size_t kBlock = 32;
constexpr const char* kScaleSuffix = "_scale_inv";

/// E4M3FN by its definition.
float decode(uint8_t bits) {
    const int exponent = bits >> 3 & 15;
    const int mantissa = bits & 7;
    const float magnitude = exponent == 0
                                ? std::ldexp(static_cast<float>(mantissa), -9)
                                : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

/// The nearest number.
uint8_t encode(float value) {
    const float magnitude = std::min(std::fabs(value), 448.0F);
    const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), -6) : -6;
    const float eighths = std::nearbyint(std::ldexp(magnitude, 3 - exponent));
    const int bits = ((exponent + 7) << 3) + static_cast<int>(eighths) - 8;
    return static_cast<uint8_t>(std::min(bits, 0x7e) | (value < 0 ? 0x80 : 0));
}

std::vector<float> values(const StoredTensor& tensor) {
    const size_t element_bytes = tensor.dtype == "F32" ? 4 : 2;
    BV_CHECK(tensor.dtype == "F32" || tensor.dtype == "BF16");
    std::vector<float> result(tensor.bytes.size() / element_bytes);
    for (size_t i = 0; i < result.size(); ++i) {
        uint32_t bits = 0;
        std::memcpy(reinterpret_cast<char*>(&bits) + (4 - element_bytes),
                    tensor.bytes.data() + i * element_bytes, element_bytes);
        std::memcpy(&result[i], &bits, 4);
    }
    return result;
}

bool isQuantised(const std::string& name, const StoredTensor& tensor) {
    return name.find("layers.") != std::string::npos && tensor.shape.size() == 2 &&
           tensor.shape[1] % kBlock == 0 && !name.ends_with("block_sparse_moe.gate.weight") &&
           name.find("index_") == std::string::npos;
}

}  // namespace

CheckpointBuilder quantisedToMxfp8(const CheckpointBuilder& checkpoint) {
    CheckpointBuilder result = checkpoint;
    result.config["quantization_config"] = {{"quant_method", "mxfp8"},
                                            {"activation_scheme", "dynamic"},
                                            {"weight_block_size", {1, 32}}};
    for (const auto& [name, tensor] : checkpoint.tensors) {
        if (!isQuantised(name, tensor)) {
            continue;
        }
        const std::vector<float> weights = values(tensor);
        StoredTensor numbers{"F8_E4M3", tensor.shape, std::string(weights.size(), '\0')};
        StoredTensor scales{"U8", {tensor.shape[0], tensor.shape[1] / kBlock}, {}};
        for (size_t begin = 0; begin < weights.size(); begin += kBlock) {
            float largest = 0;
            for (size_t i = 0; i < kBlock; ++i) {
                largest = std::max(largest, std::fabs(weights[begin + i]));
            }
            const int exponent = largest > 0 ? std::ilogb(largest) - 8 : 0;
            scales.bytes.push_back(static_cast<char>(exponent + 127));
            for (size_t i = 0; i < kBlock; ++i) {
                numbers.bytes[begin + i] =
                    static_cast<char>(encode(std::ldexp(weights[begin + i], -exponent)));
            }
        }
        result.tensors[name] = numbers;
        result.tensors[name + kScaleSuffix] = scales;
    }
    return result;
}

CheckpointBuilder dequantised(const CheckpointBuilder& mxfp8) {
    CheckpointBuilder result = mxfp8;
    result.config.erase("quantization_config");
    for (const auto& [name, tensor] : mxfp8.tensors) {
        if (tensor.dtype != "F8_E4M3") {
            continue;
        }
        const StoredTensor& scales = mxfp8.tensors.at(name + kScaleSuffix);
        StoredTensor& plain = result.tensors[name];
        plain = {"F32", tensor.shape, std::string(tensor.bytes.size() * 4, '\0')};
        for (size_t i = 0; i < tensor.bytes.size(); ++i) {
            const int exponent = static_cast<uint8_t>(scales.bytes[i / kBlock]) - 127;
            const float value = std::ldexp(decode(static_cast<uint8_t>(tensor.bytes[i])), exponent);
            std::memcpy(plain.bytes.data() + 4 * i, &value, 4);
        }
        result.tensors.erase(name + kScaleSuffix);
    }
    return result;
}

}  // namespace belvedere::testing
