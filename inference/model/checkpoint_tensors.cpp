// SPDX-License-Identifier: Apache-2.0
#include "inference/model/checkpoint_tensors.h"

#include <algorithm>

#include "kernels/formats.h"

namespace belvedere::inference {
namespace {

constexpr uint32_t kNoType = UINT32_MAX;
constexpr const char* kFloat8 = "F8_E4M3";
constexpr uint64_t kScaleBlock = 32;

/// F8_E4M3 and its scales together; bytes of a block as the kernels want it.
constexpr TensorTypeInfo kMxfp8 = {static_cast<uint32_t>(kernels::WeightType::MXFP8), "MXFP8", 32,
                                   33};

/// Types of safetensors: those that GGUF has too under its number, the others for their names.
constexpr TensorTypeInfo kDtypes[] = {
    {0, "F32", 1, 4},
    {1, "F16", 1, 2},
    {30, "BF16", 1, 2},
    {kNoType, "BOOL", 1, 1},
    {kNoType, "U8", 1, 1},
    {kNoType, "I8", 1, 1},
    {kNoType, "U16", 1, 2},
    {kNoType, "I16", 1, 2},
    {kNoType, "U32", 1, 4},
    {kNoType, "I32", 1, 4},
    {kNoType, "U64", 1, 8},
    {kNoType, "I64", 1, 8},
    {kNoType, "F64", 1, 8},
    {kNoType, "C64", 1, 8},
    {kNoType, "F8_E4M3", 1, 1},
    {kNoType, "F8_E5M2", 1, 1},
    {kNoType, "F8_E8M0", 1, 1},
    {kNoType, "F8_E4M3FNUZ", 1, 1},
    {kNoType, "F8_E5M2FNUZ", 1, 1},
    {kNoType, "F6_E2M3", 4, 3},
    {kNoType, "F6_E3M2", 4, 3},
    {kNoType, "F4", 2, 1},
};

const TensorTypeInfo* findDtype(std::string_view name) {
    const auto* found = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                     [&](const TensorTypeInfo& info) { return info.name == name; });
    return found == std::end(kDtypes) ? nullptr : found;
}

std::string shapeText(const std::vector<uint64_t>& shape) {
    std::string text;
    for (const uint64_t dim : shape) {
        text += fmt::format("{}{}", text.empty() ? "" : " x ", dim);
    }
    return text.empty() ? "a scalar" : text;
}

/// Rows by columns, or matrices by rows by columns where experts are stacked; dims fastest first.
struct Shape {
    size_t n_dims = 0;
    std::array<uint64_t, 4> dims = {1, 1, 1, 1};
};

/// The kernel of a patch embedding [out, channel, frame, y, x] is a matrix: its patches do not
/// overlap.
Result<Shape> shapeOf(const FolderTensor& tensor, TensorRole role) {
    const std::vector<uint64_t>& stored = tensor.entry->shape;
    Shape shape;
    shape.n_dims = stored.size();
    if (role == TensorRole::Vision && stored.size() > 2) {
        shape.n_dims = 2;
        shape.dims[1] = stored[0];
        for (size_t i = 1; i < stored.size(); ++i) {
            shape.dims[0] *= stored[i];  // no overflow: the reader checked the product
        }
        return shape;
    }
    if (stored.size() > 4) {
        return fail(ErrorCode::Corrupt, "{}: tensor {} has {} dimensions", tensor.file->name(),
                    tensor.entry->name, stored.size());
    }
    std::copy(stored.rbegin(), stored.rend(), shape.dims.begin());
    return shape;
}

/// Matrix i of the n of a stored tensor, or the part's half of its rows.
std::span<const std::byte> bytesOf(const StoredPart& part, size_t i, size_t n) {
    const std::span<const std::byte> bytes = part.stored.entry->bytes;
    const size_t matrix_bytes = bytes.size() / n;
    const size_t half_bytes = matrix_bytes / part.n_halves;
    return bytes.subspan(i * matrix_bytes + part.half * half_bytes, half_bytes);
}

/// A weight is MXFP8 exactly when it has scales; the scales must be those of MXFP8.
Result<void> checkScales(const StoredPart& part, const StoredPart* scales) {
    const SafetensorsEntry& entry = *part.stored.entry;
    const std::string& file = part.stored.file->name();
    const bool is_float8 = entry.dtype == kFloat8;
    if (scales == nullptr) {
        return is_float8 ? fail(ErrorCode::Corrupt,
                                "{}: tensor {}: its scales, {}_scale_inv, are missing", file,
                                entry.name, entry.name)
                         : Result<void>();
    }
    const SafetensorsEntry& scale = *scales->stored.entry;
    if (!is_float8) {
        return fail(ErrorCode::Corrupt, "{}: tensor {} has scales: expected {}, found {}", file,
                    entry.name, kFloat8, entry.dtype);
    }
    std::vector<uint64_t> shape = entry.shape;
    if (shape.size() < 2 || shape.back() % kScaleBlock != 0) {
        return fail(ErrorCode::Corrupt, "{}: tensor {}: {} does not divide into blocks of {}", file,
                    entry.name, shapeText(shape), kScaleBlock);
    }
    shape.back() /= kScaleBlock;
    if ((scale.dtype != "U8" && scale.dtype != "F8_E8M0") || scale.shape != shape) {
        return fail(ErrorCode::Corrupt, "{}: tensor {}: expected U8 of {}, found {} of {}",
                    scales->stored.file->name(), scale.name, shapeText(shape), scale.dtype,
                    shapeText(scale.shape));
    }
    return {};
}

}  // namespace

