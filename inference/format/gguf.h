// SPDX-License-Identifier: Apache-2.0
#pragma once

// A GGUF file, version 2 or 3: metadata and tensors. Nothing in it is trusted: every count, size,
// offset, type, name and alignment is checked before it is used, and a file that breaks a rule is
// refused with the place. Views point into the mapping, so they live as long as this object.
// Immutable after open: any thread.
//
// Layout (little-endian): "GGUF", u32 version, u64 n_tensors, u64 n_keys, keys (string, u32 type,
// value), tensor infos (string, u32 n_dims, u64 dims fastest first, u32 type, u64 offset), zero
// bytes up to the alignment, data. A string is a u64 length and its bytes; an array is u32 type,
// u64 count, elements. Source: the GGUF v3 document of ggml.
//
//     const GgufFile file = BV_TRY(GgufFile::open("model.gguf"));
//     const uint64_t n_layers = BV_TRY(file.requiredUint("llama.block_count"));

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "inference/format/gguf_split.h"
#include "inference/format/mapped_file.h"
#include "inference/format/model_tensor.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// Tighter than the format allows; real files stay far below.
struct GgufLimits {
    uint64_t max_key_bytes = 1U << 10;
    uint64_t max_string_bytes = 16U << 20;
    uint64_t max_array_elements = 16U << 20;
    uint64_t max_metadata_bytes = uint64_t{1} << 30;
    uint64_t max_keys = 64U << 10;
    uint64_t max_tensors = 100'000;
    uint64_t max_alignment = 1U << 20;
};

/// The numbers are those of the file.
enum class GgufType : uint32_t {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
};

[[nodiscard]] const char* ggufTypeName(GgufType type);

/// Elements of one type, still in the file; strings are indexed.
struct GgufArray {
    GgufType element_type = GgufType::U8;
    size_t n_elements = 0;
    std::span<const std::byte> bytes;       ///< of numbers
    std::vector<std::string_view> strings;  ///< of strings
};

struct GgufValue {
    GgufType type = GgufType::U8;
    std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray> value;
};

class GgufFile {
  public:
    /// A whole file, or any part of a split one: then all parts, the metadata of the first. Errors:
    /// NotFound, Io, Corrupt, Unsupported (version, byte order); the message names the file.
    [[nodiscard]] static Result<GgufFile> open(const std::string& path,
                                               const GgufLimits& limits = {});

    /// The same from bytes that outlive the object; a part of a split model is refused. `name`
    /// stands in messages.
    [[nodiscard]] static Result<GgufFile> parse(std::span<const std::byte> bytes,
                                                const std::string& name,
                                                const GgufLimits& limits = {});

    [[nodiscard]] const std::string& name() const { return name_; }

    /// Errors: Io where a file shrank since it was opened.
    [[nodiscard]] Result<void> checkWhole() const;

    /// Of all parts.
    [[nodiscard]] uint64_t fileBytes() const { return file_bytes_; }

    [[nodiscard]] const std::vector<ModelTensor>& tensors() const { return tensors_; }

    [[nodiscard]] const ModelTensor* findTensor(std::string_view name) const;

    /// In file order.
    [[nodiscard]] const std::vector<std::string_view>& keys() const { return keys_; }

    [[nodiscard]] const GgufValue* findValue(std::string_view key) const;

    // nullopt where the key is absent. Errors: Corrupt where it is there with another type; any
    // integer type serves where the value fits.
    [[nodiscard]] Result<std::optional<uint64_t>> findUint(std::string_view key) const;
    [[nodiscard]] Result<std::optional<double>> findFloat(std::string_view key) const;
    [[nodiscard]] Result<std::optional<bool>> findBool(std::string_view key) const;
    [[nodiscard]] Result<std::optional<std::string_view>> findString(std::string_view key) const;
    /// nullptr where the key is absent.
    [[nodiscard]] Result<const GgufArray*> findArray(std::string_view key,
                                                     GgufType element_type) const;

    // The same; Corrupt where the key is absent.
    [[nodiscard]] Result<uint64_t> requiredUint(std::string_view key) const;
    [[nodiscard]] Result<double> requiredFloat(std::string_view key) const;
    [[nodiscard]] Result<std::string_view> requiredString(std::string_view key) const;

  private:
    friend class GgufReader;

    GgufFile() = default;

    /// One file, whether it is a part or not.
    [[nodiscard]] static Result<GgufFile> parseOne(std::span<const std::byte> bytes,
                                                   const std::string& name,
                                                   const GgufLimits& limits);
    [[nodiscard]] static Result<GgufFile> openOne(const std::string& path,
                                                  const GgufLimits& limits);
    [[nodiscard]] Result<void> addParts(SplitName name, const GgufLimits& limits);

    std::unique_ptr<MappedFile> mapping_;                     ///< nullptr for parse()
    std::vector<std::unique_ptr<MappedFile>> more_mappings_;  ///< of the other parts
    std::string name_;
    uint64_t file_bytes_ = 0;
    std::vector<std::string_view> keys_;
    std::unordered_map<std::string_view, GgufValue> values_;
    std::vector<ModelTensor> tensors_;
    std::unordered_map<std::string_view, size_t> tensor_index_;
};

}  // namespace belvedere::inference
