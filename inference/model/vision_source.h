// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the tower of a text model is: inside its checkpoint, or in an mmproj file beside its GGUF.
// Any thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inference/model/model_config.h"
#include "inference/model/model_source.h"
#include "inference/model/vision_config.h"

namespace belvedere::inference {

struct VisionSource {
    std::unique_ptr<ModelSource> file;  ///< nullptr: the tower is in the file of the text model
    VisionConfig config;

    [[nodiscard]] const ModelSource& in(const ModelSource& text) const {
        return file != nullptr ? *file : text;
    }
};

/// nullopt where there is none. `mmproj_path` empty: what the checkpoint holds, or the file with
/// "mmproj" in its name beside the GGUF that fits the model; one that does not is left out with a
/// notice. Errors: as ModelSource::visionConfig; of a file that was named also NotFound, Io, and
/// InvalidArgument where it does not fit the model.
[[nodiscard]] Result<std::optional<VisionSource>> findVision(const ModelSource& text,
                                                             const ModelConfig& config,
                                                             const std::string& mmproj_path,
                                                             std::vector<std::string>& notices);

}  // namespace belvedere::inference
