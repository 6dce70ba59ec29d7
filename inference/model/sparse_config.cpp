// SPDX-License-Identifier: Apache-2.0
#include "inference/model/sparse_config.h"

#include "inference/model/config_checks.h"
#include "kernels/kernels.h"

namespace belvedere::inference {
namespace {

// The numbers of GGUF's expert_gating_func.
constexpr uint64_t kGatingSoftmax = 1;
constexpr uint64_t kGatingSigmoid = 2;

Result<RouterKind> readRouter(const GgufFile& file,
                              const KeyReader& keys,
                              const ModelConfig& config) {
    const std::string key = keys.key("expert_gating_func");
    const std::optional<uint64_t> gating = BV_TRY(file.findUint(key));
    if (!gating && config.family->architecture == "qwen3moe") {
        return RouterKind::Softmax;  // the family knows no other
    }
    if (!gating) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing", file.name(), key);
    }
    if (*gating != kGatingSoftmax && *gating != kGatingSigmoid) {
        return fail(ErrorCode::Unsupported, "{}: {} is {} (supported: 1 softmax, 2 sigmoid)",
                    file.name(), key, *gating);
    }
    return *gating == kGatingSoftmax ? RouterKind::Softmax : RouterKind::Sigmoid;
}

Result<size_t> readSharedDim(const KeyReader& keys, const MoeConfig& moe) {
    const size_t n_shared = BV_TRY(keys.countOrNone("expert_shared_count", kMaxExperts));
    if (n_shared == 0) {
        return size_t{0};
    }
    return keys.countOr("expert_shared_feed_forward_length", kMaxModelDim, n_shared * moe.ff_dim);
}

}  // namespace

Result<std::optional<MsaConfig>> readMsaConfig(const GgufFile& file,
                                               std::string_view architecture) {
    const KeyReader keys(file, architecture);
    if (file.findValue(keys.key("attention.indexer.head_count")) == nullptr) {
        return std::optional<MsaConfig>();
    }
    MsaConfig msa;
    msa.n_heads = BV_TRY(keys.count("attention.indexer.head_count", kernels::kMaxHeadDim));
    msa.head_dim = BV_TRY(keys.count("attention.indexer.key_length", kernels::kMaxHeadDim));
    msa.block_tokens = BV_TRY(keys.count("attention.indexer.block_size", kMaxBlockTokens));
    msa.top_k = BV_TRY(keys.count("attention.indexer.top_k", kernels::kMaxTopBlocks));
    msa.n_local = BV_TRY(keys.countOr("attention.indexer.local_blocks", kernels::kMaxTopBlocks, 1));
    msa.n_init = BV_TRY(keys.countOrNone("attention.indexer.init_blocks", kernels::kMaxTopBlocks));
    BV_TRY(checkMsa(file.name(), msa));
    return std::optional<MsaConfig>(msa);
}

Result<void> readExperts(const GgufFile& file, const KeyReader& keys, ModelConfig& config) {
    MoeConfig& moe = config.moe;
    moe.n_experts = BV_TRY(keys.count("expert_count", kMaxExperts));
    moe.n_used = BV_TRY(keys.count("expert_used_count", moe.n_experts));
    moe.ff_dim = BV_TRY(keys.count("expert_feed_forward_length", kMaxModelDim));
    moe.router = BV_TRY(readRouter(file, keys, config));
    moe.has_choice_bias = moe.router == RouterKind::Sigmoid;
    moe.shared_ff_dim = BV_TRY(readSharedDim(keys, moe));
    const std::string norm = keys.key("expert_weights_norm");
    if (!BV_TRY(file.findBool(norm)).value_or(true)) {
        return fail(ErrorCode::Unsupported, "{}: {} is false: weights that do not sum to 1",
                    file.name(), norm);
    }
    const double scale = BV_TRY(keys.floatOr("expert_weights_scale", 1.0));
    BV_TRY(checkExpertScale(file.name(), keys.key("expert_weights_scale"), scale));
    moe.scale = static_cast<float>(scale);
    const size_t n_dense = BV_TRY(keys.countOrNone("leading_dense_block_count", config.n_layers));
    for (size_t layer = n_dense; layer < config.n_layers; ++layer) {
        config.layers[layer].mlp = MlpKind::Experts;
    }
    return {};
}

}  // namespace belvedere::inference
