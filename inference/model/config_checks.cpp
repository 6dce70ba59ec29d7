// SPDX-License-Identifier: Apache-2.0
#include "inference/model/config_checks.h"

#include "kernels/kernels.h"

namespace belvedere::inference {

Result<void> checkHeads(const std::string& file, const ModelConfig& config) {
    if (config.n_heads % config.n_kv_heads != 0) {
        return fail(ErrorCode::Corrupt, "{}: {} query heads cannot share {} KV heads", file,
                    config.n_heads, config.n_kv_heads);
    }
    return {};
}

Result<void> checkNormEps(const std::string& file, const std::string& key, double eps) {
    if (!(eps >= 0.0 && eps < 1.0)) {
        return fail(ErrorCode::Corrupt, "{}: {} is {}", file, key, eps);
    }
    return {};
}

Result<void> checkFreqBase(const std::string& file, const std::string& key, double freq_base) {
    if (!(freq_base >= 1.0 && freq_base <= 1e12)) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing or out of range ({})", file, key,
                    freq_base);
    }
    return {};
}

Result<void> checkLinearFactor(const std::string& file, const std::string& key, double factor) {
    if (!(factor >= 1.0 && factor <= 1e6)) {
        return fail(ErrorCode::Corrupt, "{}: {} is {}", file, key, factor);
    }
    return {};
}

Result<void> checkRotatedDims(const std::string& file, const std::string& key, size_t n_dims) {
    if (n_dims % 2 != 0) {
        return fail(ErrorCode::Corrupt, "{}: {} is odd ({})", file, key, n_dims);
    }
    return {};
}

Result<void> checkExpertScale(const std::string& file, const std::string& key, double scale) {
    if (!(scale > 0.0 && scale < 1e6)) {
        return fail(ErrorCode::Corrupt, "{}: {} is {}", file, key, scale);
    }
    return {};
}

Result<void> checkMsa(const std::string& file, const MsaConfig& msa) {
    if (msa.n_local + msa.n_init > msa.top_k) {
        return fail(ErrorCode::Corrupt, "{}: {} initial and {} local blocks of {} in all", file,
                    msa.n_init, msa.n_local, msa.top_k);
    }
    if (kernels::kPageTokens % msa.block_tokens != 0 &&
        msa.block_tokens % kernels::kPageTokens != 0) {
        return fail(ErrorCode::Unsupported, "{}: blocks of {} tokens do not fit pages of {}", file,
                    msa.block_tokens, kernels::kPageTokens);
    }
    return {};
}

Result<void> joinMsa(const std::string& file,
                     const std::optional<MsaConfig>& own,
                     const ConfigOverrides& overrides,
                     ModelConfig& config) {
    for (const size_t layer : overrides.msa_layers) {
        if (layer < config.n_layers) {
            config.layers[layer].attention = AttentionKind::Msa;
        }
    }
    if (!config.hasMsa()) {
        return {};
    }
    if (own && overrides.msa) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: model and adapter both bring an MSA index: use one of them", file);
    }
    if (!own && !overrides.msa) {
        return fail(ErrorCode::Corrupt, "{}: index tensors without {}.attention.indexer keys", file,
                    config.family->architecture);
    }
    config.msa = own ? *own : *overrides.msa;
    if (config.msa.n_heads != config.n_kv_heads) {
        return fail(ErrorCode::Corrupt, "{}: {} index heads for {} KV heads", file,
                    config.msa.n_heads, config.n_kv_heads);
    }
    if (config.msa.head_dim < config.rope.n_dims) {
        return fail(ErrorCode::Corrupt, "{}: {} rotary dimensions in an index head of {}", file,
                    config.rope.n_dims, config.msa.head_dim);
    }
    return {};
}

}  // namespace belvedere::inference
