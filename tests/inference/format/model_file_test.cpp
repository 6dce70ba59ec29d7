// SPDX-License-Identifier: Apache-2.0
// A model file that is whole but not for this program: the message names what it lacks.
#include <gtest/gtest.h>

#include "inference/engine.h"
#include "inference/inspect.h"
#include "kernels/formats.h"
#include "tests/inference/format/gguf_layout.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using namespace inference;

class ModelFileTest : public ::testing::Test {
  protected:
    /// What the engine says of a file; the short look at it must say the same.
    Error refusal(const std::string& bytes) {
        path_ = dir_.write("model.gguf", bytes).string();
        const auto engine = Engine::load({path_, {}}, {}, nullptr, {});
        if (engine.has_value()) {
            ADD_FAILURE() << "was loaded";
            return {};
        }
        EXPECT_NE(engine.error().message.find(path_), std::string::npos) << engine.error().message;
        return engine.error();
    }

    TempDir dir_;
    std::string path_;
};

TEST_F(ModelFileTest, MissingFilesAreNotFound) {
    const std::string path = (dir_.path() / "nowhere.gguf").string();
    const auto engine = Engine::load({path, {}}, {}, nullptr, {});
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(engine.error().code, ErrorCode::NotFound);
    EXPECT_NE(engine.error().message.find(path), std::string::npos);
}

TEST_F(ModelFileTest, TruncatedFilesSayWhichTensor) {
    const std::string whole = tinyModel();
    const Error error = refusal(whole.substr(0, whole.size() / 2));
    EXPECT_EQ(error.code, ErrorCode::Corrupt);
    EXPECT_NE(error.message.find("tensor "), std::string::npos);
    EXPECT_NE(error.message.find("truncated"), std::string::npos);
}

TEST_F(ModelFileTest, AnotherArchitectureIsNamedBesideTheSupported) {
    GgufBuilder builder;
    builder.addString("general.architecture", "mamba");
    const Error error = refusal(builder.build());
    EXPECT_EQ(error.code, ErrorCode::Unsupported);
    EXPECT_NE(error.message.find("\"mamba\""), std::string::npos);
    EXPECT_NE(error.message.find("llama, qwen2, qwen3"), std::string::npos);
}

TEST_F(ModelFileTest, EveryTensorTypeWithoutKernelsIsNamed) {
    struct Foreign {
        uint32_t id;
        const char* name;
    };

    const Foreign types[] = {{16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
                             {20, "IQ4_NL"},  {21, "IQ3_S"},  {22, "IQ2_S"},   {23, "IQ4_XS"},
                             {24, "I8"},      {25, "I16"},    {26, "I32"},     {27, "I64"},
                             {28, "F64"},     {29, "IQ1_M"},  {34, "TQ1_0"},   {35, "TQ2_0"},
                             {40, "NVFP4"},   {41, "Q1_0"},   {42, "Q2_0"},    {9, "Q8_1"},
                             {15, "Q8_K"}};
    for (const Foreign& type : types) {
        SCOPED_TRACE(type.name);
        ASSERT_EQ(kernels::findWeightType(type.id), nullptr);
        // A row of 256 elements fills the blocks of every type; 512 bytes hold one of any.
        GgufBuilder builder;
        builder.addString("general.architecture", "llama");
        builder.addUint32("llama.block_count", 1);
        builder.addUint32("llama.embedding_length", 256);
        builder.addUint32("llama.feed_forward_length", 256);
        builder.addUint32("llama.attention.head_count", 4);
        builder.addUint32("llama.context_length", 64);
        builder.addFloat("llama.attention.layer_norm_rms_epsilon", 1e-5F);
        builder.addTensor("token_embd.weight", type.id, {256, 1}, std::string(2048, '\1'));
        const Error error = refusal(builder.build());
        EXPECT_EQ(error.code, ErrorCode::Unsupported);
        EXPECT_NE(error.message.find(std::string("type ") + type.name), std::string::npos)
            << error.message;
        EXPECT_NE(error.message.find("token_embd.weight"), std::string::npos);
    }
}

TEST_F(ModelFileTest, FeaturesThatWouldBeIgnoredAreRefused) {
    GgufBuilder experts = tinyModelBuilder();
    experts.addUint32("llama.expert_count", 8);
    EXPECT_NE(refusal(experts.build()).message.find("mixture of experts"), std::string::npos);
    GgufBuilder scaling = tinyModelBuilder();
    scaling.addString("llama.rope.scaling.type", "yarn");
    EXPECT_NE(refusal(scaling.build()).message.find("\"yarn\""), std::string::npos);
    GgufBuilder extra = tinyModelBuilder();
    extra.addTensorF32("blk.0.attn_sinks.weight", {4}, std::vector<float>(4));
    EXPECT_NE(refusal(extra.build()).message.find("attn_sinks"), std::string::npos);
}

TEST_F(ModelFileTest, AShapeThatContradictsTheMetadataIsShown) {
    std::string file = tinyModel();
    const GgufLayout layout(file);
    layout.set(file, "tensor blk.0.attn_k.weight dim 1", 8);
    const Error error = refusal(file);
    EXPECT_EQ(error.code, ErrorCode::Corrupt);
    EXPECT_NE(error.message.find("blk.0.attn_k.weight"), std::string::npos);
    EXPECT_NE(error.message.find("expected 32 x 16 x 1, found 32 x 8 x 1"), std::string::npos);
}

TEST_F(ModelFileTest, AVocabularyAloneIsNoModel) {
    TinyModelOptions options;
    options.weights = false;
    EXPECT_NE(refusal(tinyModel(options)).message.find("a file without weights"),
              std::string::npos);
}

TEST_F(ModelFileTest, FaultsOfTheTokenizerNameTheFile) {
    std::string file = tinyModel();
    const GgufLayout layout(file);
    const GgufField& length = layout.at("key tokenizer.ggml.pre value");
    file[length.position + 8] = 'x';
    EXPECT_NE(refusal(file).message.find("tokenizer.ggml.pre"), std::string::npos);
}

TEST_F(ModelFileTest, MoreTokensThanRowsOfTheEmbedding) {
    GgufBuilder builder = tinyModelBuilder();
    std::string file = builder.build();
    const GgufLayout layout(file);
    for (const char* tensor : {"token_embd", "output"}) {
        layout.set(file, std::string("tensor ") + tensor + ".weight dim 1", 200);
    }
    EXPECT_NE(refusal(file).message.find("264 tokens, but the embedding has 200 rows"),
              std::string::npos);
}

TEST_F(ModelFileTest, LookingAtAFileChecksItAsLoadingDoes) {
    const std::string good = dir_.write("good.gguf", tinyModel()).string();
    const auto info = inspectModel(good);
    ASSERT_TRUE(info.has_value()) << info.error().message;
    EXPECT_EQ(info->architecture, "llama");
    EXPECT_EQ(info->weight_types, "Q8_0 (16), F32 (5)");
    EXPECT_EQ(info->n_layers, 2U);
    std::string bad = tinyModel();
    GgufLayout(bad).set(bad, "tensor blk.1.ffn_up.weight type", 20);
    EXPECT_FALSE(inspectModel(dir_.write("bad.gguf", bad).string()).has_value());
}

}  // namespace
}  // namespace belvedere::testing
