// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where each number of a valid GGUF stands, so that tests can spoil one of them. Independent of
// the reader under test, and for files of our own only: nothing is checked. Tests only.
//
//     const GgufLayout layout(file);
//     layout.set(file, "tensor output.weight offset", 1 << 20);

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belvedere::testing {

/// A number in the file: "version", "n_tensors", "n_keys"; "key K length | type | value |
/// element_type | count | length of element I"; "tensor T length | n_dims | dim I | type | offset".
struct GgufField {
    std::string name;
    size_t position = 0;
    size_t n_bytes = 0;  ///< 1, 2, 4 or 8
};

class GgufLayout {
  public:
    explicit GgufLayout(std::string_view file);

    /// In file order.
    [[nodiscard]] const std::vector<GgufField>& fields() const { return fields_; }

    /// Ends the process where there is none of that name.
    [[nodiscard]] const GgufField& at(std::string_view name) const;

    /// Writes the low bytes of a value.
    void set(std::string& file, std::string_view name, uint64_t value) const;

    /// Of the tensor data, from the start of the file.
    [[nodiscard]] size_t dataBegin() const { return data_begin_; }

  private:
    uint64_t number(const std::string& name, size_t n_bytes);
    std::string text(const std::string& name);
    void readKey();
    void readValue(const std::string& key, uint64_t type);
    void readTensor();

    std::string_view file_;
    size_t position_ = 4;
    std::vector<GgufField> fields_;
    size_t data_begin_ = 0;
};

[[nodiscard]] uint64_t readField(std::string_view file, const GgufField& field);
void writeField(std::string& file, const GgufField& field, uint64_t value);

}  // namespace belvedere::testing
