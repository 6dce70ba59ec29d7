// SPDX-License-Identifier: Apache-2.0
// config.json: every key that the model depends on is read, in both dialects, or refused by name.
#include <gtest/gtest.h>

#include "inference/model/model_source.h"
#include "tests/inference/checkpoint_twin.h"
#include "tests/support/reference_dir.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using namespace inference;
using Json = nlohmann::json;

class CheckpointConfigTest : public ::testing::Test {
  protected:
    Result<ModelConfig> read(const CheckpointBuilder& checkpoint) {
        const auto folder = dir_.path() / std::to_string(n_++);
        const auto source = openModel(checkpoint.write(folder));
        if (!source.has_value()) {
            return tl::unexpected<Error>(source.error());
        }
        return (*source)->config({});
    }

    std::string refusal(const CheckpointBuilder& checkpoint) {
        const auto config = read(checkpoint);
        EXPECT_FALSE(config.has_value()) << "was read";
        if (config.has_value()) {
            return {};
        }
        EXPECT_NE(config.error().message.find("config.json"), std::string::npos);
        return config.error().message;
    }

    TempDir dir_;
    int n_ = 0;
};

TEST_F(CheckpointConfigTest, SaysWhatMiniMaxM3Is) {
    const auto config = read(sparseCheckpoint());
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->family->architecture, "minimax-m3");
    EXPECT_EQ(config->rope.pairing, RopePairing::HalfSplit);
    EXPECT_EQ(config->rope.freq_base, 5e6);
    EXPECT_EQ(config->rope.n_dims, 4U);
    EXPECT_EQ(config->moe.router, RouterKind::Sigmoid);
    EXPECT_EQ(config->moe.scale, 2.0F);
    EXPECT_EQ(config->moe.shared_ff_dim, 16U);
    EXPECT_EQ(config->msa.top_k, 2U);
    EXPECT_EQ(config->msa.block_tokens, 2U);
    EXPECT_EQ(config->layers[0].attention, AttentionKind::Dense);
    EXPECT_EQ(config->layers[1].attention, AttentionKind::Msa);
}

TEST_F(CheckpointConfigTest, EachKeyThatDecidesSomethingMustBeThere) {
    for (const char* key : {"vocab_size",
                            "hidden_size",
                            "intermediate_size",
                            "dense_intermediate_size",
                            "shared_intermediate_size",
                            "num_hidden_layers",
                            "num_attention_heads",
                            "hidden_act",
                            "swiglu_alpha",
                            "swiglu_limit",
                            "max_position_embeddings",
                            "rms_norm_eps",
                            "use_gemma_norm",
                            "use_qk_norm",
                            "qk_norm_type",
                            "rope_theta",
                            "num_local_experts",
                            "num_experts_per_tok",
                            "n_shared_experts",
                            "scoring_func",
                            "use_routing_bias",
                            "routed_scaling_factor",
                            "moe_layer_freq",
                            "sparse_attention_config"}) {
        SCOPED_TRACE(key);
        CheckpointBuilder checkpoint = sparseCheckpoint();
        checkpoint.text().erase(key);
        const std::string message = refusal(checkpoint);
        EXPECT_NE(message.find(std::string("text_config.") + key), std::string::npos) << message;
        EXPECT_NE(message.find("is missing"), std::string::npos) << message;
    }
    for (const char* key : {"sparse_attention_freq", "sparse_num_index_heads", "sparse_index_dim",
                            "sparse_block_size", "sparse_topk_blocks", "sparse_local_block"}) {
        SCOPED_TRACE(key);
        CheckpointBuilder checkpoint = sparseCheckpoint();
        checkpoint.text()["sparse_attention_config"].erase(key);
        EXPECT_NE(refusal(checkpoint).find(key), std::string::npos);
    }
    CheckpointBuilder checkpoint = sparseCheckpoint();
    checkpoint.text().erase("rotary_dim");
    checkpoint.text().erase("partial_rotary_factor");
    EXPECT_NE(refusal(checkpoint).find("rotary_dim is missing"), std::string::npos);
}

