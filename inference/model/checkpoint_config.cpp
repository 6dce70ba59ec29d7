// SPDX-License-Identifier: Apache-2.0
#include "inference/model/checkpoint_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "inference/format/printable.h"
#include "inference/model/config_checks.h"

namespace belvedere::inference {
namespace {

struct ModelType {
    const char* model_type;    ///< of config.json
    const char* architecture;  ///< of GGUF
};

constexpr ModelType kModelTypes[] = {
    {"llama", "llama"},
    {"qwen2", "qwen2"},
    {"qwen3", "qwen3"},
    {"qwen3_moe", "qwen3moe"},
    {"minimax_m2", "minimax-m2"},
    {"minimax_m3_vl", "minimax-m3"},
    {"minimax_m3_vl_text", "minimax-m3"},
    {"minimax_m3", "minimax-m3"},
};

/// The text part of MiniMax-M3, taken by itself, calls its type minimax_m2.
constexpr std::string_view kM3Class = "MiniMaxM3";

Result<const FamilyTraits*> readFamily(const nlohmann::json& json, const ConfigJson& root) {
    const auto classes = json.find("architectures");
    if (classes != json.end() && classes->is_array() && !classes->empty() &&
        (*classes)[0].is_string() && (*classes)[0].get<std::string>().starts_with(kM3Class)) {
        return findFamily(root.file(), "minimax-m3");
    }
    const std::string type = BV_TRY(root.text("model_type"));
    std::string known;
    for (const ModelType& candidate : kModelTypes) {
        if (type == candidate.model_type) {
            return findFamily(root.file(), candidate.architecture);
        }
        known += fmt::format("{}{}", known.empty() ? "" : ", ", candidate.model_type);
    }
    return fail(ErrorCode::Unsupported, "{}: model_type \"{}\" is not supported (supported: {})",
                root.file(), printable(type), known);
}

/// MXFP8 is recognised, and nothing else: a name that contains "fp8" is not enough.
Result<bool> readQuantization(const ConfigJson& root) {
    const auto quantization = BV_TRY(root.findObject("quantization_config"));
    if (!quantization) {
        return false;
    }
    const std::string method = BV_TRY(quantization->text("quant_method"));
    const std::string algorithm =
        BV_TRY(quantization->findText("quant_algo")).value_or(std::string());
    if (method != "mxfp8") {
        return fail(ErrorCode::Unsupported,
                    "{}: {} is \"{}\"{}: weights quantised that way are not supported (supported: "
                    "mxfp8, or none)",
                    root.file(), quantization->path("quant_method"), printable(method),
                    algorithm.empty() ? "" : fmt::format(" ({})", printable(algorithm)));
    }
    const auto block = BV_TRY(quantization->findUints("weight_block_size", 1U << 20));
    if (!block.empty() && block != std::vector<size_t>{1, 32}) {
        return quantization->mismatch("weight_block_size", "[1, 32]");
    }
    return true;
}

Result<void> readSizes(const ConfigJson& text, ModelConfig& model) {
    model.n_layers = BV_TRY(text.count("num_hidden_layers", kMaxLayers));
    model.dim = BV_TRY(text.count("hidden_size", kMaxModelDim));
    model.vocab_size = BV_TRY(text.count("vocab_size", kMaxVocabulary));
    model.n_heads = BV_TRY(text.count("num_attention_heads", kMaxModelHeads));
    model.n_kv_heads =
        BV_TRY(text.findCount("num_key_value_heads", kMaxModelHeads)).value_or(model.n_heads);
    BV_TRY(checkHeads(text.file(), model));
    const auto head_dim = BV_TRY(text.findCount("head_dim", kMaxModelHeadDim));
    if (!head_dim &&
        (model.dim % model.n_heads != 0 || model.dim / model.n_heads > kMaxModelHeadDim)) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing, and {} heads do not share {} evenly",
                    text.file(), text.path("head_dim"), model.n_heads, model.dim);
    }
    model.head_dim = head_dim ? *head_dim : model.dim / model.n_heads;
    const double eps = BV_TRY(text.number("rms_norm_eps"));
    BV_TRY(checkNormEps(text.file(), text.path("rms_norm_eps"), eps));
    model.norm_eps = static_cast<float>(eps);
    model.layers.assign(model.n_layers, LayerConfig());
    return {};
}

