// SPDX-License-Identifier: Apache-2.0
#include "inference/model/vision_weights.h"

#include <algorithm>

#include "inference/model/tensor_lookup.h"
#include "inference/vision/patches.h"
#include "kernels/kernels.h"

namespace belvedere::inference {
namespace {

/// Names of tensors, without ".weight" and ".bias".
struct Names {
    const char* layer;  ///< a format of the layer's number
    const char *norm_1, *norm_2, *q, *k, *v, *o, *up, *down;
    const char* first_norm;
    const char *project_1, *project_2, *merge_1, *merge_2;
};

constexpr Names kMmprojNames = {.layer = "v.blk.{}.",
                                .norm_1 = "ln1",
                                .norm_2 = "ln2",
                                .q = "attn_q",
                                .k = "attn_k",
                                .v = "attn_v",
                                .o = "attn_out",
                                .up = "ffn_up",
                                .down = "ffn_down",
                                .first_norm = "v.pre_ln",
                                .project_1 = "mm.1",
                                .project_2 = "mm.2",
                                .merge_1 = "mm.merge.fc1",
                                .merge_2 = "mm.merge.fc2"};

/// "layrnorm" is how published checkpoints spell it.
constexpr Names kCheckpointNames = {.layer = "vision_tower.vision_model.encoder.layers.{}.",
                                    .norm_1 = "layer_norm1",
                                    .norm_2 = "layer_norm2",
                                    .q = "self_attn.q_proj",
                                    .k = "self_attn.k_proj",
                                    .v = "self_attn.v_proj",
                                    .o = "self_attn.out_proj",
                                    .up = "mlp.fc1",
                                    .down = "mlp.fc2",
                                    .first_norm = "vision_tower.vision_model.pre_layrnorm",
                                    .project_1 = "multi_modal_projector.linear_1",
                                    .project_2 = "multi_modal_projector.linear_2",
                                    .merge_1 = "patch_merge_mlp.linear_1",
                                    .merge_2 = "patch_merge_mlp.linear_2"};

constexpr const char* kPatchTensor = "vision_tower.vision_model.embeddings.patch_embedding.weight";
/// One for each frame of a pair.
constexpr const char* kPatchSlices[kPatchFrames] = {"v.patch_embd.weight", "v.patch_embd.weight.1"};

/// Reads one tower.
class VisionLoader {
  public:
    VisionLoader(const ModelSource& source, const VisionConfig& config, Backend& backend)
        : source_(source),
          config_(config),
          backend_(backend),
          lookup_(source, no_adapters_),
          names_(config.axis_order == AxisOrder::ByAxis ? kMmprojNames : kCheckpointNames) {}

    [[nodiscard]] Result<VisionWeights> load();

  private:
    [[nodiscard]] Result<std::unique_ptr<DeviceLinear>> linear(const std::string& name,
                                                               size_t n_rows,
                                                               size_t n_cols);
    [[nodiscard]] Result<NormWeights> norm(const std::string& name);
    [[nodiscard]] Result<VisionLayerWeights> layer(size_t index);
    [[nodiscard]] Result<std::vector<float>> patchValues();
    [[nodiscard]] Result<std::vector<float>> patchSlice(const char* name);

