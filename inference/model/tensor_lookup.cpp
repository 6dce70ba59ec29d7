// SPDX-License-Identifier: Apache-2.0
#include "inference/model/tensor_lookup.h"

#include "kernels/kernels.h"

namespace belvedere::inference {
namespace {

constexpr const char* kLayerHint = "the file does not fit its own metadata";

}  // namespace

Result<const GgufTensor*> TensorLookup::required(const std::string& name) {
    asked_.insert(name);
    const GgufTensor* tensor = adapters_.find(file_, name);
    if (tensor == nullptr) {
        return fail(ErrorCode::Corrupt, "{}: tensor {} is missing", file_.name(), name);
    }
    return tensor;
}

Result<MatrixView> TensorLookup::matrix(const GgufTensor& tensor,
                                        size_t n_rows,
                                        size_t n_cols,
                                        size_t n_matrices) const {
    const kernels::WeightTypeInfo* type = kernels::findWeightType(tensor.type->id);
    if (type == nullptr) {
        return fail(ErrorCode::Unsupported, "{}: tensor {} has type {}, which is not supported",
                    file_.name(), tensor.name, tensor.type->name);
    }
    if (tensor.dims[0] != n_cols || tensor.dims[1] != n_rows || tensor.dims[2] != n_matrices ||
        tensor.dims[3] != 1) {
        return fail(ErrorCode::Corrupt,
                    "{}: tensor {}: expected {} x {} x {}, found {} x {} x {} x {}: {}",
                    file_.name(), tensor.name, n_cols, n_rows, n_matrices, tensor.dims[0],
                    tensor.dims[1], tensor.dims[2], tensor.dims[3], kLayerHint);
    }
    return MatrixView{type->type, tensor.bytes.data(), n_rows, n_cols};
}

Result<LinearView> TensorLookup::linear(const std::string& name, size_t n_rows, size_t n_cols) {
    LinearView view;
    const std::string weight = name + ".weight";
    view.weight = BV_TRY(matrix(*BV_TRY(required(weight)), n_rows, n_cols));
    for (const LoraPair& pair : adapters_.pairsOf(weight)) {
        const auto rank = static_cast<size_t>(pair.a->dims[1]);
        view.low_rank.push_back({BV_TRY(matrix(*pair.a, rank, n_cols)),
                                 BV_TRY(matrix(*pair.b, n_rows, rank)), pair.scale});
    }
    if (has(name + ".bias")) {
        view.bias = BV_TRY(vector(name + ".bias", n_rows));
    }
    return view;
}

Result<std::vector<MatrixView>> TensorLookup::experts(const std::string& name,
                                                      size_t n_experts,
                                                      size_t n_rows,
                                                      size_t n_cols) {
    const std::string weight = name + ".weight";
    if (!adapters_.pairsOf(weight).empty()) {
        return fail(ErrorCode::Unsupported, "{}: an adapter that changes experts ({})",
                    file_.name(), weight);
    }
    const MatrixView first = BV_TRY(matrix(*BV_TRY(required(weight)), n_rows, n_cols, n_experts));
    std::vector<MatrixView> views(n_experts, first);
    for (size_t i = 0; i < n_experts; ++i) {
        views[i].data = static_cast<const std::byte*>(first.data) + i * first.bytes();
    }
    return views;
}

Result<MatrixView> TensorLookup::plainMatrix(const std::string& name,
                                             size_t n_rows,
                                             size_t n_cols) {
    return matrix(*BV_TRY(required(name + ".weight")), n_rows, n_cols);
}

Result<std::vector<float>> TensorLookup::vector(const std::string& name, size_t n) {
    const GgufTensor* tensor = BV_TRY(required(name));
    const MatrixView view = BV_TRY(matrix(*tensor, 1, n));
    std::vector<float> values(n);
    const kernels::KernelTable* scalar = kernels::tableFor(kernels::Isa::Scalar);
    scalar->dequantize(view.type, view.data, values.data(), n);
    return values;
}

Result<void> TensorLookup::refuseUnknown() const {
    for (const GgufTensor& tensor : file_.tensors()) {
        if (!asked_.contains(std::string(tensor.name))) {
            return fail(ErrorCode::Unsupported,
                        "{}: tensor {} is not part of this architecture as this program knows it",
                        file_.name(), tensor.name);
        }
    }
    return {};
}

}  // namespace belvedere::inference
