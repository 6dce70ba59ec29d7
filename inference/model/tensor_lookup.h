// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensors by name (GGUF's), with the shape that the config asks for. Private to inference.
// Remembers what was asked, so that tensors nobody asked for can be refused. One thread.

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "inference/backend/backend.h"
#include "inference/model/adapter.h"
#include "inference/model/model_source.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

enum class ModelPart { Text, Vision };

class TensorLookup {
  public:
    TensorLookup(const ModelSource& source, const AdapterSet& adapters)
        : source_(source), adapters_(adapters) {}

    /// For messages.
    [[nodiscard]] const std::string& fileName() const { return source_.name(); }

    /// How the container would spell a tensor's name, for messages.
    [[nodiscard]] std::string spelling(std::string_view name) const {
        return source_.spelling(name);
    }

    [[nodiscard]] bool has(std::string_view name) const {
        return adapters_.find(source_, name) != nullptr;
    }

    /// The matrix `name`.weight of shape [n_rows, n_cols] with its low-rank parts and, where there
    /// is one, `name`.bias.
    [[nodiscard]] Result<LinearView> linear(const std::string& name, size_t n_rows, size_t n_cols);

    /// The matrices [n_rows, n_cols] that stand one behind the other in `name`.weight, one for each
    /// expert. Errors: Unsupported where an adapter changes them.
    [[nodiscard]] Result<std::vector<MatrixView>> experts(const std::string& name,
                                                          size_t n_experts,
                                                          size_t n_rows,
                                                          size_t n_cols);

    /// The matrix `name`.weight by itself.
    [[nodiscard]] Result<MatrixView> plainMatrix(const std::string& name,
                                                 size_t n_rows,
                                                 size_t n_cols);

    /// Knows a tensor without using it.
    void skip(const std::string& name) { asked_.insert(name); }

    /// n floats. Norm weights are stored as F32 or, in some files, F16 or BF16.
    [[nodiscard]] Result<std::vector<float>> vector(const std::string& name, size_t n);

    /// Errors: Unsupported where that part of the model holds a tensor that was never asked for.
    [[nodiscard]] Result<void> refuseUnknown(ModelPart part) const;

  private:
    [[nodiscard]] Result<const ModelTensor*> required(const std::string& name);
    /// Matrix `index` of the n_matrices that the tensor must hold.
    [[nodiscard]] Result<MatrixView> matrix(const ModelTensor& tensor,
                                            size_t n_rows,
                                            size_t n_cols,
                                            size_t n_matrices = 1,
                                            size_t index = 0) const;

    const ModelSource& source_;
    const AdapterSet& adapters_;
    std::unordered_set<std::string> asked_;
};

}  // namespace belvedere::inference
