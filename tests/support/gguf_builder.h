// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes GGUF bytes for tests: valid files by the builder, broken ones by changing what it wrote.
// Tests only.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belvedere::testing {

class GgufBuilder {
  public:
    uint32_t version = 3;
    uint64_t alignment = 32;  ///< of the data; write general.alignment too where it is not 32

    void addUint32(std::string_view key, uint32_t value);
    void addUint64(std::string_view key, uint64_t value);
    void addFloat(std::string_view key, float value);
    void addBool(std::string_view key, bool value);
    void addString(std::string_view key, std::string_view value);
    void addStrings(std::string_view key, const std::vector<std::string>& values);
    void addInts(std::string_view key, std::span<const int32_t> values);
    /// A key with a type number and value bytes of the test's choice.
    void addRaw(std::string_view key, uint32_t type, std::string_view value_bytes);

    void addTensor(std::string_view name,
                   uint32_t type,
                   std::vector<uint64_t> dims,
                   std::string bytes);
    void addTensorF32(std::string_view name,
                      std::vector<uint64_t> dims,
                      std::span<const float> values);
    /// Rows must fill blocks of 32.
    void addTensorQ8(std::string_view name,
                     std::vector<uint64_t> dims,
                     std::span<const float> values);

    [[nodiscard]] std::string build() const;

  private:
    struct Tensor {
        std::string name;
        uint32_t type = 0;
        std::vector<uint64_t> dims;
        std::string bytes;
    };

    void beginKey(std::string_view key, uint32_t type);

    std::string metadata_;
    uint64_t n_keys_ = 0;
    std::vector<Tensor> tensors_;
};

/// The bytes of a number, as GGUF stores it.
template <class T>
[[nodiscard]] std::string rawBytes(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

}  // namespace belvedere::testing
