// SPDX-License-Identifier: Apache-2.0
// A checkpoint's tensors: every dialect of names is one model; whatever is missing, extra,
// misshapen, of mixed types or outside the folder is one error that names it.
#include <functional>

#include <gtest/gtest.h>

#include "inference/inspect.h"
#include "inference/model/checkpoint_names.h"
#include "inference/model/model_source.h"
#include "inference/model/weights.h"
#include "tests/inference/checkpoint_twin.h"
#include "tests/inference/format/sparse_model.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using namespace inference;

class CheckpointTest : public ::testing::Test {
  protected:
    std::filesystem::path folder() { return dir_.path() / std::to_string(n_++); }

    Error refusalOf(const std::string& path) {
        const auto info = inspectModel(path);
        EXPECT_FALSE(info.has_value()) << "was read";
        if (info.has_value()) {
            return {};
        }
        EXPECT_NE(info.error().message.find(dir_.path().string()), std::string::npos)
            << info.error().message;
        return info.error();
    }

    /// What is said of a checkpoint after a change.
    std::string refusal(const std::function<void(CheckpointBuilder&)>& change) {
        CheckpointBuilder checkpoint = sparseCheckpoint();
        change(checkpoint);
        return refusalOf(checkpoint.write(folder())).message;
    }

    std::vector<float> logits(const std::string& path) {
        LogitsRequest request;
        request.load.model_path = path;
        request.ids = {0, 1, 2, 3, 4, 5, 6, 7, 3, 1};
        request.n_threads = 1;
        const auto computed = computeLogits(request, {});
        EXPECT_TRUE(computed.has_value()) << (computed.has_value() ? "" : computed.error().message);
        return computed.has_value() ? computed->values : std::vector<float>();
    }

    TempDir dir_;
    int n_ = 0;
};

using Renaming = std::function<std::string(std::string)>;

CheckpointBuilder renamed(const CheckpointBuilder& checkpoint, const Renaming& rename) {
    CheckpointBuilder result = checkpoint;
    result.tensors.clear();
    for (const auto& [name, tensor] : checkpoint.tensors) {
        result.tensors[rename(name)] = tensor;
    }
    return result;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    if (const size_t at = text.find(from); at != std::string::npos) {
        text.replace(at, from.size(), to);
    }
    return text;
}

/// As transformers holds the model: other prefixes, gate and up joined, experts stacked.
CheckpointBuilder transformersForm(const CheckpointBuilder& checkpoint) {
    CheckpointBuilder form = renamed(checkpoint, [](std::string name) {
        name = replaced(name, "language_model.lm_head.", "lm_head.");
        name = replaced(name, "language_model.model.", "model.language_model.");
        name = replaced(name, "block_sparse_moe.e_score", "mlp.gate.e_score");
        name = replaced(name, "block_sparse_moe.", "mlp.");
        return replaced(name, "self_attn.index_", "self_attn.indexer.");
    });
    const auto join = [&](const std::string& gate, const std::string& up, const std::string& name,
                          bool stack) {
        StoredTensor first = form.tensors.at(gate);
        const StoredTensor& second = form.tensors.at(up);
        first.bytes += second.bytes;
        first.shape[0] *= 2;
        if (stack) {
            first.shape.insert(first.shape.begin(), 1);
            const bool is_new = !form.tensors.contains(name);
            StoredTensor& all = form.tensors[name];
            all = is_new ? first
                         : StoredTensor{all.dtype,
                                        {all.shape[0] + 1, all.shape[1], all.shape[2]},
                                        all.bytes + first.bytes};
        } else {
            form.tensors[name] = first;
        }
        form.tensors.erase(gate);
        form.tensors.erase(up);
    };
    const std::string layers = "model.language_model.layers.";
    for (const std::string& mlp : {layers + "0.mlp.", layers + "1.mlp.shared_experts."}) {
        join(mlp + "gate_proj.weight", mlp + "up_proj.weight", mlp + "gate_up_proj.weight", false);
    }
    const std::string experts = layers + "1.mlp.experts.";
    for (int e = 0; e < 4; ++e) {
        const std::string expert = experts + std::to_string(e);
        join(expert + ".w1.weight", expert + ".w3.weight", experts + "gate_up_proj", true);
        StoredTensor& down = form.tensors[experts + "down_proj"];
        const StoredTensor& one = form.tensors.at(expert + ".w2.weight");
        down = {one.dtype,
                {static_cast<uint64_t>(e) + 1, one.shape[0], one.shape[1]},
                down.bytes + one.bytes};
        form.tensors.erase(expert + ".w2.weight");
    }
    return form;
}

