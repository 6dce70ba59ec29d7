// SPDX-License-Identifier: Apache-2.0
#pragma once

// The safetensors files of a checkpoint: model.safetensors, or the parts that
// model.safetensors.index.json lists. The index is not trusted: its parts are plain names of files
// that stand in the folder, each tensor it lists must be in the part it names. Immutable after
// open: any thread.
//
//     const auto folder = BV_TRY(SafetensorsFolder::open("models/m3"));
//     for (const FolderTensor& tensor : folder.tensors()) ...

#include <filesystem>
#include <string>
#include <vector>

#include "inference/format/safetensors.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// Does not own: valid as long as the folder.
struct FolderTensor {
    const SafetensorsEntry* entry = nullptr;
    const SafetensorsFile* file = nullptr;
};

class SafetensorsFolder {
  public:
    /// Errors: NotFound, Io; Corrupt for a broken or hostile index or part; the message names the
    /// file.
    [[nodiscard]] static Result<SafetensorsFolder> open(const std::filesystem::path& folder);

    /// Each name once.
    [[nodiscard]] const std::vector<FolderTensor>& tensors() const { return tensors_; }

    [[nodiscard]] uint64_t fileBytes() const;

    /// "model-00002-of-00003.safetensors holds 2 tensors that the index does not list"
    [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

    /// Errors: Io where a file shrank since it was opened.
    [[nodiscard]] Result<void> checkWhole() const;

  private:
    SafetensorsFolder() = default;

    [[nodiscard]] Result<void> openIndexed(const std::filesystem::path& folder,
                                           const std::filesystem::path& index);

    std::vector<std::unique_ptr<SafetensorsFile>> files_;
    std::vector<FolderTensor> tensors_;
    std::vector<std::string> notices_;
};

}  // namespace belvedere::inference
