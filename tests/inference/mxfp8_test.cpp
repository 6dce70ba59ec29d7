// SPDX-License-Identifier: Apache-2.0
// Checkpoints in MXFP8: the same logits as their exactly dequantised twin, never a copy in full
// precision, and scales that do not fit are refused.
#include "tests/inference/mxfp8.h"

#include <gtest/gtest.h>

#include "inference/inspect.h"
#include "kernels/kernels.h"
#include "tests/inference/checkpoint_twin.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using inference::Compute;
using kernels::Isa;

std::string file(const char* name) {
    return (dataPath("inference/m3-tiny") / name).string();
}

CheckpointBuilder m3Tiny() {
    return checkpointTwin(readFile(file("model-BF16.gguf")), readFile(file("config.json")));
}

const CheckpointBuilder& m3TinyMxfp8() {
    static const CheckpointBuilder checkpoint = quantisedToMxfp8(m3Tiny());
    return checkpoint;
}

class Mxfp8Test : public ::testing::TestWithParam<Isa> {
  protected:
    void SetUp() override {
        options_.kernels = kernels::tableFor(GetParam());
        if (options_.kernels == nullptr) {
            GTEST_SKIP() << "no kernels here for " << kernels::isaName(GetParam());
        }
        ids_ = expectedIds(file("expected.safetensors"));
    }

    std::vector<float> run(const std::string& path) {
        const auto logits = runModel(path, ids_, options_);
        EXPECT_TRUE(logits.has_value()) << (logits.has_value() ? "" : logits.error().message);
        return logits.value_or(std::vector<float>());
    }

    TempDir dir_;
    RunOptions options_;
    std::vector<inference::TokenId> ids_;
};

TEST_P(Mxfp8Test, ComputesWhatItsDequantisedTwinComputes) {
    const CheckpointBuilder& mxfp8 = m3TinyMxfp8();
    const std::string quantised = mxfp8.write(dir_.path() / "mxfp8");
    const std::string plain = dequantised(mxfp8).write(dir_.path() / "plain");
    ids_.resize(96);
    EXPECT_EQ(run(quantised), run(plain));
    options_.compute = Compute::Fast;
    const std::vector<float> fast = run(quantised);
    const std::vector<float> fast_plain = run(plain);
    ASSERT_EQ(fast.size(), fast_plain.size());
    EXPECT_LT(compareLogits(fast, fast_plain, fast.size() / ids_.size(), 0.0).nmse, 1e-6);
}

TEST_P(Mxfp8Test, MatchesTheReference) {
    const auto reference = referenceDir();
    if (!reference) {
        GTEST_SKIP() << kNoReference;
    }
    const std::string folder = (*reference / "m3-tiny-mxfp8").string();
    ids_ = expectedIds(folder + "/expected.safetensors");
    const auto expected = expectedLogits(folder + "/expected.safetensors");
    const size_t vocab_size = expected.size() / ids_.size();
    EXPECT_LT(compareLogits(run(folder), expected, vocab_size, 0.0).largest, 1e-3);
    options_.compute = Compute::Fast;
    EXPECT_LT(compareLogits(run(folder), expected, vocab_size, 0.0).nmse, 3e-2);
}

INSTANTIATE_TEST_SUITE_P(,
                         Mxfp8Test,
                         ::testing::Values(Isa::Scalar, Isa::Avx2, Isa::Avx512),
                         [](const ::testing::TestParamInfo<Isa>& isa) {
                             return std::string(kernels::isaName(isa.param));
                         });

class Mxfp8FileTest : public ::testing::Test {
  protected:
    std::vector<float> run(const CheckpointBuilder& checkpoint) {
        const std::vector<inference::TokenId> ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
        const auto logits =
            runModel(checkpoint.write(dir_.path() / std::to_string(n_++)), ids, RunOptions());
        error_ = logits.has_value() ? Error() : logits.error();
        return logits.value_or(std::vector<float>());
    }

    std::string refusal(const CheckpointBuilder& checkpoint) {
        EXPECT_TRUE(run(checkpoint).empty()) << "was read";
        EXPECT_NE(error_.message.find(dir_.path().string()), std::string::npos) << error_.message;
        return error_.message;
    }

    TempDir dir_;
    Error error_;
    int n_ = 0;
    const CheckpointBuilder& mxfp8_ = m3TinyMxfp8();
};

