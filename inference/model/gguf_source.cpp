// SPDX-License-Identifier: Apache-2.0
#include "inference/model/gguf_source.h"

#include "inference/format/gguf_vocabulary.h"
#include "inference/model/gguf_config.h"

namespace belvedere::inference {

std::string GgufSource::title() const {
    const auto name = file_.findString("general.name");
    return name.has_value() && *name ? std::string(**name) : std::string();
}

Result<std::string> GgufSource::architecture() const {
    return std::string(BV_TRY(file_.requiredString("general.architecture")));
}

Result<ModelConfig> GgufSource::config(const ConfigOverrides& overrides) const {
    return modelConfigFromGguf(file_, overrides);
}

Result<std::optional<VisionConfig>> GgufSource::visionConfig() const {
    if (BV_TRY(architecture()) != "clip") {
        return std::optional<VisionConfig>();
    }
    return std::optional(BV_TRY(visionConfigFromGguf(file_)));
}

Result<VocabularyData> GgufSource::vocabulary() const {
    return vocabularyFromGguf(file_);
}

Result<std::optional<TemplateText>> GgufSource::chatTemplate() const {
    const auto text = BV_TRY(file_.findString("tokenizer.chat_template"));
    if (!text) {
        return std::optional<TemplateText>();
    }
    return std::optional<TemplateText>(
        {std::string(*text), fmt::format("tokenizer.chat_template of {}", file_.name())});
}

Result<void> GgufSource::checkWhole() const {
    return file_.checkWhole();
}

}  // namespace belvedere::inference
