// SPDX-License-Identifier: Apache-2.0
// LoRA adapters against weights that were merged by hand, and the adapters that are refused.
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "inference/engine.h"
#include "tests/inference/format/gguf_layout.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using namespace inference;

constexpr size_t kRank = 4;
constexpr float kAlpha = 8.0F;
constexpr const char* kQuery = "blk.0.attn_q.weight";
constexpr const char* kDown = "blk.1.ffn_down.weight";

/// Rows and columns of a matrix, with its low-rank parts A [rank, in] and B [out, rank].
struct LowRank {
    const char* name;
    size_t n_cols;
    size_t n_rows;
    std::vector<float> a;
    std::vector<float> b;
};

LowRank makeLowRank(const char* name, size_t n_cols, size_t n_rows, uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto values = [&](size_t n) {
        std::vector<float> result(n);
        for (float& value : result) {
            value = static_cast<float>(random() >> 40) / 0x1p24F - 0.5F;
        }
        return result;
    };
    return {name, n_cols, n_rows, values(n_cols * kRank), values(n_rows * kRank)};
}

GgufBuilder adapterHeader() {
    GgufBuilder builder;
    builder.addString("general.architecture", "llama");
    builder.addString("general.type", "adapter");
    builder.addString("adapter.type", "lora");
    builder.addFloat("adapter.lora.alpha", kAlpha);
    return builder;
}

void addPair(GgufBuilder& builder, const LowRank& part) {
    const std::string name = part.name;
    builder.addTensorF32(name + ".lora_a", {part.n_cols, kRank}, part.a);
    builder.addTensorF32(name + ".lora_b", {kRank, part.n_rows}, part.b);
}

std::string adapterOf(const LowRank& part) {
    GgufBuilder builder = adapterHeader();
    addPair(builder, part);
    return builder.build();
}

/// Where the data of a tensor of the file begins.
size_t dataOf(const std::string& file, std::string_view tensor) {
    const GgufLayout layout(file);
    return layout.dataBegin() +
           readField(file, layout.at("tensor " + std::string(tensor) + " offset"));
}

/// W + scale * alpha / rank * B A, written into the file.
void merge(std::string& file, const LowRank& part, float scale) {
    char* weights = file.data() + dataOf(file, part.name);
    for (size_t row = 0; row < part.n_rows; ++row) {
        for (size_t col = 0; col < part.n_cols; ++col) {
            float sum = 0.0F;
            for (size_t r = 0; r < kRank; ++r) {
                sum += part.b[row * kRank + r] * part.a[r * part.n_cols + col];
            }
            float weight = 0.0F;
            char* place = weights + (row * part.n_cols + col) * sizeof(float);
            std::memcpy(&weight, place, sizeof(weight));
            weight += scale * kAlpha / static_cast<float>(kRank) * sum;
            std::memcpy(place, &weight, sizeof(weight));
        }
    }
}

TinyModelOptions floatModel() {
    TinyModelOptions options;
    options.quantized = false;
    return options;
}

class LoraTest : public ::testing::Test {
  protected:
    std::string write(const std::string& name, const std::string& bytes) {
        return dir_.write(name, bytes).string();
    }

    /// Logits of a fixed text, in f32.
    static std::vector<float> run(const std::string& model,
                                  const std::vector<AdapterFile>& adapters = {},
                                  Compute compute = Compute::Exact) {
        std::vector<TokenId> ids(20);
        for (size_t i = 0; i < ids.size(); ++i) {
            ids[i] = static_cast<TokenId>(i * 13 % 256);
        }
        RunOptions options;
        options.adapters = adapters;
        options.compute = compute;
        options.chunk = 16;
        const auto logits = runModel(model, ids, options);
        EXPECT_TRUE(logits.has_value()) << logits.error().message;
        return logits.value_or(std::vector<float>());
    }

    static double nmse(const std::vector<float>& logits, const std::vector<float>& reference) {
        return compareLogits(logits, reference, 264, 0.0).nmse;
    }

    /// What is said of an adapter of the tiny model that must not load.
    Error refusal(const std::string& adapter, float scale = 1.0F) {
        const std::string path = write("refused.gguf", adapter);
        const auto engine =
            Engine::load({write("base.gguf", base_), {{path, scale}}}, {}, nullptr, {});
        if (engine.has_value()) {
            ADD_FAILURE() << "was loaded";
            return {};
        }
        EXPECT_NE(engine.error().message.find(path), std::string::npos) << engine.error().message;
        return engine.error();
    }