Result<void> CheckpointTensors::addPart(const std::string& name,
                                        const StoredPart& part,
                                        const CheckpointName& parsed) {
    Parts& parts = (parsed.is_scale ? scales_ : parts_)[name];
    const bool is_first = parts.by_expert.empty();
    const auto [place, is_new] = parts.by_expert.emplace(parsed.expert.value_or(0), part);
    if (!is_new || (!is_first && parts.are_experts != parsed.expert.has_value())) {
        return fail(ErrorCode::Corrupt, "{}: tensors {} and {} are the same tensor of the model",
                    part.stored.file->name(), parts.by_expert.begin()->second.stored.entry->name,
                    part.stored.entry->name);
    }
    parts.role = parsed.role;
    parts.are_experts = parsed.expert.has_value();
    return {};
}

Result<void> CheckpointTensors::add(const FolderTensor& stored, const CheckpointName& name) {
    if (name.up_name.empty()) {
        return addPart(name.name, {stored}, name);
    }
    const std::vector<uint64_t>& shape = stored.entry->shape;
    if (shape.size() < 2 || shape[shape.size() - 2] % 2 != 0) {
        return fail(ErrorCode::Corrupt, "{}: tensor {}: gate above up, found {}",
                    stored.file->name(), stored.entry->name, shapeText(shape));
    }
    BV_TRY(addPart(name.name, {stored, 0, 2}, name));
    return addPart(name.up_name, {stored, 1, 2}, name);
}

const StoredPart* CheckpointTensors::findScales(const std::string& name, size_t expert) const {
    const auto found = scales_.find(name);
    if (found == scales_.end()) {
        return nullptr;
    }
    const auto part = found->second.by_expert.find(expert);
    return part == found->second.by_expert.end() ? nullptr : &part->second;
}

Result<ModelTensor> CheckpointTensors::joinParts(const std::string& name,
                                                 const Parts& parts) const {
    const StoredPart& first = parts.by_expert.begin()->second;
    const SafetensorsEntry& entry = *first.stored.entry;
    const Shape shape = BV_TRY(shapeOf(first.stored, parts.role));
    ModelTensor tensor;
    tensor.name = name;
    tensor.stored_name = entry.name;
    tensor.type = findScales(name, parts.by_expert.begin()->first) != nullptr
                      ? &kMxfp8
                      : findDtype(entry.dtype);
    tensor.n_dims = shape.n_dims;
    tensor.dims = shape.dims;
    tensor.dims[1] /= first.n_halves;
    tensor.is_vision = parts.role == TensorRole::Vision;
    if (parts.are_experts) {
        if (shape.n_dims != 2) {
            return fail(ErrorCode::Corrupt, "{}: tensor {}: expected a matrix, found {}",
                        first.stored.file->name(), entry.name, shapeText(entry.shape));
        }
        tensor.n_dims = 3;
        tensor.dims[2] = parts.by_expert.size();
    }
    BV_TRY(addPieces(name, parts, tensor));
    return tensor;
}

Result<void> CheckpointTensors::addPieces(const std::string& name,
                                          const Parts& parts,
                                          ModelTensor& tensor) const {
    const SafetensorsEntry& first = *parts.by_expert.begin()->second.stored.entry;
    size_t n_seen = 0;
    for (const auto& [expert, part] : parts.by_expert) {
        const SafetensorsEntry& entry = *part.stored.entry;
        if (expert != n_seen++) {
            return fail(ErrorCode::Corrupt, "{}: the tensor of expert {} beside {} is missing",
                        part.stored.file->name(), n_seen - 1, first.name);
        }
        if (entry.dtype != first.dtype || entry.shape != first.shape) {
            return fail(ErrorCode::Corrupt,
                        "{}: tensor {}: expected {} of {} as {} is, found {} of {}",
                        part.stored.file->name(), entry.name, first.dtype, shapeText(first.shape),
                        first.name, entry.dtype, shapeText(entry.shape));
        }
        const StoredPart* scales = findScales(name, expert);
        if (parts.role == TensorRole::Text) {
            BV_TRY(checkScales(part, scales));
        }
        const auto n = static_cast<size_t>(
            parts.are_experts ? 1 : std::max<uint64_t>(tensor.dims[2] * tensor.dims[3], 1));
        for (size_t i = 0; i < n; ++i) {
            tensor.pieces.push_back(
                {bytesOf(part, i, n),
                 scales != nullptr ? bytesOf(*scales, i, n) : std::span<const std::byte>(),
                 entry.name});
        }
    }
    return {};
}

Result<void> CheckpointTensors::refuseOrphans() const {
    for (const auto& [name, scales] : scales_) {
        const auto parts = parts_.find(name);
        for (const auto& [expert, part] : scales.by_expert) {
            if (parts == parts_.end() || !parts->second.by_expert.contains(expert)) {
                return fail(ErrorCode::Corrupt, "{}: tensor {} scales nothing",
                            part.stored.file->name(), part.stored.entry->name);
            }
        }
    }
    return {};
}

Result<std::vector<ModelTensor>> CheckpointTensors::join() const {
    std::vector<ModelTensor> tensors;
    for (const auto& [name, parts] : parts_) {
        tensors.push_back(BV_TRY(joinParts(name, parts)));
    }
    BV_TRY(refuseOrphans());
    return tensors;
}

}  // namespace belvedere::inference