TEST_F(CheckpointTest, EveryDialectOfNamesIsTheSameModel) {
    const std::vector<float> expected = logits(dir_.write("model.gguf", sparseModel()).string());
    const CheckpointBuilder published = sparseCheckpoint();
    const std::vector<float> own = logits(published.write(folder()));
    ASSERT_EQ(own.size(), expected.size());
    for (size_t i = 0; i < own.size(); ++i) {
        // The norms lose a bit on their way through w - 1.
        EXPECT_NEAR(own[i], expected[i], 1e-5F);
    }
    EXPECT_EQ(logits(transformersForm(published).write(folder())), own);
    EXPECT_EQ(logits(renamed(published,
                             [](const std::string& name) {
                                 return replaced(name, "language_model.model.", "model.model.");
                             })
                         .write(folder())),
              own);
    EXPECT_EQ(logits(renamed(transformersForm(published),
                             [](const std::string& name) { return "model." + name; })
                         .write(folder())),
              own);
    EXPECT_EQ(logits(published.writeSharded(folder(), 5)), own);
    const auto file = folder();
    published.write(file);
    EXPECT_EQ(logits((file / "model.safetensors").string()), own);
}

TEST_F(CheckpointTest, TensorsThatAreNoneOfTheDecodersAreLeftOut) {
    CheckpointBuilder checkpoint = sparseCheckpoint();
    const std::vector<float> own = logits(checkpoint.write(folder()));
    const StoredTensor some = {"F32", {2, 2}, std::string(16, '\0')};
    checkpoint.tensors["language_model.model.mtp.layers.0.eh_proj.weight"] = some;
    checkpoint.tensors["language_model.model.layers.0.self_attn.rotary_emb.inv_freq"] = some;
    checkpoint.tensors["vision_tower.vision_model.pre_layrnorm.weight"] = some;
    EXPECT_NE(refusalOf(checkpoint.write(folder())).message.find("vision_tower"),
              std::string::npos);
    checkpoint.config["vision_config"] = {{"hidden_size", 2}};
    EXPECT_NE(refusalOf(checkpoint.write(folder())).message.find("vision_config.num_hidden_layers"),
              std::string::npos)
        << "half a tower is none";
    checkpoint.tensors.erase("vision_tower.vision_model.pre_layrnorm.weight");
    EXPECT_EQ(logits(checkpoint.write(folder())), own) << "the text model alone";
}

TEST_F(CheckpointTest, MissingTensorsAreNamedAsTheFilesSpellThem) {
    for (const std::string& suffix : std::initializer_list<std::string>{
             "embed_tokens.weight", "model.norm.weight", "lm_head.weight",
             "layers.0.input_layernorm.weight", "layers.1.self_attn.q_norm.weight",
             "layers.1.self_attn.index_k_proj.weight", "layers.1.self_attn.index_q_norm.weight",
             "layers.0.mlp.up_proj.weight", "layers.1.block_sparse_moe.gate.weight",
             "layers.1.block_sparse_moe.e_score_correction_bias",
             "layers.1.block_sparse_moe.shared_experts.down_proj.weight"}) {
        SCOPED_TRACE(suffix);
        std::string name;
        const std::string message = refusal([&](CheckpointBuilder& checkpoint) {
            name = checkpoint.nameEnding(suffix);
            checkpoint.tensors.erase(name);
        });
        EXPECT_NE(message.find("tensor " + name + " is missing"), std::string::npos) << message;
    }
    const std::string expert = refusal([](CheckpointBuilder& checkpoint) {
        checkpoint.tensors.erase(checkpoint.nameEnding("experts.2.w3.weight"));
    });
    EXPECT_NE(expert.find("the tensor of expert 2 beside"), std::string::npos) << expert;
    const std::string last = refusal([](CheckpointBuilder& checkpoint) {
        checkpoint.tensors.erase(checkpoint.nameEnding("experts.3.w3.weight"));
    });
    EXPECT_NE(last.find("expected 16 x 16 x 4, found 16 x 16 x 3"), std::string::npos) << last;
}