    TempDir dir_;
    std::string base_ = tinyModel(floatModel());
    LowRank query_ = makeLowRank(kQuery, 32, 32, 1);
    LowRank down_ = makeLowRank(kDown, 64, 32, 2);
};

TEST_F(LoraTest, AddsScaledProductsToTheWeights) {
    const std::string base = write("base.gguf", base_);
    const std::string adapter = write("adapter.gguf", adapterOf(query_));
    for (const float scale : {1.0F, 0.25F, -2.0F}) {
        std::string merged = base_;
        merge(merged, query_, scale);
        const std::vector<float> expected = run(write("merged.gguf", merged));
        EXPECT_LT(nmse(run(base, {{adapter, scale}}), expected), 1e-10) << scale;
        EXPECT_LT(nmse(run(base, {{adapter, scale}}, Compute::Fast), expected), 1e-3) << scale;
        EXPECT_GT(nmse(run(base), expected), 1e-3) << scale;
    }
    EXPECT_EQ(run(base, {{adapter, 0.0F}}), run(base));
}

TEST_F(LoraTest, SeveralAddUpEachWithItsScale) {
    const LowRank again = makeLowRank(kQuery, 32, 32, 3);
    const std::string base = write("base.gguf", base_);
    std::string merged = base_;
    merge(merged, query_, 0.5F);
    merge(merged, again, 2.0F);
    merge(merged, down_, -1.0F);
    const std::vector<AdapterFile> adapters = {{write("1.gguf", adapterOf(query_)), 0.5F},
                                               {write("2.gguf", adapterOf(again)), 2.0F},
                                               {write("3.gguf", adapterOf(down_)), -1.0F}};
    const std::vector<float> expected = run(write("merged.gguf", merged));
    EXPECT_LT(nmse(run(base, adapters), expected), 1e-10);
    EXPECT_LT(nmse(run(base, adapters, Compute::Fast), expected), 1e-3);
    // Two halves of one adapter are the whole.
    EXPECT_LT(nmse(run(base, {{adapters[1].path, 0.5F}, {adapters[1].path, 0.5F}}),
                   run(base, {{adapters[1].path, 1.0F}})),
              1e-10);
}

TEST_F(LoraTest, ReplacedTensorsStandInThePlaceOfTheBases) {
    std::vector<float> norm(32);
    for (size_t i = 0; i < norm.size(); ++i) {
        norm[i] = 0.5F + static_cast<float>(i) / 32.0F;
    }
    GgufBuilder builder = adapterHeader();
    builder.addTensorF32("blk.1.ffn_norm.weight", {32}, norm);
    builder.addTensorF32(kQuery, {32, 32}, std::vector<float>(1024, 0.01F));
    const std::string adapter = write("adapter.gguf", builder.build());

    std::string changed = base_;
    std::memcpy(changed.data() + dataOf(changed, "blk.1.ffn_norm.weight"), norm.data(), 32 * 4);
    const std::vector<float> query(1024, 0.01F);
    std::memcpy(changed.data() + dataOf(changed, kQuery), query.data(), 1024 * 4);
    const std::string base = write("base.gguf", base_);
    const std::vector<float> expected = run(write("changed.gguf", changed));
    EXPECT_NE(run(base), expected);
    EXPECT_EQ(run(base, {{adapter, 1.0F}}), expected);
    EXPECT_EQ(run(base, {{adapter, 0.3F}}), expected) << "the scale is of products only";
}

TEST_F(LoraTest, ReplacedMetadataCountsForTheWholeModel) {
    GgufBuilder builder = adapterHeader();
    builder.addFloat("llama.rope.freq_base", 123456.0F);
    builder.addUint32("llama.context_length", 100);
    const std::string adapter = write("adapter.gguf", builder.build());
    std::string changed = base_;
    uint64_t bits = 0;
    const float freq_base = 123456.0F;
    std::memcpy(&bits, &freq_base, sizeof(freq_base));
    GgufLayout(changed).set(changed, "key llama.rope.freq_base value", bits);
    const std::string base = write("base.gguf", base_);
    EXPECT_EQ(run(base, {{adapter, 1.0F}}), run(write("changed.gguf", changed)));
    const auto engine = Engine::load({base, {{adapter, 1.0F}}}, {}, nullptr, {});
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    EXPECT_EQ((*engine)->info().context_tokens, 100U);
}

