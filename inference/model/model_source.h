// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a model comes from: a GGUF file, or a checkpoint (a folder with config.json and
// safetensors). Both give the same things under the same names, so that config, weights, tokenizer
// and template are assembled once. Immutable after opening: any thread.
//
//     const auto source = BV_TRY(openModel("model.gguf"));
//     const ModelConfig config = BV_TRY(source->config({}));
//     TensorLookup lookup(*source, AdapterSet());

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inference/format/model_tensor.h"
#include "inference/model/model_config.h"
#include "inference/model/vision_config.h"
#include "inference/tokenizer/tokenizer.h"
#include "inference/tokenizer/vocabulary.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// Ids that stand for one token of an image or of a clip each, and those around them.
struct PlaceholderIds {
    std::optional<TokenId> image;
    std::optional<TokenId> video;
    std::optional<TokenId> begin;
    std::optional<TokenId> end;
};

/// A chat template and where it stands, for messages.
struct TemplateText {
    std::string text;
    std::string name;  ///< "tokenizer.chat_template of m.gguf"
};

class ModelSource {
  public:
    virtual ~ModelSource() = default;

    /// File or folder, for messages.
    [[nodiscard]] virtual const std::string& name() const = 0;
    /// What the model calls itself; empty: nothing.
    [[nodiscard]] virtual std::string title() const = 0;
    /// As GGUF spells it: "qwen3moe". Errors: Corrupt, Unsupported.
    [[nodiscard]] virtual Result<std::string> architecture() const = 0;
    /// Bytes of all files of tensors.
    [[nodiscard]] virtual uint64_t fileBytes() const = 0;
    /// What the user should know about the files.
    [[nodiscard]] virtual std::vector<std::string> notices() const = 0;

    /// Errors: Corrupt for missing, absurd or contradicting values, Unsupported for architectures
    /// and features that the decoder lacks; the message names the key.
    [[nodiscard]] virtual Result<ModelConfig> config(const ConfigOverrides& overrides) const = 0;

    /// Of the image tower among the tensors; nullopt: there is none. Errors: as config().
    [[nodiscard]] virtual Result<std::optional<VisionConfig>> visionConfig() const = 0;

    /// The ids that stand for images and clips, where the config names them. Errors: Corrupt.
    [[nodiscard]] virtual Result<PlaceholderIds> placeholders() const = 0;

    [[nodiscard]] virtual std::span<const ModelTensor> tensors() const = 0;
    /// By GGUF's name; nullptr where there is none.
    [[nodiscard]] virtual const ModelTensor* find(std::string_view name) const = 0;
    /// How this container would spell a tensor of that name, for messages.
    [[nodiscard]] virtual std::string spelling(std::string_view name) const = 0;

    /// Errors: NotFound where the model comes without a tokenizer; Corrupt, Unsupported.
    [[nodiscard]] virtual Result<VocabularyData> vocabulary() const = 0;
    [[nodiscard]] virtual Result<std::optional<TemplateText>> chatTemplate() const = 0;

    /// Errors: Io where a file shrank since it was opened.
    [[nodiscard]] virtual Result<void> checkWhole() const = 0;
};

/// A GGUF file, or a folder with config.json and safetensors. Errors: NotFound, Io, Corrupt,
/// Unsupported; the message names the file.
[[nodiscard]] Result<std::unique_ptr<ModelSource>> openModel(const std::string& path);

}  // namespace belvedere::inference