/// A window over the newest positions is the same as none while the context is not longer.
Result<void> readContext(const ConfigJson& text, ModelConfig& model) {
    model.context_tokens = BV_TRY(text.count("max_position_embeddings", kMaxContextTokens));
    const auto window = BV_TRY(text.findCount("sliding_window", kMaxContextTokens));
    if (BV_TRY(text.findFlag("use_sliding_window")).value_or(window.has_value())) {
        if (!window) {
            return fail(ErrorCode::Corrupt, "{}: {} is missing", text.file(),
                        text.path("sliding_window"));
        }
        model.context_tokens = std::min(model.context_tokens, *window);
    }
    return {};
}

/// A number that stands at the top or among the parameters of RoPE.
Result<std::optional<double>> ropeNumber(const ConfigJson& text,
                                         const std::optional<ConfigJson>& parameters,
                                         const char* key) {
    const auto outer = BV_TRY(text.findNumber(key));
    const auto inner = parameters ? BV_TRY(parameters->findNumber(key)) : std::optional<double>();
    if (outer && inner && *outer != *inner) {
        return fail(ErrorCode::Corrupt, "{}: {} is {}, but {} is {}", text.file(), text.path(key),
                    *outer, parameters->path(key), *inner);
    }
    return outer ? outer : inner;
}

/// Llama 3's stretched frequencies as divisors: 1 for short waves, `factor` for long ones, a slide
/// between. Source: Llama 3.1, as transformers' rope type "llama3" computes it.
Result<std::vector<float>> readLlama3Divisors(const ConfigJson& rules, const RopeConfig& rope) {
    const double factor = BV_TRY(rules.number("factor"));
    const double low = BV_TRY(rules.number("low_freq_factor"));
    const double high = BV_TRY(rules.number("high_freq_factor"));
    const auto original = static_cast<double>(
        BV_TRY(rules.count("original_max_position_embeddings", kMaxContextTokens)));
    BV_TRY(checkLinearFactor(rules.file(), rules.path("factor"), factor));
    if (!(low > 0.0 && high > low && high < 1e6)) {
        return rules.mismatch("high_freq_factor", fmt::format("a number above {}", low));
    }
    std::vector<float> divisors;
    for (const float frequency : ropeFrequencies(rope, {})) {
        const double n_waves = original * static_cast<double>(frequency) / (2.0 * std::numbers::pi);
        const double share = std::clamp((n_waves - low) / (high - low), 0.0, 1.0);
        divisors.push_back(static_cast<float>(1.0 / ((1.0 - share) / factor + share)));
    }
    return divisors;
}

Result<void> readRopeRules(const ConfigJson& rules, RopeConfig& rope) {
    const char* key = rules.has("rope_type") ? "rope_type" : "type";
    const std::string type = BV_TRY(rules.findText(key)).value_or("default");
    if (type == "linear") {
        rope.linear_factor = BV_TRY(rules.number("factor"));
        return checkLinearFactor(rules.file(), rules.path("factor"), rope.linear_factor);
    }
    if (type == "llama3") {
        rope.divisors = BV_TRY(readLlama3Divisors(rules, rope));
        return {};
    }
    if (type != "default") {
        return fail(ErrorCode::Unsupported, "{}: {} is \"{}\" (supported: default, linear, llama3)",
                    rules.file(), rules.path(key), printable(type));
    }
    return {};
}

/// How many dimensions of a head are rotated. Where a family rotates a part of them, leaving the
/// keys out would rotate all.
Result<size_t> readRotatedDims(const ConfigJson& text,
                               const std::optional<ConfigJson>& parameters,
                               const ModelConfig& model) {
    const auto dims = BV_TRY(text.findCount("rotary_dim", model.head_dim));
    const auto factor = BV_TRY(ropeNumber(text, parameters, "partial_rotary_factor"));
    if (!dims && !factor) {
        if (model.family->has_experts && model.family->architecture.starts_with("minimax")) {
            return fail(ErrorCode::Corrupt, "{}: {} is missing", text.file(),
                        text.path("rotary_dim"));
        }
        return model.head_dim;
    }
    const double from_factor =
        factor ? *factor * static_cast<double>(model.head_dim) : static_cast<double>(*dims);
    if (!(from_factor >= 1.0 && from_factor <= static_cast<double>(model.head_dim)) ||
        from_factor != std::floor(from_factor) ||
        (dims && static_cast<double>(*dims) != from_factor)) {
        return fail(ErrorCode::Corrupt,
                    "{}: {}: expected {} (partial_rotary_factor {} of a head of {}), found {}",
                    text.file(), text.path("rotary_dim"), from_factor, factor.value_or(1.0),
                    model.head_dim, dims.value_or(0));
    }
    return static_cast<size_t>(from_factor);
}

