// SPDX-License-Identifier: Apache-2.0
#include "tests/support/gguf_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace belvedere::testing {
namespace {

void appendString(std::string& out, std::string_view text) {
    out += rawBytes(uint64_t{text.size()});
    out += text;
}

/// Round to nearest even; only for the range of scales that tests use (normal halves).
uint16_t toHalf(float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    const uint32_t sign = bits >> 16 & 0x8000U;
    const auto exponent = static_cast<int32_t>(bits >> 23 & 0xFFU) - 127 + 15;
    if (exponent <= 0) {
        return static_cast<uint16_t>(sign);
    }
    uint32_t half = sign | static_cast<uint32_t>(exponent) << 10 | (bits >> 13 & 0x3FFU);
    const uint32_t rest = bits & 0x1FFFU;
    if (rest > 0x1000U || (rest == 0x1000U && (half & 1U) != 0)) {
        ++half;
    }
    return static_cast<uint16_t>(half);
}

}  // namespace

void GgufBuilder::beginKey(std::string_view key, uint32_t type) {
    appendString(metadata_, key);
    metadata_ += rawBytes(type);
    ++n_keys_;
}

void GgufBuilder::addUint32(std::string_view key, uint32_t value) {
    addRaw(key, 4, rawBytes(value));
}

void GgufBuilder::addUint64(std::string_view key, uint64_t value) {
    addRaw(key, 10, rawBytes(value));
}

void GgufBuilder::addFloat(std::string_view key, float value) {
    addRaw(key, 6, rawBytes(value));
}

void GgufBuilder::addBool(std::string_view key, bool value) {
    addRaw(key, 7, rawBytes(static_cast<uint8_t>(value ? 1 : 0)));
}

void GgufBuilder::addString(std::string_view key, std::string_view value) {
    beginKey(key, 8);
    appendString(metadata_, value);
}

void GgufBuilder::addStrings(std::string_view key, const std::vector<std::string>& values) {
    beginKey(key, 9);
    metadata_ += rawBytes(uint32_t{8}) + rawBytes(uint64_t{values.size()});
    for (const std::string& value : values) {
        appendString(metadata_, value);
    }
}

void GgufBuilder::addInts(std::string_view key, std::span<const int32_t> values) {
    beginKey(key, 9);
    metadata_ += rawBytes(uint32_t{5}) + rawBytes(uint64_t{values.size()});
    for (const int32_t value : values) {
        metadata_ += rawBytes(value);
    }
}

void GgufBuilder::addRaw(std::string_view key, uint32_t type, std::string_view value_bytes) {
    beginKey(key, type);
    metadata_ += value_bytes;
}

void GgufBuilder::addTensor(std::string_view name,
                            uint32_t type,
                            std::vector<uint64_t> dims,
                            std::string bytes) {
    tensors_.push_back({std::string(name), type, std::move(dims), std::move(bytes)});
}

void GgufBuilder::addTensorF32(std::string_view name,
                               std::vector<uint64_t> dims,
                               std::span<const float> values) {
    std::string bytes(values.size_bytes(), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    addTensor(name, 0, std::move(dims), std::move(bytes));
}

void GgufBuilder::addTensorQ8(std::string_view name,
                              std::vector<uint64_t> dims,
                              std::span<const float> values) {
    constexpr size_t kBlock = 32;
    std::string bytes;
    for (size_t begin = 0; begin < values.size(); begin += kBlock) {
        float largest = 0.0F;
        for (size_t i = 0; i < kBlock; ++i) {
            largest = std::max(largest, std::fabs(values[begin + i]));
        }
        const float scale = largest / 127.0F;
        bytes += rawBytes(toHalf(scale));
        for (size_t i = 0; i < kBlock; ++i) {
            const float quant = scale > 0.0F ? std::nearbyint(values[begin + i] / scale) : 0.0F;
            bytes += static_cast<char>(static_cast<int8_t>(std::clamp(quant, -127.0F, 127.0F)));
        }
    }
    addTensor(name, 8, std::move(dims), std::move(bytes));
}

std::string GgufBuilder::build() const {
    std::string file = "GGUF" + rawBytes(version) + rawBytes(uint64_t{tensors_.size()}) +
                       rawBytes(n_keys_) + metadata_;
    std::string data;
    for (const Tensor& tensor : tensors_) {
        data.resize((data.size() + alignment - 1) / alignment * alignment, '\0');
        appendString(file, tensor.name);
        file += rawBytes(static_cast<uint32_t>(tensor.dims.size()));
        for (const uint64_t dim : tensor.dims) {
            file += rawBytes(dim);
        }
        file += rawBytes(tensor.type) + rawBytes(uint64_t{data.size()});
        data += tensor.bytes;
    }
    if (!tensors_.empty()) {
        file.resize((file.size() + alignment - 1) / alignment * alignment, '\0');
    }
    return file + data;
}

}  // namespace belvedere::testing