TEST_F(LoraTest, AdaptersOfAForeignModelAreRefused) {
    GgufBuilder qwen;
    qwen.addString("general.architecture", "qwen2");
    qwen.addString("general.type", "adapter");
    qwen.addString("adapter.type", "lora");
    qwen.addFloat("adapter.lora.alpha", kAlpha);
    EXPECT_NE(refusal(qwen.build()).message.find("an adapter for \"qwen2\""), std::string::npos);
    // Of a wider llama, a deeper one, and one with another vocabulary.
    const Error wider = refusal(adapterOf(makeLowRank(kQuery, 64, 64, 1)));
    EXPECT_EQ(wider.code, ErrorCode::InvalidArgument);
    EXPECT_NE(wider.message.find("do not fit the base's 32 x 32"), std::string::npos);
    EXPECT_NE(refusal(adapterOf(makeLowRank("blk.7.attn_q.weight", 32, 32, 1)))
                  .message.find("blk.7.attn_q.weight"),
              std::string::npos);
    GgufBuilder vocabulary = adapterHeader();
    vocabulary.addTensorF32("token_embd.weight", {32, 100}, std::vector<float>(3200));
    EXPECT_NE(refusal(vocabulary.build()).message.find("32 x 100, but the base has 32 x 264"),
              std::string::npos);
}

TEST_F(LoraTest, FilesThatAreNoWholeAdapterAreRefused) {
    EXPECT_NE(refusal(tinyModel()).message.find("not a LoRA adapter"), std::string::npos);
    GgufBuilder only_a = adapterHeader();
    only_a.addTensorF32(std::string(kQuery) + ".lora_a", {32, kRank}, query_.a);
    EXPECT_NE(refusal(only_a.build()).message.find("no lora_b"), std::string::npos);
    GgufBuilder only_b = adapterHeader();
    only_b.addTensorF32(std::string(kQuery) + ".lora_b", {kRank, 32}, query_.b);
    EXPECT_NE(refusal(only_b.build()).message.find("no lora_a"), std::string::npos);
    GgufBuilder ranks = adapterHeader();
    ranks.addTensorF32(std::string(kQuery) + ".lora_a", {32, 2}, std::vector<float>(64));
    ranks.addTensorF32(std::string(kQuery) + ".lora_b", {kRank, 32}, query_.b);
    EXPECT_NE(refusal(ranks.build()).message.find("do not fit"), std::string::npos);
    GgufBuilder embedding = adapterHeader();
    addPair(embedding, makeLowRank("token_embd.weight", 32, 264, 1));
    EXPECT_NE(refusal(embedding.build()).message.find("no matrix of a layer"), std::string::npos);
    GgufBuilder nothing = adapterHeader();
    nothing.addTensorF32("blk.0.attn_q.bias", {32}, std::vector<float>(32));
    EXPECT_NE(refusal(nothing.build()).message.find("replaces nothing"), std::string::npos);
    GgufBuilder heads = adapterHeader();
    heads.addUint32("llama.attention.head_count", 8);
    EXPECT_NE(refusal(heads.build()).message.find("cannot change"), std::string::npos);
    const std::string whole = adapterOf(query_);
    EXPECT_NE(refusal(whole.substr(0, whole.size() - 1)).message.find("truncated"),
              std::string::npos);
    EXPECT_EQ(refusal(whole, std::numeric_limits<float>::quiet_NaN()).code,
              ErrorCode::InvalidArgument);
}

TEST_F(LoraTest, TwoThatReplaceTheSameAreRefused) {
    GgufBuilder builder = adapterHeader();
    builder.addTensorF32("blk.0.attn_norm.weight", {32}, std::vector<float>(32, 1.0F));
    const std::string adapter = write("adapter.gguf", builder.build());
    const auto engine = Engine::load(
        {write("base.gguf", base_), {{adapter, 1.0F}, {adapter, 1.0F}}}, {}, nullptr, {});
    ASSERT_FALSE(engine.has_value());
    EXPECT_NE(engine.error().message.find("already replaced by another adapter"),
              std::string::npos);
}

}  // namespace
}  // namespace belvedere::testing
