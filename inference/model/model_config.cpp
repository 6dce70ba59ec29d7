// SPDX-License-Identifier: Apache-2.0
#include "inference/model/model_config.h"

#include <cmath>
#include <cstring>

namespace belvedere::inference {
namespace {

// Far above any published model of these families, far below where a product of three overflows.
constexpr uint64_t kMaxLayers = 1024;
constexpr uint64_t kMaxDim = 1U << 18;
constexpr uint64_t kMaxHeads = 4096;
constexpr uint64_t kMaxHeadDim = 1024;
constexpr uint64_t kMaxVocab = 1U << 24;
constexpr uint64_t kMaxContext = 1U << 28;

constexpr FamilyTraits kFamilies[] = {
    {"llama", RopePairing::Adjacent, false, false},
    {"qwen2", RopePairing::HalfSplit, true, false},
    {"qwen3", RopePairing::HalfSplit, false, true},
};

/// Reads keys of one architecture.
class KeyReader {
  public:
    KeyReader(const GgufFile& file, std::string_view prefix) : file_(file), prefix_(prefix) {}

    [[nodiscard]] std::string key(std::string_view name) const {
        return fmt::format("{}.{}", prefix_, name);
    }

    [[nodiscard]] Result<size_t> count(std::string_view name, uint64_t max) const {
        return checked(name, BV_TRY(file_.requiredUint(key(name))), max);
    }

    [[nodiscard]] Result<size_t> countOr(std::string_view name,
                                         uint64_t max,
                                         size_t fallback) const {
        const std::optional<uint64_t> value = BV_TRY(file_.findUint(key(name)));
        if (!value) {
            return fallback;
        }
        return checked(name, *value, max);
    }

    /// A number, or an array with one number a layer: these must all be the same.
    [[nodiscard]] Result<size_t> countOfLayers(std::string_view name,
                                               uint64_t max,
                                               size_t n_layers) const {
        const GgufValue* value = file_.findValue(key(name));
        const auto* array = value != nullptr ? std::get_if<GgufArray>(&value->value) : nullptr;
        if (array == nullptr) {
            return count(name, max);
        }
        if (array->element_type != GgufType::I32 && array->element_type != GgufType::U32) {
            return fail(ErrorCode::Corrupt, "{}: {} is an array of {}", file_.name(), key(name),
                        ggufTypeName(array->element_type));
        }
        if (array->n_elements != n_layers) {
            return fail(ErrorCode::Corrupt, "{}: {} has {} values for {} layers", file_.name(),
                        key(name), array->n_elements, n_layers);
        }
        std::vector<uint32_t> values(n_layers);
        std::memcpy(values.data(), array->bytes.data(), n_layers * sizeof(uint32_t));
        for (const uint32_t element : values) {
            if (element != values[0]) {
                return fail(ErrorCode::Unsupported, "{}: {} differs between layers", file_.name(),
                            key(name));
            }
        }
        return checked(name, values[0], max);
    }

    [[nodiscard]] Result<double> floatOr(std::string_view name, double fallback) const {
        return BV_TRY(file_.findFloat(key(name))).value_or(fallback);
    }

    [[nodiscard]] Result<std::string_view> textOr(std::string_view name,
                                                  std::string_view fallback) const {
        return BV_TRY(file_.findString(key(name))).value_or(fallback);
    }

    /// Refuses a feature that is on.
    [[nodiscard]] Result<void> refuse(std::string_view name, const char* what) const {
        if (BV_TRY(file_.findUint(key(name))).value_or(0) != 0) {
            return fail(ErrorCode::Unsupported, "{}: {} ({}) is not supported yet", file_.name(),
                        what, key(name));
        }
        return {};
    }

  private:
    [[nodiscard]] Result<size_t> checked(std::string_view name,
                                         uint64_t value,
                                         uint64_t max) const {
        if (value == 0 || value > max) {
            return fail(ErrorCode::Corrupt, "{}: {} is {}, expected 1 to {}", file_.name(),
                        key(name), value, max);
        }
        return static_cast<size_t>(value);
    }

