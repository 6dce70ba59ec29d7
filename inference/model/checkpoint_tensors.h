// SPDX-License-Identifier: Apache-2.0
#pragma once

// From the tensors of a checkpoint to those the decoder asks for. Private to inference/model. One
// thread.

#include <map>
#include <string>
#include <vector>

#include "inference/format/model_tensor.h"
#include "inference/format/safetensors_folder.h"
#include "inference/model/checkpoint_names.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// Rows of matrices of a stored tensor that make up one tensor, or one expert of one.
struct StoredPart {
    FolderTensor stored;
    size_t half = 0;      ///< which half of the rows, where n_halves is 2
    size_t n_halves = 1;  ///< 2: gate and up stand in one tensor
};

/// Collects parts under the names of the decoder, then joins them.
class CheckpointTensors {
  public:
    /// Scales may come before or after what they belong to. Errors: Corrupt where two stored
    /// tensors claim the same place.
    [[nodiscard]] Result<void> add(const FolderTensor& stored, const CheckpointName& name);

    /// The tensors, ordered by name. Their names stay with this object. Errors: Corrupt where
    /// experts are missing or differ in type or shape, or scales do not fit or belong to nothing.
    [[nodiscard]] Result<std::vector<ModelTensor>> join() const;

  private:
    struct Parts {
        TensorRole role = TensorRole::Unknown;
        std::map<size_t, StoredPart> by_expert;  ///< 0 for what is no expert's
        bool are_experts = false;                ///< each stands by itself
    };

    [[nodiscard]] Result<void> addPart(const std::string& name,
                                       const StoredPart& part,
                                       const CheckpointName& parsed);
    [[nodiscard]] Result<ModelTensor> joinParts(const std::string& name, const Parts& parts) const;
    [[nodiscard]] Result<void> addPieces(const std::string& name,
                                         const Parts& parts,
                                         ModelTensor& tensor) const;
    /// The scales of an expert of a tensor, nullptr where there are none.
    [[nodiscard]] const StoredPart* findScales(const std::string& name, size_t expert) const;
    [[nodiscard]] Result<void> refuseOrphans() const;

    std::map<std::string, Parts> parts_;
    std::map<std::string, Parts> scales_;  ///< by the name of what they scale
};

}  // namespace belvedere::inference
