// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model from a checkpoint: a folder with config.json, safetensors and, beside them, tokenizer and
// chat template. Tensors are brought under the names of GGUF: experts that stand by themselves are
// one tensor of several pieces, gate and up that stand in one tensor are two. Immutable after
// opening: any thread.

#include <filesystem>

#include <nlohmann/json.hpp>

#include "inference/format/safetensors_folder.h"
#include "inference/model/checkpoint_config.h"
#include "inference/model/checkpoint_tensors.h"
#include "inference/model/model_source.h"

namespace belvedere::inference {

class CheckpointSource : public ModelSource {
  public:
    /// Errors: NotFound, Io; Corrupt, Unsupported naming the file and the key or tensor.
    [[nodiscard]] static Result<std::unique_ptr<CheckpointSource>> open(
        const std::filesystem::path& folder);

    [[nodiscard]] const std::string& name() const override { return name_; }

    [[nodiscard]] std::string title() const override { return {}; }

    [[nodiscard]] Result<std::string> architecture() const override {
        return std::string(config_.model.family->architecture);
    }

    [[nodiscard]] uint64_t fileBytes() const override { return files_.fileBytes(); }

    [[nodiscard]] std::vector<std::string> notices() const override { return files_.notices(); }

    [[nodiscard]] Result<ModelConfig> config(const ConfigOverrides& overrides) const override;

    [[nodiscard]] Result<std::optional<VisionConfig>> visionConfig() const override;

    [[nodiscard]] Result<PlaceholderIds> placeholders() const override;

    [[nodiscard]] std::span<const ModelTensor> tensors() const override { return tensors_; }

    [[nodiscard]] const ModelTensor* find(std::string_view name) const override;
    [[nodiscard]] std::string spelling(std::string_view name) const override;
    [[nodiscard]] Result<VocabularyData> vocabulary() const override;
    [[nodiscard]] Result<std::optional<TemplateText>> chatTemplate() const override;

    [[nodiscard]] Result<void> checkWhole() const override { return files_.checkWhole(); }

    /// The whole config.json, for what stands beside the text model (vision_config).
    [[nodiscard]] ConfigJson configJson() const { return {json_, config_file_}; }

  private:
    CheckpointSource(std::filesystem::path folder, SafetensorsFolder files)
        : folder_(std::move(folder)), name_(folder_.string()), files_(std::move(files)) {}

    [[nodiscard]] Result<void> readConfig();
    [[nodiscard]] Result<void> addTensors();
    /// Settles which matrix turns hidden states into logits.
    [[nodiscard]] Result<void> settleHead();
    void learnSpelling(std::string_view stored);

    std::filesystem::path folder_;
    std::string name_;
    SafetensorsFolder files_;
    std::string config_file_;
    nlohmann::json json_;
    CheckpointConfig config_;
    CheckpointTensors parts_;           ///< owns the names in tensors_
    std::vector<ModelTensor> tensors_;  ///< by name
    std::string prefix_;                ///< of the stored names of layers
    bool has_moe_module_ = false;       ///< experts stand in block_sparse_moe
};

}  // namespace belvedere::inference