TEST_F(CheckpointConfigTest, WrongValuesShowKeyExpectedAndFound) {
    struct Case {
        const char* key;
        Json value;
        const char* expected;
    };

    const Case cases[] = {
        {"rope_theta", "many", "expected a number, found \"many\""},
        {"rope_theta", 0, "out of range (0)"},
        {"hidden_size", -16, "expected a whole number from 0"},
        {"hidden_size", 16.5, "found 16.5"},
        {"num_hidden_layers", uint64_t{1} << 60, "from 0 to 1024"},
        {"num_attention_heads", 5, "5 query heads cannot share 2 KV heads"},
        {"scoring_func", "softmax", "scoring_func is \"softmax\" (supported: \"sigmoid\")"},
        {"use_routing_bias", false, "use_routing_bias is false"},
        {"use_gemma_norm", "yes", "expected true or false, found \"yes\""},
        {"qk_norm_type", "per_layer", "(supported: \"per_head\")"},
        {"attention_output_gate", true, "attention_output_gate is true"},
        {"hidden_act", "silu", "hidden_act is \"silu\" (supported: \"swigluoai\")"},
        {"swiglu_beta", 0.5, "swiglu_beta: expected 1, found 0.5"},
        {"rotary_dim", 6, "rotary_dim: expected 4"},
        {"moe_layer_freq", Json::array({0}), "one entry for each of 2 layers, found [0]"},
        {"moe_layer_freq", Json::array({0, 2}), "expected a list of 0 and 1, found [0,2]"},
        {"mlp_layer_types", Json::array({"sparse", "sparse"}), "contradict each other"},
        {"layer_types", Json::array({"full_attention", "linear"}), "found \"linear\""},
        {"num_experts_per_tok", 5, "from 0 to 4"},
    };
    for (const Case& wrong : cases) {
        SCOPED_TRACE(std::string(wrong.key) + " " + wrong.value.dump());
        CheckpointBuilder checkpoint = sparseCheckpoint();
        checkpoint.text()[wrong.key] = wrong.value;
        const std::string message = refusal(checkpoint);
        EXPECT_NE(message.find(wrong.expected), std::string::npos) << message;
    }
}

TEST_F(CheckpointConfigTest, OtherKindsOfIndexAreRefused) {
    CheckpointBuilder lse = sparseCheckpoint();
    lse.text()["sparse_attention_config"]["sparse_score_type"] = "lse";
    EXPECT_NE(refusal(lse).find("sparse_score_type is \"lse\""), std::string::npos);
    CheckpointBuilder value = sparseCheckpoint();
    value.text()["sparse_attention_config"]["sparse_disable_index_value"] = Json::array({0, 0});
    EXPECT_NE(refusal(value).find("sparse_disable_index_value"), std::string::npos);
}

TEST_F(CheckpointConfigTest, QuantisationsAreRefusedByName) {
    for (const char* method : {"fp8", "modelopt", "awq", "compressed-tensors", "mxfp4"}) {
        SCOPED_TRACE(method);
        CheckpointBuilder checkpoint = sparseCheckpoint();
        checkpoint.config["quantization_config"] = {{"quant_method", method},
                                                    {"quant_algo", "NVFP4"}};
        const std::string message = refusal(checkpoint);
        EXPECT_NE(message.find(std::string("quant_method is \"") + method + "\" (NVFP4)"),
                  std::string::npos)
            << message;
    }
    CheckpointBuilder blocks = sparseCheckpoint();
    blocks.config["quantization_config"] = {{"quant_method", "mxfp8"},
                                            {"weight_block_size", {128, 128}}};
    EXPECT_NE(refusal(blocks).find("expected [1, 32], found [128,128]"), std::string::npos);
}

