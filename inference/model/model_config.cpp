// SPDX-License-Identifier: Apache-2.0
#include "inference/model/model_config.h"

#include <algorithm>
#include <cmath>

namespace belvedere::inference {
namespace {

constexpr FamilyTraits kFamilies[] = {
    {"llama", RopePairing::Adjacent, false, QkNorm::None},
    {"qwen2", RopePairing::HalfSplit, true, QkNorm::None},
    {"qwen3", RopePairing::HalfSplit, false, QkNorm::PerHead},
    {"qwen3moe", RopePairing::HalfSplit, false, QkNorm::PerHead, Activation::SwiGlu, true},
    {"minimax-m2", RopePairing::HalfSplit, false, QkNorm::PerToken, Activation::SwiGlu, true},
    {"minimax-m3", RopePairing::HalfSplit, false, QkNorm::PerHead, Activation::SwiGluOai, true},
};

}  // namespace

bool ModelConfig::hasMsa() const {
    return std::any_of(layers.begin(), layers.end(), [](const LayerConfig& layer) {
        return layer.attention == AttentionKind::Msa;
    });
}

std::vector<size_t> ModelConfig::msaLayers() const {
    std::vector<size_t> found;
    for (size_t layer = 0; layer < layers.size(); ++layer) {
        if (layers[layer].attention == AttentionKind::Msa) {
            found.push_back(layer);
        }
    }
    return found;
}

std::span<const FamilyTraits> families() {
    return kFamilies;
}

Result<const FamilyTraits*> findFamily(const std::string& file, std::string_view architecture) {
    std::string known;
    for (const FamilyTraits& family : kFamilies) {
        if (family.architecture == architecture) {
            return &family;
        }
        known += known.empty() ? "" : ", ";
        known += family.architecture;
    }
    return fail(ErrorCode::Unsupported, "{}: architecture \"{}\" is not supported (supported: {})",
                file, architecture.substr(0, 64), known);
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
