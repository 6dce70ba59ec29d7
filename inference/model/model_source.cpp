// SPDX-License-Identifier: Apache-2.0
#include "inference/model/model_source.h"

#include <filesystem>

#include "inference/model/checkpoint_source.h"
#include "inference/model/gguf_source.h"

namespace belvedere::inference {

Result<std::unique_ptr<ModelSource>> openModel(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (fs::is_directory(path, error)) {
        return BV_TRY(CheckpointSource::open(path));
    }
    // One of its files stands for the folder: file dialogs choose files.
    if (path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json")) {
        const fs::path folder = fs::path(path).parent_path();
        return BV_TRY(CheckpointSource::open(folder.empty() ? "." : folder));
    }
    return std::make_unique<GgufSource>(BV_TRY(GgufFile::open(path)));
}

}  // namespace belvedere::inference