/// Routers, index projections and the embedding have no scales in the published file; where a file
/// has them, they count.
TEST_F(Mxfp8FileTest, WhatHasScalesIsScaled) {
    CheckpointBuilder all = mxfp8_;
    for (const char* suffix :
         {"layers.2.block_sparse_moe.gate.weight", "layers.2.self_attn.index_q_proj.weight",
          "embed_tokens.weight", "lm_head.weight"}) {
        CheckpointBuilder one;
        one.tensors["layers.0.any.weight"] = all.ending(suffix);
        const CheckpointBuilder scaled = quantisedToMxfp8(one);
        const std::string name = all.nameEnding(suffix);
        all.tensors[name] = scaled.tensors.at("layers.0.any.weight");
        all.tensors[name + "_scale_inv"] = scaled.tensors.at("layers.0.any.weight_scale_inv");
    }
    const std::vector<float> logits = run(all);
    ASSERT_FALSE(logits.empty()) << error_.message;
    EXPECT_EQ(logits, run(dequantised(all)));
    EXPECT_NE(logits, run(mxfp8_));
}

TEST_F(Mxfp8FileTest, ShowsItsTypeAndWhatItKeepsInMemory) {
    const std::string path = mxfp8_.write(dir_.path() / "model");
    const auto info = inference::inspectModel(path);
    ASSERT_TRUE(info.has_value()) << info.error().message;
    EXPECT_NE(info->weight_types.find("MXFP8"), std::string::npos) << info->weight_types;
    inference::ModelOptions options;
    options.compute = Compute::Exact;
    const auto model = inference::Model::load({path, {}}, options, nullptr, {});
    ASSERT_TRUE(model.has_value()) << model.error().message;
    uint64_t stored = 0;
    for (const auto& [name, tensor] : mxfp8_.tensors) {
        stored += tensor.dtype == "F8_E4M3" || tensor.dtype == "U8" ? tensor.bytes.size() : 0;
    }
    // Blocks are as large as numbers and scales together; norms and biases add some kB.
    EXPECT_GE((*model)->info().resident_bytes, stored);
    EXPECT_LT((*model)->info().resident_bytes, stored + stored / 50);
    const auto& notices = (*model)->info().notices;
    EXPECT_TRUE(std::any_of(notices.begin(), notices.end(), [](const std::string& notice) {
        return notice.find("MXFP8") != std::string::npos;
    }));
}

TEST_F(Mxfp8FileTest, ScalesMustBelongAndFit) {
    const std::string weight = mxfp8_.nameEnding("layers.1.self_attn.k_proj.weight");
    const std::string scale = weight + "_scale_inv";
    CheckpointBuilder missing = mxfp8_;
    missing.tensors.erase(scale);
    EXPECT_NE(refusal(missing).find(scale + ", are missing"), std::string::npos);
    CheckpointBuilder orphan = mxfp8_;
    orphan.tensors[weight] = m3Tiny().tensors.at(weight);
    EXPECT_NE(refusal(orphan).find(weight + " has scales: expected F8_E4M3, found BF16"),
              std::string::npos);
    CheckpointBuilder alone = mxfp8_;
    alone.tensors["language_model.model.layers.0.mlp.gate.weight_scale_inv"] =
        mxfp8_.tensors.at(scale);
    EXPECT_NE(refusal(alone).find("layers.0.mlp.gate.weight_scale_inv scales nothing"),
              std::string::npos);
    CheckpointBuilder blocks = mxfp8_;
    blocks.tensors[scale] = {"F32", {1, 1}, std::string(4, '\0')};
    EXPECT_NE(refusal(blocks).find("expected U8 of 64 x 4, found F32 of 1 x 1"), std::string::npos)
        << error_.message;
    CheckpointBuilder unsaid = mxfp8_;
    unsaid.config.erase("quantization_config");
    EXPECT_NE(refusal(unsaid).find("no quantization_config"), std::string::npos);
    CheckpointBuilder mixed = mxfp8_;
    const std::string expert = mixed.nameEnding("experts.3.w2.weight");
    mixed.tensors.erase(expert + "_scale_inv");
    mixed.tensors[expert] = m3Tiny().tensors.at(expert);
    EXPECT_NE(refusal(mixed).find(expert + ": expected F8_E4M3"), std::string::npos)
        << error_.message;
}

TEST_F(Mxfp8FileTest, NotANumberIsNamedWithItsTensor) {
    const std::string weight = mxfp8_.nameEnding("experts.3.w2.weight");
    for (const bool is_scale : {false, true}) {
        CheckpointBuilder nan = mxfp8_;
        StoredTensor& tensor = nan.tensors.at(weight + (is_scale ? "_scale_inv" : ""));
        tensor.bytes.back() = static_cast<char>(0xff);
        EXPECT_NE(refusal(nan).find("tensor " + weight + ": expected numbers, found NaN"),
                  std::string::npos)
            << error_.message;
    }
}

}  // namespace
}  // namespace belvedere::testing
