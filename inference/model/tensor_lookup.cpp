// SPDX-License-Identifier: Apache-2.0
#include "inference/model/tensor_lookup.h"

#include "kernels/kernels.h"

namespace belvedere::inference {
namespace {

constexpr const char* kLayerHint = "the file does not fit its own metadata";

}  // namespace

Result<const ModelTensor*> TensorLookup::required(const std::string& name) {
    asked_.insert(name);
    const ModelTensor* tensor = adapters_.find(source_, name);
    if (tensor == nullptr) {
        return fail(ErrorCode::Corrupt, "{}: tensor {} is missing", source_.name(),
                    source_.spelling(name));
    }
    return tensor;
}

Result<MatrixView> TensorLookup::matrix(const ModelTensor& tensor,
                                        size_t n_rows,
                                        size_t n_cols,
                                        size_t n_matrices,
                                        size_t index) const {
    const kernels::WeightTypeInfo* type = kernels::findWeightType(tensor.type->id);
    if (type == nullptr) {
        return fail(ErrorCode::Unsupported, "{}: tensor {} has type {}, which is not supported",
                    source_.name(), tensor.label(), tensor.type->name);
    }
    if (tensor.dims[0] != n_cols || tensor.dims[1] != n_rows || tensor.dims[2] != n_matrices ||
        tensor.dims[3] != 1) {
        return fail(ErrorCode::Corrupt,
                    "{}: tensor {}: expected {} x {} x {}, found {} x {} x {} x {}: {}",
                    source_.name(), tensor.label(), n_cols, n_rows, n_matrices, tensor.dims[0],
                    tensor.dims[1], tensor.dims[2], tensor.dims[3], kLayerHint);
    }
    const TensorPiece piece = tensor.piece(index);
    return MatrixView{type->type,
                      piece.bytes.data(),
                      n_rows,
                      n_cols,
                      piece.scales.empty() ? nullptr : piece.scales.data(),
                      piece.stored_name.empty() ? tensor.label() : piece.stored_name};
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
                    source_.name(), weight);
    }
    const ModelTensor& tensor = *BV_TRY(required(weight));
    std::vector<MatrixView> views;
    for (size_t i = 0; i < n_experts; ++i) {
        views.push_back(BV_TRY(matrix(tensor, n_rows, n_cols, n_experts, i)));
    }
    return views;
}

Result<MatrixView> TensorLookup::plainMatrix(const std::string& name,
                                             size_t n_rows,
                                             size_t n_cols) {
    return matrix(*BV_TRY(required(name + ".weight")), n_rows, n_cols);
}

Result<std::vector<float>> TensorLookup::vector(const std::string& name, size_t n) {
    const ModelTensor* tensor = BV_TRY(required(name));
    const MatrixView view = BV_TRY(matrix(*tensor, 1, n));
    if (view.scales != nullptr) {
        return fail(ErrorCode::Unsupported, "{}: tensor {} has type {}, expected F32, F16 or BF16",
                    source_.name(), tensor->label(), tensor->type->name);
    }
    std::vector<float> values(n);
    const kernels::KernelTable* scalar = kernels::tableFor(kernels::Isa::Scalar);
    scalar->dequantize(view.type, view.data, values.data(), n);
    if (tensor->adds_one) {
        for (float& value : values) {
            value += 1.0F;
        }
    }
    return values;
}

Result<void> TensorLookup::refuseUnknown(ModelPart part) const {
    for (const ModelTensor& tensor : source_.tensors()) {
        if (tensor.is_vision == (part == ModelPart::Vision) &&
            !asked_.contains(std::string(tensor.name))) {
            return fail(ErrorCode::Unsupported,
                        "{}: tensor {} is not part of this architecture as this program knows it",
                        source_.name(), tensor.label());
        }
    }
    return {};
}

}  // namespace belvedere::inference