    const ModelSource& source_;
    const VisionConfig& config_;
    Backend& backend_;
    const AdapterSet no_adapters_;
    TensorLookup lookup_;
    const Names& names_;
};

Result<std::unique_ptr<DeviceLinear>> VisionLoader::linear(const std::string& name,
                                                           size_t n_rows,
                                                           size_t n_cols) {
    const LinearView view = BV_TRY(lookup_.linear(name, n_rows, n_cols));
    if (view.bias.empty()) {
        return fail(ErrorCode::Corrupt, "{}: tensor {}.bias is missing", source_.name(), name);
    }
    return backend_.addLinear(view);
}

Result<NormWeights> VisionLoader::norm(const std::string& name) {
    const auto weight = BV_TRY(lookup_.vector(name + ".weight", config_.dim));
    const auto bias = BV_TRY(lookup_.vector(name + ".bias", config_.dim));
    return NormWeights{BV_TRY(backend_.addVector(weight)), BV_TRY(backend_.addVector(bias))};
}

Result<VisionLayerWeights> VisionLoader::layer(size_t index) {
    const std::string prefix = fmt::format(fmt::runtime(names_.layer), index);
    const size_t dim = config_.dim;
    VisionLayerWeights layer;
    layer.attention_norm = BV_TRY(norm(prefix + names_.norm_1));
    layer.mlp_norm = BV_TRY(norm(prefix + names_.norm_2));
    layer.q = BV_TRY(linear(prefix + names_.q, dim, dim));
    layer.k = BV_TRY(linear(prefix + names_.k, dim, dim));
    layer.v = BV_TRY(linear(prefix + names_.v, dim, dim));
    layer.o = BV_TRY(linear(prefix + names_.o, dim, dim));
    layer.up = BV_TRY(linear(prefix + names_.up, config_.ff_dim, dim));
    layer.down = BV_TRY(linear(prefix + names_.down, dim, config_.ff_dim));
    return layer;
}

/// [dim, channel, row, column] of one frame of the pair.
Result<std::vector<float>> VisionLoader::patchSlice(const char* name) {
    lookup_.skip(name);
    const ModelTensor* tensor = source_.find(name);
    if (tensor == nullptr) {
        return fail(ErrorCode::Corrupt, "{}: tensor {} is missing", source_.name(), name);
    }
    const std::array<uint64_t, 4> expected = {kPatchPixels, kPatchPixels, 3, config_.dim};
    if (tensor->dims != expected) {
        return fail(ErrorCode::Corrupt,
                    "{}: tensor {}: expected {} x {} x 3 x {}, found {} x {} x {} x {}",
                    source_.name(), name, kPatchPixels, kPatchPixels, config_.dim, tensor->dims[0],
                    tensor->dims[1], tensor->dims[2], tensor->dims[3]);
    }
    const kernels::WeightTypeInfo* type = kernels::findWeightType(tensor->type->id);
    // Rows of 14 values: no type that packs more into a block can be here.
    if (type == nullptr || kPatchPixels % type->block_elements != 0) {
        return fail(ErrorCode::Unsupported,
                    "{}: tensor {} has type {}, which is not supported here", source_.name(), name,
                    tensor->type->name);
    }
    std::vector<float> values(tensor->elementCount());
    kernels::tableFor(kernels::Isa::Scalar)
        ->dequantize(type->type, tensor->bytes.data(), values.data(), values.size());
    return values;
}

Result<std::vector<float>> VisionLoader::patchValues() {
    std::vector<float> values(config_.dim * kPatchValues);
    if (config_.axis_order == AxisOrder::Halves) {
        const MatrixView stored = BV_TRY(lookup_.plainMatrix(
            std::string(kPatchTensor, std::string_view(kPatchTensor).rfind('.')), config_.dim,
            kPatchValues));
        kernels::tableFor(kernels::Isa::Scalar)
            ->dequantize(stored.type, stored.data, values.data(), values.size());
        return values;
    }
    constexpr size_t kFrameValues = kPatchPixels * kPatchPixels;
    for (size_t frame = 0; frame < kPatchFrames; ++frame) {
        const std::vector<float> slice = BV_TRY(patchSlice(kPatchSlices[frame]));
        for (size_t i = 0; i < config_.dim * 3; ++i) {  // rows and channels
            std::copy_n(&slice[i * kFrameValues], kFrameValues,
                        &values[(i * kPatchFrames + frame) * kFrameValues]);
        }
    }
    return values;
}

Result<VisionWeights> VisionLoader::load() {
    const size_t dim = config_.dim;
    const size_t out_dim = config_.out_dim;
    VisionWeights weights;
    weights.patch_values = BV_TRY(patchValues());
    LinearView patch;
    patch.weight = {kernels::WeightType::F32, weights.patch_values.data(), dim, kPatchValues};
    weights.patch_embedding = BV_TRY(backend_.addLinear(patch));
    weights.first_norm = BV_TRY(norm(names_.first_norm));
    for (size_t index = 0; index < config_.n_layers; ++index) {
        weights.layers.push_back(BV_TRY(layer(index)));
    }
    weights.project_1 = BV_TRY(linear(names_.project_1, out_dim, dim));
    weights.project_2 = BV_TRY(linear(names_.project_2, out_dim, out_dim));
    weights.merge_1 = BV_TRY(linear(names_.merge_1, out_dim, kPatchesPerToken * out_dim));
    weights.merge_2 = BV_TRY(linear(names_.merge_2, out_dim, out_dim));
    BV_TRY(lookup_.refuseUnknown(ModelPart::Vision));
    return weights;
}

}  // namespace

Result<VisionWeights> loadVisionWeights(const ModelSource& source,
                                        const VisionConfig& config,
                                        Backend& backend) {
    return VisionLoader(source, config, backend).load();
}

}  // namespace belvedere::inference