Result<void> readRope(const ConfigJson& text, ModelConfig& model) {
    RopeConfig& rope = model.rope;
    rope.pairing = RopePairing::HalfSplit;
    const auto parameters = BV_TRY(text.findObject("rope_parameters"));
    const auto scaling = BV_TRY(text.findObject("rope_scaling"));
    if (parameters && scaling) {
        return fail(ErrorCode::Corrupt, "{}: {} and {} are both there", text.file(),
                    text.path("rope_parameters"), text.path("rope_scaling"));
    }
    const auto base = BV_TRY(ropeNumber(text, parameters, "rope_theta"));
    if (!base) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing", text.file(), text.path("rope_theta"));
    }
    rope.freq_base = *base;
    BV_TRY(checkFreqBase(text.file(), text.path("rope_theta"), rope.freq_base));
    rope.n_dims = BV_TRY(readRotatedDims(text, parameters, model));
    BV_TRY(checkRotatedDims(text.file(), text.path("rotary_dim"), rope.n_dims));
    if (parameters || scaling) {
        BV_TRY(readRopeRules(parameters ? *parameters : *scaling, rope));
    }
    return {};
}

Result<void> readActivation(const ConfigJson& text, ModelConfig& model) {
    const bool is_oai = model.family->activation == Activation::SwiGluOai;
    BV_TRY(text.text("hidden_act"));
    BV_TRY(text.textIsOr("hidden_act", is_oai ? "swigluoai" : "silu"));
    if (!is_oai) {
        return {};
    }
    const double alpha = BV_TRY(text.number("swiglu_alpha"));
    const double limit = BV_TRY(text.number("swiglu_limit"));
    const double beta = BV_TRY(text.findNumber("swiglu_beta")).value_or(1.0);
    if (!(alpha > 0.0 && alpha < 1e6)) {
        return text.mismatch("swiglu_alpha", "a number above 0");
    }
    if (!(limit > 0.0 && limit < 1e6)) {
        return text.mismatch("swiglu_limit", "a number above 0");
    }
    if (beta != 1.0) {
        return text.mismatch("swiglu_beta", "1");
    }
    model.swiglu_oai = {static_cast<float>(alpha), static_cast<float>(limit)};
    return {};
}

Result<void> readBiases(const ConfigJson& text, ModelConfig& model) {
    const bool attention = BV_TRY(text.findFlag("attention_bias")).value_or(false);
    model.biases = {attention || model.family->needs_qkv_bias, attention,
                    BV_TRY(text.findFlag("mlp_bias")).value_or(false)};
    return {};
}

}  // namespace

Result<ConfigJson> textConfig(const ConfigJson& root) {
    return BV_TRY(root.findObject("text_config")).value_or(root);
}

Result<CheckpointConfig> readCheckpointConfig(const nlohmann::json& json, const std::string& file) {
    const ConfigJson root(json, file);
    const ConfigJson text = BV_TRY(textConfig(root));
    CheckpointConfig config;
    ModelConfig& model = config.model;
    model.family = BV_TRY(readFamily(json, root));
    config.is_mxfp8 = BV_TRY(readQuantization(root));
    config.has_vision = root.has("vision_config");
    BV_TRY(readSizes(text, model));
    BV_TRY(readContext(text, model));
    BV_TRY(readRope(text, model));
    BV_TRY(readActivation(text, model));
    BV_TRY(readBiases(text, model));
    config.tied_head = BV_TRY(text.findFlag("tie_word_embeddings"));
    if (!config.tied_head) {
        config.tied_head = BV_TRY(root.findFlag("tie_word_embeddings"));
    }
    BV_TRY(readCheckpointSparsity(text, config));
    return config;
}

Result<void> applyOverrides(const std::string& file,
                            const ConfigOverrides& overrides,
                            ModelConfig& model) {
    if (overrides.freq_base) {
        BV_TRY(checkFreqBase(file, "rope_theta", *overrides.freq_base));
        model.rope.freq_base = *overrides.freq_base;
    }
    if (overrides.context_tokens) {
        model.context_tokens = static_cast<size_t>(*overrides.context_tokens);
    }
    const auto own = model.hasMsa() ? std::optional(model.msa) : std::nullopt;
    return joinMsa(file, own, overrides, model);
}

}  // namespace belvedere::inference