TEST_F(CheckpointConfigTest, TheTransformersDialectSaysTheSame) {
    CheckpointBuilder renamed = sparseCheckpoint();
    Json& text = renamed.text();
    for (const char* key : {"moe_layer_freq", "sparse_attention_config", "scoring_func",
                            "use_gemma_norm", "rope_theta", "rotary_dim", "use_qk_norm"}) {
        text.erase(key);
    }
    text["mlp_layer_types"] = {"dense", "sparse"};
    text["layer_types"] = {"full_attention", "minimax_m3_sparse"};
    text["index_n_heads"] = 2;
    text["index_head_dim"] = 8;
    text["index_block_size"] = 2;
    text["index_topk_blocks"] = 2;
    text["index_local_blocks"] = 1;
    text["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e6}};
    const auto ours = read(sparseCheckpoint());
    const auto theirs = read(renamed);
    ASSERT_TRUE(ours.has_value() && theirs.has_value())
        << (theirs.has_value() ? "" : theirs.error().message);
    EXPECT_EQ(theirs->layers[1].attention, AttentionKind::Msa);
    EXPECT_EQ(theirs->layers[1].mlp, MlpKind::Experts);
    EXPECT_EQ(theirs->layers[0].mlp, MlpKind::Dense);
    EXPECT_EQ(theirs->rope.n_dims, ours->rope.n_dims);
    EXPECT_EQ(theirs->rope.freq_base, ours->rope.freq_base);
    EXPECT_EQ(theirs->msa.block_tokens, ours->msa.block_tokens);
}

TEST_F(CheckpointConfigTest, OtherFamiliesAreNamedBesideTheSupported) {
    CheckpointBuilder other = sparseCheckpoint();
    other.config["model_type"] = "mamba";
    other.config.erase("architectures");
    const std::string message = refusal(other);
    EXPECT_NE(message.find("model_type \"mamba\""), std::string::npos);
    EXPECT_NE(message.find("llama, qwen2, qwen3, qwen3_moe, minimax_m2, minimax_m3_vl"),
              std::string::npos);
}

/// Stretched RoPE: what the config computes is what a converter stores as a tensor.
TEST_F(CheckpointConfigTest, RopeRulesOtherThanTheKnownAreRefused) {
    const std::string folder = dataPath("inference/family-llama3-rope").string();
    const CheckpointBuilder llama =
        checkpointTwin(readFile(folder + "/model-BF16.gguf"), readFile(folder + "/config.json"));
    const auto config = read(llama);
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->rope.divisors.size(), 16U);
    EXPECT_EQ(config->rope.divisors.front(), 1.0F);
    EXPECT_EQ(config->rope.divisors.back(), 8.0F);
    CheckpointBuilder yarn = llama;
    yarn.config["rope_parameters"]["rope_type"] = "yarn";
    EXPECT_NE(refusal(yarn).find("rope_parameters.rope_type is \"yarn\""), std::string::npos);
    CheckpointBuilder both = llama;
    both.config["rope_theta"] = 1e4;
    EXPECT_NE(refusal(both).find("rope_theta is 10000"), std::string::npos);
    CheckpointBuilder part = llama;
    part.config["rope_parameters"].erase("low_freq_factor");
    EXPECT_NE(refusal(part).find("rope_parameters.low_freq_factor is missing"), std::string::npos);
}

TEST_F(CheckpointConfigTest, BrokenJsonIsNamedWithItsFile) {
    const CheckpointBuilder checkpoint = sparseCheckpoint();
    for (const char* broken : {"", "[]", "{\"a\": 1, \"a\": 2}", "{\"model_type\":"}) {
        const std::string folder = checkpoint.write(dir_.path() / "broken");
        dir_.write("broken/config.json", broken);
        const auto source = openModel(folder);
        ASSERT_FALSE(source.has_value()) << broken;
        EXPECT_EQ(source.error().code, ErrorCode::Corrupt);
        EXPECT_NE(source.error().message.find("config.json"), std::string::npos);
    }
}

}  // namespace
}  // namespace belvedere::testing