    const GgufFile& file_;
    std::string_view prefix_;
};

Result<const FamilyTraits*> findFamily(const GgufFile& file) {
    const auto architecture = BV_TRY(file.requiredString("general.architecture"));
    std::string known;
    for (const FamilyTraits& family : kFamilies) {
        if (family.architecture == architecture) {
            return &family;
        }
        known += known.empty() ? "" : ", ";
        known += family.architecture;
    }
    return fail(ErrorCode::Unsupported, "{}: architecture \"{}\" is not supported (supported: {})",
                file.name(), architecture.substr(0, 64), known);
}

Result<RopeConfig> readRope(const GgufFile& file,
                            const KeyReader& keys,
                            const FamilyTraits& family,
                            size_t head_dim,
                            const ConfigOverrides& overrides) {
    RopeConfig rope;
    rope.pairing = family.rope;
    rope.freq_base = overrides.freq_base ? *overrides.freq_base
                                         : BV_TRY(keys.floatOr("rope.freq_base", 10000.0));
    if (!(rope.freq_base >= 1.0 && rope.freq_base <= 1e12)) {
        return fail(ErrorCode::Corrupt, "{}: {} is {}", file.name(), keys.key("rope.freq_base"),
                    rope.freq_base);
    }
    rope.n_dims = BV_TRY(keys.countOr("rope.dimension_count", head_dim, head_dim));
    if (rope.n_dims % 2 != 0) {
        return fail(ErrorCode::Corrupt, "{}: {} is odd ({})", file.name(),
                    keys.key("rope.dimension_count"), rope.n_dims);
    }
    const auto scaling = BV_TRY(keys.textOr("rope.scaling.type", "none"));
    if (scaling == "linear") {
        rope.linear_factor = BV_TRY(keys.floatOr("rope.scaling.factor", 1.0));
        if (!(rope.linear_factor >= 1.0 && rope.linear_factor <= 1e6)) {
            return fail(ErrorCode::Corrupt, "{}: {} is {}", file.name(),
                        keys.key("rope.scaling.factor"), rope.linear_factor);
        }
    } else if (scaling != "none") {
        return fail(ErrorCode::Unsupported,
                    "{}: RoPE scaling \"{}\" is not supported (supported: none, linear, llama3)",
                    file.name(), scaling.substr(0, 32));
    }
    return rope;
}

Result<void> readHeads(const GgufFile& file, const KeyReader& keys, ModelConfig& config) {
    config.n_heads = BV_TRY(keys.countOfLayers("attention.head_count", kMaxHeads, config.n_layers));
    config.n_kv_heads = config.n_heads;
    if (file.findValue(keys.key("attention.head_count_kv")) != nullptr) {
        config.n_kv_heads =
            BV_TRY(keys.countOfLayers("attention.head_count_kv", kMaxHeads, config.n_layers));
    }
    if (config.n_heads % config.n_kv_heads != 0) {
        return fail(ErrorCode::Corrupt, "{}: {} query heads cannot share {} KV heads", file.name(),
                    config.n_heads, config.n_kv_heads);
    }
    const size_t from_dim = config.dim / config.n_heads;
    if (from_dim == 0 && file.findValue(keys.key("attention.key_length")) == nullptr) {
        return fail(ErrorCode::Corrupt, "{}: {} heads in an embedding of {}", file.name(),
                    config.n_heads, config.dim);
    }
    config.head_dim = BV_TRY(keys.countOr("attention.key_length", kMaxHeadDim, from_dim));
    const size_t value_dim =
        BV_TRY(keys.countOr("attention.value_length", kMaxHeadDim, config.head_dim));
    if (config.head_dim > kMaxHeadDim || value_dim != config.head_dim) {
        return fail(ErrorCode::Unsupported, "{}: keys of {} and values of {} elements a head",
                    file.name(), config.head_dim, value_dim);
    }
    return {};
}

Result<size_t> readVocabSize(const GgufFile& file, size_t dim) {
    const GgufTensor* embedding = file.findTensor("token_embd.weight");
    if (embedding == nullptr) {
        return fail(ErrorCode::Corrupt,
                    "{}: tensor token_embd.weight is missing: a file without weights", file.name());
    }
    if (embedding->dims[0] != dim || embedding->dims[1] > kMaxVocab ||
        embedding->dims[2] * embedding->dims[3] != 1) {
        return fail(ErrorCode::Corrupt,
                    "{}: token_embd.weight is {} x {}, expected {} x vocabulary", file.name(),
                    embedding->dims[0], embedding->dims[1], dim);
    }
    return static_cast<size_t>(embedding->dims[1]);
}

/// A window over the newest positions is the same as none while the context is not longer.
Result<void> limitToSlidingWindow(const KeyReader& keys, ModelConfig& config) {
    const size_t window =
        BV_TRY(keys.countOr("attention.sliding_window", kMaxContext, config.context_tokens));
    config.context_tokens = std::min(config.context_tokens, window);
    return {};
}

}  // namespace

std::span<const FamilyTraits> families() {
    return kFamilies;
}

Result<ModelConfig> modelConfigFromGguf(const GgufFile& file, const ConfigOverrides& overrides) {
    ModelConfig config;
    config.family = BV_TRY(findFamily(file));
    const KeyReader keys(file, config.family->architecture);
    config.name = BV_TRY(file.findString("general.name")).value_or(std::string_view());
    BV_TRY(keys.refuse("expert_count", "a mixture of experts"));
    config.n_layers = BV_TRY(keys.count("block_count", kMaxLayers));
    config.dim = BV_TRY(keys.count("embedding_length", kMaxDim));
    config.ff_dim = BV_TRY(keys.countOfLayers("feed_forward_length", kMaxDim, config.n_layers));
    BV_TRY(readHeads(file, keys, config));
    config.vocab_size = BV_TRY(readVocabSize(file, config.dim));
    config.context_tokens = BV_TRY(keys.count("context_length", kMaxContext));
    BV_TRY(limitToSlidingWindow(keys, config));
    if (overrides.context_tokens) {
        config.context_tokens = static_cast<size_t>(*overrides.context_tokens);
    }
    const double eps = BV_TRY(file.requiredFloat(keys.key("attention.layer_norm_rms_epsilon")));
    if (!(eps >= 0.0 && eps < 1.0)) {
        return fail(ErrorCode::Corrupt, "{}: {} is {}", file.name(),
                    keys.key("attention.layer_norm_rms_epsilon"), eps);
    }
    config.norm_eps = static_cast<float>(eps);
    config.rope = BV_TRY(readRope(file, keys, *config.family, config.head_dim, overrides));
    config.layers.assign(config.n_layers, LayerConfig());
    return config;
}

std::vector<float> ropeFrequencies(const RopeConfig& rope, std::span<const float> divisors) {
    std::vector<float> frequencies(rope.n_dims / 2);
    for (size_t i = 0; i < frequencies.size(); ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rope.n_dims);
        double frequency = std::pow(rope.freq_base, exponent) / rope.linear_factor;
        if (!divisors.empty()) {
            frequency /= static_cast<double>(divisors[i]);
        }
        frequencies[i] = static_cast<float>(frequency);
    }
    return frequencies;
}

}  // namespace belvedere::inference
