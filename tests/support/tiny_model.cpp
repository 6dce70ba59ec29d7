// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiny_model.h"

#include <cmath>

#include <fmt/core.h>

namespace belvedere::testing {
namespace {

constexpr uint32_t kDim = 32;
constexpr uint32_t kFfDim = 64;
constexpr uint32_t kHeads = 4;
constexpr uint32_t kKvHeads = 2;
constexpr uint32_t kHeadDim = 8;
constexpr uint64_t kRank = 4;

/// Numbers around 0 with the given spread; the same on every machine (a 64-bit LCG's high bits,
/// four of them summed).
class Noise {
  public:
    explicit Noise(uint64_t seed) : state_(seed * 2 + 1) {}

    std::vector<float> values(size_t n, float spread) {
        std::vector<float> result(n);
        for (float& value : result) {
            value = (unit() + unit() + unit() + unit() - 2.0F) * spread;
        }
        return result;
    }

  private:
    float unit() {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return static_cast<float>(state_ >> 40) / 16777216.0F;
    }

    uint64_t state_;
};

std::string utf8(uint32_t code) {
    if (code < 0x80) {
        return {static_cast<char>(code)};
    }
    return {static_cast<char>(0xC0U | code >> 6), static_cast<char>(0x80U | (code & 0x3FU))};
}

/// GPT-2's printable stand-ins: visible Latin-1 bytes are themselves, the others follow from U+0100
/// on.
std::vector<std::string> byteTokens() {
    std::vector<std::string> tokens(256);
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
        const bool visible =
            (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        tokens[byte] = utf8(visible ? byte : next++);
    }
    return tokens;
}

void addVocabulary(GgufBuilder& builder, const TinyModelOptions& options) {
    std::vector<std::string> tokens = byteTokens();
    const std::vector<std::string> merges = {"t h", "th e", "i n", "e r", "a n"};
    for (const std::string& merge : merges) {
        const size_t space = merge.find(' ');
        tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
    }
    std::vector<int32_t> types(tokens.size(), 1);
    for (const char* special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
        tokens.emplace_back(special);
        types.push_back(3);
    }
    builder.addString("tokenizer.ggml.model", "gpt2");
    builder.addString("tokenizer.ggml.pre", "gpt-2");
    builder.addStrings("tokenizer.ggml.tokens", tokens);
    builder.addInts("tokenizer.ggml.token_type", types);
    builder.addStrings("tokenizer.ggml.merges", merges);
    builder.addUint32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(tokens.size() - 2));
    builder.addUint32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(tokens.size() - 1));
    if (options.chat_template) {
        builder.addString("tokenizer.chat_template",
                          "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' "
                          "+ message['content'] + "
                          "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ "
                          "'<|im_start|>assistant\n' "
                          "}}{% endif %}");
    }
}

struct Matrix {
    const char* name;
    uint32_t n_cols;
    uint32_t n_rows;
};

constexpr Matrix kMatrices[] = {
    {"attn_q", kDim, kHeads* kHeadDim},   {"attn_k", kDim, kKvHeads* kHeadDim},
    {"attn_v", kDim, kKvHeads* kHeadDim}, {"attn_output", kHeads* kHeadDim, kDim},
    {"ffn_gate", kDim, kFfDim},           {"ffn_up", kDim, kFfDim},
    {"ffn_down", kFfDim, kDim},
};

void addWeights(GgufBuilder& builder, const TinyModelOptions& options) {
    Noise noise(options.seed);
    const auto matrix = [&](const std::string& name, uint64_t n_cols, uint64_t n_rows,
                            float spread) {
        const std::vector<float> values = noise.values(n_cols * n_rows, spread);
        if (options.quantized) {
            builder.addTensorQ8(name, {n_cols, n_rows}, values);
        } else {
            builder.addTensorF32(name, {n_cols, n_rows}, values);
        }
    };
    const std::vector<float> ones(kDim, 1.0F);
    const uint64_t n_rows = 256 + 5 + 3 + options.n_padding_rows;
    matrix("token_embd.weight", kDim, n_rows, 1.0F);
    // A head of its own: a tied one would repeat the last token for ever.
    matrix("output.weight", kDim, n_rows, 1.0F);
    builder.addTensorF32("output_norm.weight", {kDim}, ones);
    for (uint32_t layer = 0; layer < options.n_layers; ++layer) {
        builder.addTensorF32(fmt::format("blk.{}.attn_norm.weight", layer), {kDim}, ones);
        builder.addTensorF32(fmt::format("blk.{}.ffn_norm.weight", layer), {kDim}, ones);
        for (const Matrix& m : kMatrices) {
            matrix(fmt::format("blk.{}.{}.weight", layer, m.name), m.n_cols, m.n_rows,
                   4.0F / std::sqrt(static_cast<float>(m.n_cols)));
        }
    }
}

}  // namespace

GgufBuilder tinyModelBuilder(const TinyModelOptions& options) {
    GgufBuilder builder;
    builder.addString("general.architecture", "llama");
    builder.addString("general.name", "tiny");
    builder.addUint32("llama.block_count", options.n_layers);
    builder.addUint32("llama.context_length", options.context_tokens);
    builder.addUint32("llama.embedding_length", kDim);
    builder.addUint32("llama.feed_forward_length", kFfDim);
    builder.addUint32("llama.attention.head_count", kHeads);
    builder.addUint32("llama.attention.head_count_kv", kKvHeads);
    builder.addUint32("llama.rope.dimension_count", kHeadDim);
    builder.addFloat("llama.rope.freq_base", 10000.0F);
    builder.addFloat("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    addVocabulary(builder, options);
    if (options.weights) {
        addWeights(builder, options);
    }
    return builder;
}

std::string tinyModel(const TinyModelOptions& options) {
    return tinyModelBuilder(options).build();
}

std::string tinyAdapter(const TinyModelOptions& base, uint64_t seed) {
    GgufBuilder builder;
    Noise noise(seed);
    builder.addString("general.architecture", "llama");
    builder.addString("general.type", "adapter");
    builder.addString("adapter.type", "lora");
    builder.addFloat("adapter.lora.alpha", 8.0F);
    builder.addFloat("llama.rope.freq_base", 50000.0F);
    for (uint32_t layer = 0; layer < base.n_layers; ++layer) {
        for (const Matrix& m : kMatrices) {
            const std::string name = fmt::format("blk.{}.{}.weight", layer, m.name);
            builder.addTensorF32(name + ".lora_a", {m.n_cols, kRank},
                                 noise.values(m.n_cols * kRank, 0.3F));
            builder.addTensorF32(name + ".lora_b", {kRank, m.n_rows},
                                 noise.values(m.n_rows * kRank, 0.3F));
        }
    }
    builder.addTensorF32("blk.0.attn_norm.weight", {kDim}, noise.values(kDim, 1.0F));
    return builder.build();
}

}  // namespace belvedere::testing
