// SPDX-License-Identifier: Apache-2.0
#include "tests/inference/format/sparse_model.h"

#include <numeric>
#include <random>

#include "tests/support/gguf_builder.h"

namespace belvedere::testing {
namespace {

constexpr uint32_t kDim = 16;
constexpr uint32_t kFfDim = 16;
constexpr uint32_t kHeads = 4;
constexpr uint32_t kKvHeads = 2;
constexpr uint32_t kHeadDim = 8;
constexpr uint32_t kExperts = 4;

void addMetadata(GgufBuilder& builder) {
    const auto number = [&](const char* key, uint32_t value) {
        builder.addUint32(std::string("minimax-m3.") + key, value);
    };
    builder.addString("general.architecture", "minimax-m3");
    number("block_count", 2);
    number("context_length", 64);
    number("embedding_length", kDim);
    number("feed_forward_length", kFfDim);
    number("attention.head_count", kHeads);
    number("attention.head_count_kv", kKvHeads);
    number("attention.key_length", kHeadDim);
    number("attention.value_length", kHeadDim);
    builder.addFloat("minimax-m3.attention.layer_norm_rms_epsilon", 1e-6F);
    builder.addFloat("minimax-m3.rope.freq_base", 5e6F);
    number("rope.dimension_count", 4);
    number("expert_count", kExperts);
    number("expert_used_count", 2);
    number("expert_shared_count", 1);
    number("expert_feed_forward_length", kFfDim);
    builder.addFloat("minimax-m3.expert_weights_scale", 2.0F);
    builder.addBool("minimax-m3.expert_weights_norm", true);
    number("expert_gating_func", 2);
    number("expert_shared_feed_forward_length", kFfDim);
    number("leading_dense_block_count", 1);
    number("attention.indexer.head_count", kKvHeads);
    number("attention.indexer.key_length", kHeadDim);
    number("attention.indexer.top_k", 2);
    number("attention.indexer.block_size", 2);
    number("attention.indexer.local_blocks", 1);
    builder.addString("tokenizer.ggml.model", "gpt2");
    builder.addString("tokenizer.ggml.pre", "minimax-m2");
    builder.addStrings("tokenizer.ggml.tokens",
                       {"a", "b", "c", "ab", "\xC4\xA0", "]~b]", "[e~[", "<think>"});
    const int32_t types[] = {1, 1, 1, 1, 1, 3, 3, 4};
    builder.addInts("tokenizer.ggml.token_type", types);
    builder.addStrings("tokenizer.ggml.merges", {"a b"});
    builder.addUint32("tokenizer.ggml.bos_token_id", 5);
    builder.addUint32("tokenizer.ggml.eos_token_id", 6);
}

/// Adds F32 tensors of seeded values around 0.
class TensorWriter {
  public:
    explicit TensorWriter(GgufBuilder& builder) : builder_(builder) {}

    void add(const std::string& name, const std::vector<uint64_t>& dims) {
        const uint64_t n =
            std::accumulate(dims.begin(), dims.end(), uint64_t{1}, std::multiplies<>());
        std::vector<float> values(n);
        for (float& value : values) {
            value = static_cast<float>(random_() >> 11) / 0x1p53F - 0.5F;
        }
        builder_.addTensorF32(name, dims, values);
    }

  private:
    GgufBuilder& builder_;
    std::mt19937_64 random_{7};  // its sequence is part of the standard
};

void addMlp(TensorWriter& tensors, const std::string& layer, const std::string& suffix) {
    tensors.add(layer + "ffn_gate" + suffix, {kDim, kFfDim});
    tensors.add(layer + "ffn_up" + suffix, {kDim, kFfDim});
    tensors.add(layer + "ffn_down" + suffix, {kFfDim, kDim});
}

void addAttention(TensorWriter& tensors, const std::string& layer) {
    tensors.add(layer + "attn_norm.weight", {kDim});
    tensors.add(layer + "ffn_norm.weight", {kDim});
    tensors.add(layer + "attn_q_norm.weight", {kHeadDim});
    tensors.add(layer + "attn_k_norm.weight", {kHeadDim});
    tensors.add(layer + "attn_q.weight", {kDim, kHeads * kHeadDim});
    tensors.add(layer + "attn_k.weight", {kDim, kKvHeads * kHeadDim});
    tensors.add(layer + "attn_v.weight", {kDim, kKvHeads * kHeadDim});
    tensors.add(layer + "attn_output.weight", {kHeads * kHeadDim, kDim});
}

}  // namespace

std::string sparseModel() {
    GgufBuilder builder;
    addMetadata(builder);
    TensorWriter tensors(builder);
    tensors.add("token_embd.weight", {kDim, 8});
    tensors.add("output_norm.weight", {kDim});
    tensors.add("output.weight", {kDim, 8});
    addAttention(tensors, "blk.0.");
    addMlp(tensors, "blk.0.", ".weight");
    addAttention(tensors, "blk.1.");
    tensors.add("blk.1.indexer.q_proj.weight", {kDim, kKvHeads * kHeadDim});
    tensors.add("blk.1.indexer.q_norm.weight", {kHeadDim});
    tensors.add("blk.1.indexer.k_proj.weight", {kDim, kHeadDim});
    tensors.add("blk.1.indexer.k_norm.weight", {kHeadDim});
    tensors.add("blk.1.ffn_gate_inp.weight", {kDim, kExperts});
    tensors.add("blk.1.exp_probs_b.bias", {kExperts});
    tensors.add("blk.1.ffn_gate_exps.weight", {kDim, kFfDim, kExperts});
    tensors.add("blk.1.ffn_up_exps.weight", {kDim, kFfDim, kExperts});
    tensors.add("blk.1.ffn_down_exps.weight", {kFfDim, kDim, kExperts});
    addMlp(tensors, "blk.1.", "_shexp.weight");
    return builder.build();
}

}  // namespace belvedere::testing