TEST_F(CheckpointTest, ExtraTensorsAreNamed) {
    for (const std::string& name : std::initializer_list<std::string>{
             "language_model.model.layers.2.input_layernorm.weight",
             "language_model.model.layers.0.self_attn.index_q_proj.bias",
             "language_model.model.layers.0.self_attn.q_proj.bias",
             "language_model.model.layers.0.self_attn.sinks", "surprise"}) {
        SCOPED_TRACE(name);
        const std::string message = refusal([&](CheckpointBuilder& checkpoint) {
            checkpoint.tensors[name] = {"F32", {4}, std::string(16, '\0')};
        });
        EXPECT_NE(message.find(name), std::string::npos) << message;
    }
}

TEST_F(CheckpointTest, ShapesAndTypesAreCompared) {
    const std::string shape = refusal([](CheckpointBuilder& checkpoint) {
        checkpoint.ending("layers.1.self_attn.k_proj.weight").shape = {8, 32};
    });
    EXPECT_NE(shape.find("layers.1.self_attn.k_proj.weight: expected 16 x 16 x 1, found 32 x 8"),
              std::string::npos)
        << shape;
    const std::string type = refusal([](CheckpointBuilder& checkpoint) {
        checkpoint.ending("layers.1.self_attn.k_proj.weight").dtype = "I32";
    });
    EXPECT_NE(type.find("layers.1.self_attn.k_proj.weight has type I32"), std::string::npos)
        << type;
    const std::string mixed = refusal([](CheckpointBuilder& checkpoint) {
        StoredTensor& tensor = checkpoint.ending("experts.2.w1.weight");
        tensor.dtype = "BF16";
        tensor.bytes.resize(tensor.bytes.size() / 2);
    });
    EXPECT_NE(mixed.find("experts.2.w1.weight: expected F32 of 16 x 16"), std::string::npos)
        << mixed;
    EXPECT_NE(mixed.find("found BF16"), std::string::npos) << mixed;
    const std::string twice = refusal([](CheckpointBuilder& checkpoint) {
        checkpoint.tensors["model.layers.0.mlp.up_proj.weight"] =
            checkpoint.ending("layers.0.mlp.up_proj.weight");
    });
    EXPECT_NE(twice.find("are the same tensor of the model"), std::string::npos) << twice;
}

TEST_F(CheckpointTest, ATiedHeadIsTheEmbeddingUnderEitherName) {
    CheckpointBuilder tied = sparseCheckpoint();
    tied.text()["tie_word_embeddings"] = true;
    const std::string head = tied.nameEnding("lm_head.weight");
    const std::string embedding = tied.nameEnding("embed_tokens.weight");
    tied.tensors[head] = tied.tensors[embedding];
    const std::vector<float> both = logits(tied.write(folder()));
    tied.tensors.erase(head);
    EXPECT_EQ(logits(tied.write(folder())), both);
    tied.tensors[head] = tied.tensors[embedding];
    tied.tensors.erase(embedding);
    EXPECT_EQ(logits(tied.write(folder())), both);
    tied.tensors[head].bytes[1] ^= 0x55;
    EXPECT_NE(logits(tied.write(folder())), both);
}

class CheckpointIndexTest : public CheckpointTest {
  protected:
    /// What is said after a change of the index of a checkpoint of 3 parts.
    std::string refusalOfIndex(const std::function<void(nlohmann::json&)>& change) {
        const std::filesystem::path at = folder();
        sparseCheckpoint().writeSharded(at, 3);
        const auto file = at / "model.safetensors.index.json";
        nlohmann::json index = nlohmann::json::parse(readFile(file));
        change(index);
        dir_.write(std::filesystem::relative(file, dir_.path()), index.dump());
        return refusalOf(at.string()).message;
    }
};

TEST_F(CheckpointIndexTest, PartsStandInTheFolder) {
    dir_.write("outside.safetensors", safetensorsBytes(sparseCheckpoint().tensors));
    for (const std::string& part : std::initializer_list<std::string>{
             "../outside.safetensors", "/etc/outside.safetensors", "a/b.safetensors",
             "..\\outside.safetensors", "C:outside.safetensors", "outside.bin", ".safetensors",
             "..", ""}) {
        SCOPED_TRACE(part);
        const std::string message = refusalOfIndex(
            [&](nlohmann::json& index) { index["weight_map"].begin().value() = part; });
        EXPECT_NE(message.find("expected the name of a .safetensors file in the same folder"),
                  std::string::npos)
            << message;
    }
    const std::filesystem::path at = folder();
    sparseCheckpoint().writeSharded(at, 3);
    std::filesystem::remove(at / "model-00002-of-00003.safetensors");
    std::filesystem::create_symlink(dir_.path() / "outside.safetensors",
                                    at / "model-00002-of-00003.safetensors");
    EXPECT_NE(refusalOf(at.string()).message.find("a link that leaves the folder"),
              std::string::npos);
}

