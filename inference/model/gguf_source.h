// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model from a GGUF file. Immutable after opening: any thread.

#include "inference/format/gguf.h"
#include "inference/model/model_source.h"

namespace belvedere::inference {

class GgufSource : public ModelSource {
  public:
    explicit GgufSource(GgufFile file) : file_(std::move(file)) {}

    [[nodiscard]] const std::string& name() const override { return file_.name(); }

    [[nodiscard]] std::string title() const override;
    [[nodiscard]] Result<std::string> architecture() const override;

    [[nodiscard]] uint64_t fileBytes() const override { return file_.fileBytes(); }

    [[nodiscard]] std::vector<std::string> notices() const override { return {}; }

    [[nodiscard]] Result<ModelConfig> config(const ConfigOverrides& overrides) const override;

    /// Of an mmproj file.
    [[nodiscard]] Result<std::optional<VisionConfig>> visionConfig() const override;

    /// None: their texts in the vocabulary tell.
    [[nodiscard]] Result<PlaceholderIds> placeholders() const override { return PlaceholderIds(); }

    [[nodiscard]] std::span<const ModelTensor> tensors() const override { return file_.tensors(); }

    [[nodiscard]] const ModelTensor* find(std::string_view name) const override {
        return file_.findTensor(name);
    }

    [[nodiscard]] std::string spelling(std::string_view name) const override {
        return std::string(name);
    }

    [[nodiscard]] Result<VocabularyData> vocabulary() const override;
    [[nodiscard]] Result<std::optional<TemplateText>> chatTemplate() const override;
    [[nodiscard]] Result<void> checkWhole() const override;

  private:
    GgufFile file_;
};

}  // namespace belvedere::inference
