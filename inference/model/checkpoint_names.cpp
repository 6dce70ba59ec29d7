// SPDX-License-Identifier: Apache-2.0
#include "inference/model/checkpoint_names.h"

#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/core.h>

namespace belvedere::inference {
namespace {

struct Pair {
    std::string_view published;
    std::string_view ours;
};

constexpr Pair kOuterNames[] = {
    {"embed_tokens", "token_embd"}, {"norm", "output_norm"}, {"lm_head", "output"}};

/// Inside a layer. The first published name of each is the one for messages.
constexpr Pair kLayerNames[] = {
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.index_q_proj", "indexer.q_proj"},
    {"self_attn.index_k_proj", "indexer.k_proj"},
    {"self_attn.index_q_norm", "indexer.q_norm"},
    {"self_attn.index_k_norm", "indexer.k_norm"},
    {"self_attn.indexer.q_proj", "indexer.q_proj"},
    {"self_attn.indexer.k_proj", "indexer.k_proj"},
    {"self_attn.indexer.q_norm", "indexer.q_norm"},
    {"self_attn.indexer.k_norm", "indexer.k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"mlp.experts.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.up_proj", "ffn_up_exps"},
    {"mlp.experts.down_proj", "ffn_down_exps"},
    {"mlp.experts.w1", "ffn_gate_exps"},
    {"mlp.experts.w3", "ffn_up_exps"},
    {"mlp.experts.w2", "ffn_down_exps"},
};

constexpr std::string_view kGateUp = "gate_up_proj";
constexpr std::string_view kScaleSuffix = "_scale_inv";

bool strip(std::string_view& text, std::string_view prefix) {
    const bool found = text.starts_with(prefix);
    text.remove_prefix(found ? prefix.size() : 0);
    return found;
}

/// A number and the dot behind it.
std::optional<size_t> stripNumber(std::string_view& text) {
    size_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto n_digits = static_cast<size_t>(rest - text.data());
    if (error != std::errc() || n_digits >= text.size() || *rest != '.') {
        return std::nullopt;
    }
    text.remove_prefix(n_digits + 1);
    return number;
}

std::string_view lookUp(std::span<const Pair> pairs, std::string_view published) {
    const auto found = std::find_if(pairs.begin(), pairs.end(),
                                    [&](const Pair& pair) { return pair.published == published; });
    return found == pairs.end() ? std::string_view() : found->ours;
}

bool isVision(std::string_view name) {
    return name.starts_with("vision_tower.") || name.starts_with("multi_modal_projector.") ||
           name.starts_with("patch_merge_mlp.") || name.starts_with("visual.");
}

/// transformers keeps the merging layers inside the projector.
std::string visionName(std::string_view name) {
    std::string_view rest = name;
    return strip(rest, "multi_modal_projector.merge_") ? fmt::format("patch_merge_mlp.{}", rest)
                                                       : std::string(name);
}

/// What the decoder knows `rest` of a layer by: "self_attn.q_proj.weight".
CheckpointName layerName(size_t layer, std::string_view rest) {
    CheckpointName parsed;
    std::string tail(rest);
    std::string_view moe = rest;
    if (strip(moe, "block_sparse_moe.")) {
        tail = fmt::format("mlp.{}", moe);
    }
    if (tail == "mlp.e_score_correction_bias" || tail == "mlp.gate.e_score_correction_bias") {
        parsed.role = TensorRole::Text;
        parsed.name = fmt::format("blk.{}.exp_probs_b.bias", layer);
        return parsed;
    }
    if (tail.ends_with(kScaleSuffix)) {
        parsed.is_scale = true;
        tail.resize(tail.size() - kScaleSuffix.size());
    }
    std::string field = "weight";
    std::string_view expert = tail;
    if (strip(expert, "mlp.experts.")) {
        // One expert, or all of them as parameters of one module, which have no ".weight".
        parsed.expert = stripNumber(expert);
        tail = fmt::format("mlp.experts.{}", expert);
    }
    const size_t dot = tail.rfind('.');
    if (dot != std::string::npos &&
        (tail.substr(dot) == ".weight" || tail.substr(dot) == ".bias")) {
        field = tail.substr(dot + 1);
        tail.resize(dot);
    } else if (!tail.starts_with("mlp.experts.") || parsed.expert) {
        return parsed;
    }
    std::string up;
    if (tail.ends_with(kGateUp)) {
        tail.resize(tail.size() - kGateUp.size());
        up = std::string(lookUp(kLayerNames, tail + "up_proj"));
        tail += "gate_proj";
    }
    const std::string_view ours = lookUp(kLayerNames, tail);
    if (ours.empty()) {
        return parsed;
    }
    parsed.role = TensorRole::Text;
    parsed.name = fmt::format("blk.{}.{}.{}", layer, ours, field);
    parsed.up_name = up.empty() ? "" : fmt::format("blk.{}.{}.{}", layer, up, field);
    return parsed;
}

}  // namespace

CheckpointName parseCheckpointName(std::string_view stored) {
    std::string_view name = stored;
    while (strip(name, "model.") || strip(name, "language_model.")) {
    }
    CheckpointName parsed;
    if (name.starts_with("mtp.") || name.find(".mtp.") != std::string_view::npos ||
        name.ends_with(".rotary_emb.inv_freq")) {
        parsed.role = TensorRole::Skipped;
    } else if (isVision(name)) {
        parsed.role = TensorRole::Vision;
        parsed.name = visionName(name);
    } else if (std::string_view rest = name; strip(rest, "layers.")) {
        if (const std::optional<size_t> layer = stripNumber(rest)) {
            parsed = layerName(*layer, rest);
        }
    } else if (const size_t dot = name.rfind('.'); dot != std::string_view::npos) {
        std::string_view field = name.substr(dot + 1);
        const std::string_view ours = lookUp(kOuterNames, name.substr(0, dot));
        if (!ours.empty() && (field == "weight" || field == "weight_scale_inv")) {
            parsed.role = TensorRole::Text;
            parsed.is_scale = field != "weight";
            parsed.name = fmt::format("{}.weight", ours);
        }
    }
    if (parsed.role == TensorRole::Unknown) {
        parsed = {};
        parsed.name = std::string(stored);
    }
    return parsed;
}

std::string publishedName(std::string_view name) {
    const size_t dot = name.rfind('.');
    const std::string_view field = dot == std::string_view::npos ? "" : name.substr(dot);
    std::string_view stem = name.substr(0, dot);
    const auto spell = [&](std::span<const Pair> pairs) -> std::string_view {
        const auto found = std::find_if(pairs.begin(), pairs.end(),
                                        [&](const Pair& pair) { return pair.ours == stem; });
        return found == pairs.end() ? std::string_view() : found->published;
    };
    if (const std::string_view outer = spell(kOuterNames); !outer.empty()) {
        return fmt::format("{}{}{}", outer == "lm_head" ? "" : "model.", outer, field);
    }
    const std::optional<size_t> layer = strip(stem, "blk.") ? stripNumber(stem) : std::nullopt;
    if (!layer) {
        return std::string(name);
    }
    if (stem == "exp_probs_b") {
        return fmt::format("model.layers.{}.mlp.e_score_correction_bias", *layer);
    }
    const std::string_view inner = spell(kLayerNames);
    return inner.empty() ? std::string(name)
                         : fmt::format("model.layers.{}.{}{}", *layer, inner, field);
}

}  // namespace belvedere::inference
