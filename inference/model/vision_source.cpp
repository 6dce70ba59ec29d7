// SPDX-License-Identifier: Apache-2.0
#include "inference/model/vision_source.h"

#include <algorithm>
#include <filesystem>

namespace belvedere::inference {
namespace {

namespace fs = std::filesystem;

/// The one family whose text models take images.
constexpr std::string_view kFamily = "minimax-m3";

Result<VisionSource> openTower(const std::string& path, const ModelConfig& config) {
    VisionSource vision;
    vision.file = BV_TRY(openModel(path));
    const std::optional<VisionConfig> tower = BV_TRY(vision.file->visionConfig());
    if (!tower) {
        return fail(ErrorCode::InvalidArgument, "{}: no mmproj file: it holds no vision tower",
                    path);
    }
    vision.config = *tower;
    if (tower->out_dim != config.dim) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: the projector makes rows of {}, the model takes rows of {}: it belongs to "
                    "another model",
                    path, tower->out_dim, config.dim);
    }
    return vision;
}

/// Files beside a GGUF whose names say that they are towers, by name.
std::vector<std::string> towersBeside(const std::string& model_path) {
    fs::path folder = fs::path(model_path).parent_path();
    folder = folder.empty() ? "." : folder;
    std::vector<std::string> paths;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (name.find("mmproj") != std::string::npos && name.ends_with(".gguf")) {
            paths.push_back(at->path().string());
        }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

Result<std::optional<VisionSource>> towerInside(const ModelSource& text,
                                                const ModelConfig& config) {
    const auto tensors = text.tensors();
    if (std::none_of(tensors.begin(), tensors.end(),
                     [](const ModelTensor& tensor) { return tensor.is_vision; })) {
        return std::optional<VisionSource>();
    }
    const std::optional<VisionConfig> tower = BV_TRY(text.visionConfig());
    if (!tower) {
        return std::optional<VisionSource>();
    }
    if (tower->out_dim != config.dim) {
        return fail(ErrorCode::Corrupt,
                    "{}: projector_hidden_size is {}, but hidden_size of the text model is {}",
                    text.name(), tower->out_dim, config.dim);
    }
    return std::optional(VisionSource{nullptr, *tower});
}

}  // namespace

Result<std::optional<VisionSource>> findVision(const ModelSource& text,
                                               const ModelConfig& config,
                                               const std::string& mmproj_path,
                                               std::vector<std::string>& notices) {
    const bool takes_images = config.family->architecture == kFamily;
    if (!takes_images && !mmproj_path.empty()) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: a model of the architecture {} takes no images: leave out {}", text.name(),
                    config.family->architecture, mmproj_path);
    }
    if (!takes_images) {
        return std::optional<VisionSource>();
    }
    if (!mmproj_path.empty()) {
        return std::optional(BV_TRY(openTower(mmproj_path, config)));
    }
    if (!text.name().ends_with(".gguf")) {
        return towerInside(text, config);
    }
    for (const std::string& path : towersBeside(text.name())) {
        Result<VisionSource> vision = openTower(path, config);
        if (vision.has_value()) {
            return std::optional(std::move(*vision));
        }
        notices.push_back("not used: " + vision.error().message);
    }
    return std::optional<VisionSource>();
}

}  // namespace belvedere::inference
