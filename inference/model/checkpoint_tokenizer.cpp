// SPDX-License-Identifier: Apache-2.0
#include "inference/model/checkpoint_tokenizer.h"

#include "inference/format/text_file.h"
#include "inference/format/unique_json.h"
#include "inference/model/checkpoint_config.h"
#include "inference/model/config_checks.h"
#include "inference/tokenizer/tokenizer_json.h"

namespace belvedere::inference {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";
constexpr const char* kTemplateFile = "chat_template.jinja";
constexpr const char* kGenerationFile = "generation_config.json";
constexpr int kMaxDepth = 64;
constexpr const char* kEndKey = "eos_token_id";

/// The text of a file that need not be there; empty where it is not.
Result<std::string> readIfThere(const fs::path& file) {
    std::error_code error;
    return fs::exists(file, error) ? readTextFile(file) : Result<std::string>(std::string());
}

Result<nlohmann::json> readObject(const fs::path& file, const std::string& text) {
    Result<nlohmann::json> json = parseUniqueJson(text, "the file", kMaxDepth);
    if (!json.has_value()) {
        return failWithContext(std::move(json).error(), file.string());
    }
    return json;
}

/// Where both files name end tokens, those for generation count.
Result<std::vector<size_t>> readEnds(const fs::path& folder, const ConfigJson& config) {
    const fs::path file = folder / kGenerationFile;
    const std::string text = BV_TRY(readIfThere(file));
    if (!text.empty()) {
        const nlohmann::json json = BV_TRY(readObject(file, text));
        const ConfigJson generation(json, file.string());
        if (generation.has(kEndKey)) {
            return generation.findUints(kEndKey, kMaxVocabulary);
        }
    }
    const ConfigJson inner = BV_TRY(textConfig(config));
    return (inner.has(kEndKey) ? inner : config).findUints(kEndKey, kMaxVocabulary);
}

/// A template, or several with names, of which "default" is meant.
Result<std::optional<TemplateText>> templateOfConfig(const fs::path& file) {
    const std::string text = BV_TRY(readIfThere(file));
    if (text.empty()) {
        return std::optional<TemplateText>();
    }
    const nlohmann::json json = BV_TRY(readObject(file, text));
    const auto found = json.find("chat_template");
    if (found == json.end() || found->is_null()) {
        return std::optional<TemplateText>();
    }
    const std::string name = fmt::format("chat_template of {}", file.string());
    if (found->is_string()) {
        return std::optional<TemplateText>({found->get<std::string>(), name});
    }
    if (found->is_array()) {
        for (const nlohmann::json& entry : *found) {
            if (entry.is_object() && entry.value("name", nlohmann::json()) == "default" &&
                entry.value("template", nlohmann::json()).is_string()) {
                return std::optional<TemplateText>({entry["template"].get<std::string>(), name});
            }
        }
    }
    return fail(ErrorCode::Corrupt, "{}: expected a text or a list with one named \"default\"",
                name);
}

}  // namespace

Result<VocabularyData> vocabularyFromTokenizerJson(const fs::path& file,
                                                   const fs::path& config_file) {
    const std::string text = BV_TRY(readTextFile(file));
    const std::string config = BV_TRY(readIfThere(config_file));
    Result<VocabularyData> data = fromTokenizerJson(text, config);
    if (!data.has_value()) {
        return failWithContext(std::move(data).error(), file.string());
    }
    return data;
}

Result<VocabularyData> checkpointVocabulary(const fs::path& folder, const ConfigJson& config) {
    VocabularyData data =
        BV_TRY(vocabularyFromTokenizerJson(folder / kTokenizerFile, folder / kTokenizerConfigFile));
    for (const size_t id : BV_TRY(readEnds(folder, config))) {
        data.ends.push_back(static_cast<uint32_t>(id));
    }
    return data;
}

Result<std::optional<TemplateText>> checkpointTemplate(const fs::path& folder) {
    const fs::path file = folder / kTemplateFile;
    std::string text = BV_TRY(readIfThere(file));
    if (!text.empty()) {
        return std::optional<TemplateText>({std::move(text), file.string()});
    }
    return templateOfConfig(folder / kTokenizerConfigFile);
}

}  // namespace belvedere::inference
