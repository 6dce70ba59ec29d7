// SPDX-License-Identifier: Apache-2.0
#include "inference/model/checkpoint_source.h"

#include <algorithm>

#include "inference/format/text_file.h"
#include "inference/format/unique_json.h"
#include "inference/model/checkpoint_tokenizer.h"

namespace belvedere::inference {
namespace {

constexpr const char* kConfigFile = "config.json";
constexpr int kMaxConfigDepth = 16;

/// A bias that config.json says is not there is no part of the model.
bool isForeignBias(std::string_view name, const BiasConfig& biases) {
    const auto ends = [&](auto... suffixes) { return (name.ends_with(suffixes) || ...); };
    return (!biases.qkv && ends("attn_q.bias", "attn_k.bias", "attn_v.bias")) ||
           (!biases.output && ends("attn_output.bias")) ||
           (!biases.mlp && ends("ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"));
}

}  // namespace

Result<std::unique_ptr<CheckpointSource>> CheckpointSource::open(
    const std::filesystem::path& folder) {
    SafetensorsFolder files = BV_TRY(SafetensorsFolder::open(folder));
    std::unique_ptr<CheckpointSource> source(new CheckpointSource(folder, std::move(files)));
    BV_TRY(source->readConfig());
    BV_TRY(source->addTensors());
    BV_TRY(source->settleHead());
    return source;
}

Result<void> CheckpointSource::readConfig() {
    config_file_ = (folder_ / kConfigFile).string();
    const std::string text = BV_TRY(readTextFile(config_file_));
    Result<nlohmann::json> json = parseUniqueJson(text, "the config", kMaxConfigDepth);
    if (!json.has_value()) {
        return failWithContext(std::move(json).error(), config_file_);
    }
    json_ = std::move(*json);
    config_ = BV_TRY(readCheckpointConfig(json_, config_file_));
    return {};
}

Result<void> CheckpointSource::addTensors() {
    for (const FolderTensor& stored : files_.tensors()) {
        CheckpointName name = parseCheckpointName(stored.entry->name);
        if (name.role == TensorRole::Skipped) {
            continue;
        }
        const bool is_foreign = (name.role == TensorRole::Vision && !config_.has_vision) ||
                                isForeignBias(name.name, config_.model.biases);
        if (stored.entry->dtype == "F8_E4M3" && !config_.is_mxfp8) {
            return fail(ErrorCode::Unsupported,
                        "{}: tensor {} is F8_E4M3, but {} has no quantization_config that says how "
                        "it is scaled",
                        stored.file->name(), stored.entry->name, config_file_);
        }
        if (is_foreign) {
            name = {};
            name.name = stored.entry->name;
        }
        if (name.role == TensorRole::Text) {
            learnSpelling(stored.entry->name);
        }
        BV_TRY(parts_.add(stored, name));
    }
    tensors_ = BV_TRY(parts_.join());
    for (ModelTensor& tensor : tensors_) {
        tensor.adds_one =
            config_.norms_add_one && !tensor.is_vision && tensor.name.ends_with("norm.weight");
    }
    return {};
}

void CheckpointSource::learnSpelling(std::string_view stored) {
    const size_t layers = stored.find("layers.");
    if (layers != std::string_view::npos) {
        prefix_ = stored.substr(0, layers);
        has_moe_module_ =
            has_moe_module_ || stored.find("block_sparse_moe.") != std::string_view::npos;
    }
}

Result<void> CheckpointSource::settleHead() {
    const bool has_embedding = find("token_embd.weight") != nullptr;
    const bool has_head = find("output.weight") != nullptr;
    const bool is_tied = config_.tied_head.value_or(!has_head);
    if (!is_tied && !has_head) {
        return fail(ErrorCode::Corrupt, "{}: tensor {} is missing (tie_word_embeddings is false)",
                    name_, spelling("output.weight"));
    }
    if (!is_tied || !has_head) {
        return {};
    }
    // Tied, and stored under the name of the head, or under both.
    const auto head = std::find_if(tensors_.begin(), tensors_.end(), [](const ModelTensor& tensor) {
        return tensor.name == "output.weight";
    });
    if (has_embedding) {
        tensors_.erase(head);
    } else {
        head->name = "token_embd.weight";
        std::sort(tensors_.begin(), tensors_.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
    }
    return {};
}

Result<ModelConfig> CheckpointSource::config(const ConfigOverrides& overrides) const {
    ModelConfig config = config_.model;
    BV_TRY(applyOverrides(config_file_, overrides, config));
    return config;
}

Result<std::optional<VisionConfig>> CheckpointSource::visionConfig() const {
    if (!config_.has_vision) {
        return std::optional<VisionConfig>();
    }
    return std::optional(BV_TRY(visionConfigFromJson(configJson())));
}

Result<PlaceholderIds> CheckpointSource::placeholders() const {
    const ConfigJson config = configJson();
    // Published, and as transformers saves it.
    const auto read = [&](const char* published,
                          const char* saved) -> Result<std::optional<TokenId>> {
        const char* key = config.has(published) ? published : saved;
        const auto id = BV_TRY(config.findUint(key, config_.model.vocab_size - 1));
        return id ? std::optional(static_cast<TokenId>(*id)) : std::nullopt;
    };
    PlaceholderIds ids;
    ids.image = BV_TRY(read("image_token_index", "image_token_id"));
    ids.video = BV_TRY(read("video_token_index", "video_token_id"));
    return ids;
}

const ModelTensor* CheckpointSource::find(std::string_view name) const {
    const auto found = std::lower_bound(
        tensors_.begin(), tensors_.end(), name,
        [](const ModelTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
    return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

std::string CheckpointSource::spelling(std::string_view name) const {
    std::string published = publishedName(name);
    constexpr std::string_view kUsualPrefix = "model.";
    if (published.starts_with(kUsualPrefix) && !prefix_.empty()) {
        published.replace(0, kUsualPrefix.size(), prefix_);
    } else if (published.starts_with("lm_head") && prefix_.starts_with("language_model.")) {
        published.insert(0, "language_model.");
    }
    for (const char* part :
         {".mlp.gate.", ".mlp.experts.", ".mlp.shared_experts.", ".mlp.e_score_correction_bias"}) {
        const size_t at = published.find(part);
        if (has_moe_module_ && at != std::string::npos) {
            published.replace(at, std::string_view(".mlp.").size(), ".block_sparse_moe.");
        }
    }
    return published;
}

Result<VocabularyData> CheckpointSource::vocabulary() const {
    return checkpointVocabulary(folder_, configJson());
}

Result<std::optional<TemplateText>> CheckpointSource::chatTemplate() const {
    return checkpointTemplate(folder_);
}

}  // namespace belvedere::inference
