// SPDX-License-Identifier: Apache-2.0
#pragma once

// What stands beside the safetensors of a checkpoint: tokenizer, chat template, the tokens that end
// an answer. Private to inference. Any thread.

#include <filesystem>
#include <optional>

#include "inference/model/config_json.h"
#include "inference/model/model_source.h"
#include "inference/tokenizer/vocabulary.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// From a tokenizer.json and, where it exists, a tokenizer_config.json. Errors: NotFound, Io,
/// Corrupt, Unsupported; the message names the file.
[[nodiscard]] Result<VocabularyData> vocabularyFromTokenizerJson(
    const std::filesystem::path& file, const std::filesystem::path& config_file);

/// The same from a folder, with the end tokens of generation_config.json, else of `config`. Errors:
/// as above.
[[nodiscard]] Result<VocabularyData> checkpointVocabulary(const std::filesystem::path& folder,
                                                          const ConfigJson& config);

/// chat_template.jinja, else chat_template in tokenizer_config.json; nullopt: neither. Errors: Io,
/// Corrupt.
[[nodiscard]] Result<std::optional<TemplateText>> checkpointTemplate(
    const std::filesystem::path& folder);

}  // namespace belvedere::inference
