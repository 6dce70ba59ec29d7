// SPDX-License-Identifier: Apache-2.0
#pragma once

// Safetensors files. Reading checks everything before use: header length, JSON, keys, types,
// shapes, and that the tensors cover the data exactly. Views point into the mapping. Immutable
// after open: any thread.
//
// Layout: u64 N, N bytes of JSON {"name": {"dtype", "shape", "data_offsets": [begin, end]},
// "__metadata__": {...}}, data. Source: the safetensors format description (row-major,
// little-endian).

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inference/format/mapped_file.h"
#include "inference/format/output_tensor.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

struct SafetensorsEntry {
    std::string name;
    std::string dtype;  ///< "F32"
    std::vector<uint64_t> shape;
    std::span<const std::byte> bytes;  ///< not aligned

    [[nodiscard]] uint64_t elementCount() const;
};

class SafetensorsFile {
  public:
    /// Errors: NotFound, Io, Corrupt; the message names the file.
    [[nodiscard]] static Result<SafetensorsFile> open(const std::string& path);

    /// The same from bytes that outlive the object.
    [[nodiscard]] static Result<SafetensorsFile> parse(std::span<const std::byte> bytes,
                                                       const std::string& name);

    [[nodiscard]] const std::string& name() const { return name_; }

    /// nullptr for parse().
    [[nodiscard]] const MappedFile* mapping() const { return mapping_.get(); }

    /// In the order of their data.
    [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const { return entries_; }

    [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const;

    /// The values of an F32 tensor. Errors: NotFound, Unsupported for other types.
    [[nodiscard]] Result<std::vector<float>> readF32(std::string_view name) const;
    /// The values of an I32 or I64 tensor. Errors: as readF32.
    [[nodiscard]] Result<std::vector<int64_t>> readInts(std::string_view name) const;

  private:
    SafetensorsFile() = default;

    std::unique_ptr<MappedFile> mapping_;
    std::string name_;
    std::vector<SafetensorsEntry> entries_;
};

/// Writes tensors of F32 and I32 through a temporary file beside `path` and a rename, so that a
/// reader never sees half a file. Requires: names differ, shapes fit. Errors: Io.
[[nodiscard]] Result<void> writeSafetensorsFile(const std::string& path,
                                                std::span<const OutputTensor> tensors);

}  // namespace belvedere::inference