TEST_F(CheckpointIndexTest, ListedPartsAndTensorsMustBeThere) {
    const std::string part = refusalOfIndex([](nlohmann::json& index) {
        index["weight_map"].begin().value() = "model-00009-of-00003.safetensors";
    });
    EXPECT_NE(part.find("model-00009-of-00003.safetensors"), std::string::npos) << part;
    const std::string tensor = refusalOfIndex([](nlohmann::json& index) {
        index["weight_map"].begin().value() = "model-00002-of-00003.safetensors";
    });
    EXPECT_NE(tensor.find("is not in model-00002-of-00003.safetensors, where the index has it"),
              std::string::npos)
        << tensor;
    const std::string none =
        refusalOfIndex([](nlohmann::json& index) { index.erase("weight_map"); });
    EXPECT_NE(none.find("weight_map is missing"), std::string::npos) << none;
}

TEST_F(CheckpointIndexTest, TensorsThatItDoesNotListAreNoted) {
    const std::filesystem::path at = folder();
    CheckpointBuilder checkpoint = sparseCheckpoint();
    checkpoint.writeSharded(at, 1);
    checkpoint.tensors["surprise"] = {"F32", {1}, std::string(4, '\0')};
    dir_.write(std::filesystem::relative(at / "model-00001-of-00001.safetensors", dir_.path()),
               safetensorsBytes(checkpoint.tensors));
    const auto info = inspectModel(at.string());
    ASSERT_TRUE(info.has_value()) << info.error().message;
    ASSERT_FALSE(info->notices.empty());
    EXPECT_EQ(info->notices[0],
              "model-00001-of-00001.safetensors holds 1 tensors that the index does not list");
}

TEST_F(CheckpointTest, AFolderWithoutTensorsIsNotFound) {
    std::filesystem::create_directories(dir_.path() / "empty");
    const Error error = refusalOf((dir_.path() / "empty").string());
    EXPECT_EQ(error.code, ErrorCode::NotFound);
    EXPECT_NE(error.message.find("neither model.safetensors nor"), std::string::npos);
}

TEST(CheckpointNames, GoBothWays) {
    const CheckpointName expert =
        parseCheckpointName("model.language_model.layers.12.mlp.experts.7.w2.weight");
    EXPECT_EQ(expert.name, "blk.12.ffn_down_exps.weight");
    EXPECT_EQ(expert.expert, 7U);
    const CheckpointName scale =
        parseCheckpointName("language_model.model.layers.3.self_attn.q_proj.weight_scale_inv");
    EXPECT_EQ(scale.name, "blk.3.attn_q.weight");
    EXPECT_TRUE(scale.is_scale);
    const CheckpointName merge =
        parseCheckpointName("model.multi_modal_projector.merge_linear_1.bias");
    EXPECT_EQ(merge.role, TensorRole::Vision);
    EXPECT_EQ(merge.name, "patch_merge_mlp.linear_1.bias");
    for (const char* unknown :
         {"", ".", "model.", "layers", "layers.", "layers.1", "layers.1.",
          "layers.x.mlp.gate.weight", "layers.99999999999999999999.mlp.gate.weight",
          "layers.1.mlp.experts.1.gate_up_proj", "layers.1.self_attn.q_proj", "layers.1.weight",
          "norm"}) {
        EXPECT_EQ(parseCheckpointName(unknown).role, TensorRole::Unknown) << unknown;
        EXPECT_EQ(parseCheckpointName(unknown).name, unknown);
    }
    EXPECT_EQ(publishedName("blk.3.indexer.q_norm.weight"),
              "model.layers.3.self_attn.index_q_norm.weight");
    EXPECT_EQ(publishedName("output.weight"), "lm_head.weight");
    EXPECT_EQ(publishedName("rope_freqs.weight"), "rope_freqs.weight");
}

}  // namespace
}  // namespace belvedere::testing
