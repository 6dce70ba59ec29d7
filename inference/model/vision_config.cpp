// SPDX-License-Identifier: Apache-2.0
#include "inference/model/vision_config.h"

#include "inference/model/config_checks.h"
#include "inference/model/key_reader.h"
#include "inference/vision/patches.h"

namespace belvedere::inference {
namespace {

constexpr uint64_t kMaxSegmentPairs = 1024;

Result<void> checkShape(const std::string& file, const VisionConfig& config) {
    if (config.dim % config.n_heads != 0 || config.headDim() > kMaxModelHeadDim ||
        config.axisPairs() == 0) {
        return fail(
            ErrorCode::Corrupt,
            "{}: vision tower: {} heads in an embedding of {} (a head has 6 to {} elements)", file,
            config.n_heads, config.dim, kMaxModelHeadDim);
    }
    return {};
}

tl::unexpected<Error> isNot(const std::string& file,
                            const std::string& key,
                            size_t found,
                            size_t expected) {
    return fail(ErrorCode::Unsupported, "{}: {} is {}, this program knows {} only", file, key,
                found, expected);
}

/// A key of the vision_config that has one value in this program.
Result<void> countIsOr(const ConfigJson& object, const char* key, size_t expected) {
    const size_t found = BV_TRY(object.findCount(key, kMaxModelDim)).value_or(expected);
    return found == expected ? Result<void>()
                             : isNot(object.file(), object.path(key), found, expected);
}

Result<void> checkPatches(const ConfigJson& vision) {
    BV_TRY(countIsOr(vision, "patch_size", kPatchPixels));
    BV_TRY(countIsOr(vision, "num_channels", 3));
    const auto compression = BV_TRY(vision.findObject("img_token_compression_config"));
    for (const ConfigJson& object : {vision, compression.value_or(vision)}) {
        BV_TRY(countIsOr(object, "temporal_patch_size", kPatchFrames));
        BV_TRY(countIsOr(object, "spatial_merge_size", kMergePatches));
    }
    return {};
}

}  // namespace

Result<VisionConfig> visionConfigFromGguf(const GgufFile& file) {
    const KeyReader keys(file, "clip");
    const std::string_view projector = BV_TRY(file.requiredString("clip.projector_type"));
    if (projector != "minimax_m3") {
        return fail(ErrorCode::Unsupported,
                    "{}: clip.projector_type \"{}\" is not supported (supported: minimax_m3)",
                    file.name(), projector.substr(0, 32));
    }
    if (!BV_TRY(file.findBool("clip.use_gelu")).value_or(false)) {
        return fail(ErrorCode::Unsupported, "{}: clip.use_gelu is not set: another activation",
                    file.name());
    }
    VisionConfig config;
    config.n_layers = BV_TRY(keys.count("vision.block_count", kMaxLayers));
    config.dim = BV_TRY(keys.count("vision.embedding_length", kMaxModelDim));
    config.n_heads = BV_TRY(keys.count("vision.attention.head_count", kMaxModelHeads));
    config.ff_dim = BV_TRY(keys.count("vision.feed_forward_length", kMaxModelDim));
    config.out_dim = BV_TRY(keys.count("vision.projection_dim", kMaxModelDim));
    const std::string eps_key = keys.key("vision.attention.layer_norm_epsilon");
    const double eps = BV_TRY(file.requiredFloat(eps_key));
    BV_TRY(checkNormEps(file.name(), eps_key, eps));
    config.norm_eps = static_cast<float>(eps);
    config.axis_order = AxisOrder::ByAxis;
    const size_t patch = BV_TRY(keys.count("vision.patch_size", kMaxModelDim));
    if (patch != kPatchPixels) {
        return isNot(file.name(), keys.key("vision.patch_size"), patch, kPatchPixels);
    }
    const size_t merge =
        BV_TRY(keys.countOr("vision.spatial_merge_size", kMaxModelDim, kMergePatches));
    if (merge != kMergePatches) {
        return isNot(file.name(), keys.key("vision.spatial_merge_size"), merge, kMergePatches);
    }
    BV_TRY(checkShape(file.name(), config));
    return config;
}

Result<VisionConfig> visionConfigFromJson(const ConfigJson& root) {
    const ConfigJson vision = BV_TRY(root.object("vision_config"));
    BV_TRY(checkPatches(vision));
    BV_TRY(vision.textIsOr("hidden_act", "gelu"));
    BV_TRY(vision.textIsOr("rope_mode", "3d"));
    BV_TRY(vision.textIsOr("position_embedding_type", "rope"));
    BV_TRY(root.textIsOr("projector_hidden_act", "gelu"));
    VisionConfig config;
    config.n_layers = BV_TRY(vision.count("num_hidden_layers", kMaxLayers));
    config.dim = BV_TRY(vision.count("hidden_size", kMaxModelDim));
    config.n_heads = BV_TRY(vision.count("num_attention_heads", kMaxModelHeads));
    config.ff_dim = BV_TRY(vision.count("intermediate_size", kMaxModelDim));
    config.out_dim = BV_TRY(root.count("projector_hidden_size", kMaxModelDim));
    const double eps = BV_TRY(vision.number("layer_norm_eps"));
    BV_TRY(checkNormEps(root.file(), vision.path("layer_norm_eps"), eps));
    config.norm_eps = static_cast<float>(eps);
    config.freq_base = BV_TRY(vision.number("rope_theta"));
    BV_TRY(checkFreqBase(root.file(), vision.path("rope_theta"), config.freq_base));
    config.segment_pairs = BV_TRY(vision.count("vision_segment_max_frames", kMaxSegmentPairs));
    BV_TRY(checkShape(root.file(), config));
    return config;
}

}  // namespace belvedere::inference
