// SPDX-License-Identifier: Apache-2.0
// The default model against SmolLM2 in f32: greedy answers, loss, and the adapter's prompt ids.
// Needs the model file, which BV_DATA_DIR/models holds after the first run of the program; label
// slow.
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inference/engine.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

using namespace inference;
using nlohmann::json;

constexpr const char* kBaseFile = "SmolLM2-135M-Instruct.Q4_1.gguf";
constexpr const char* kAdapterFile = "belvedere-repo-135m-v0.gguf";

std::filesystem::path modelDir() {
    if (const char* dir = std::getenv("BV_DATA_DIR")) {
        return std::filesystem::path(dir) / "models";
    }
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home != nullptr ? home : "/") / ".local/share/belvedere/models";
}

json readJson(const char* name) {
    std::ifstream in(dataPath(std::filesystem::path("inference") / name));
    return json::parse(in);
}

class DefaultModelTest : public ::testing::Test {
  protected:
    void SetUp() override {
        base_ = modelDir() / kBaseFile;
        if (!std::filesystem::exists(base_)) {
            GTEST_SKIP() << "no " << base_ << ": run the program once, or set BV_DATA_DIR";
        }
    }

    std::filesystem::path base_;
};

class Ids : public GenerationSink {
  public:
    void onPrefill(size_t, size_t) override {}

    void onText(std::string_view, std::span<const TokenId> tokens) override {
        ids.insert(ids.end(), tokens.begin(), tokens.end());
    }

    std::vector<TokenId> ids;
};

class DefaultModelComputeTest : public DefaultModelTest,
                                public ::testing::WithParamInterface<Compute> {};

/// A token may differ only where the reference's best two logits are closer than our error; behind
/// it the texts part.
TEST_P(DefaultModelComputeTest, AnswersGreedilyAsTheReference) {
    const double tolerance = GetParam() == Compute::Exact ? 1e-3 : 0.5;
    EngineConfig config;
    config.compute = GetParam();
    config.n_threads = 2;
    const auto engine = Engine::load({base_.string(), {}}, config, nullptr, {});
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    size_t n_equal = 0;
    size_t n_chats = 0;
    for (const json& chat : readJson("smollm2-135m-instruct-q4_1.json")) {
        if (!chat.contains("prompt")) {
            continue;
        }
        ++n_chats;
        const std::string prompt = chat.at("prompt");
        EXPECT_EQ((*engine)->tokenizer().encode(prompt, SpecialTokens::Recognise),
                  chat.at("prompt_ids").get<std::vector<TokenId>>());
        const auto expected = chat.at("greedy").get<std::vector<TokenId>>();
        GenerateRequest request;
        request.sequence = (*engine)->openSequence();
        request.prompt = chat.at("prompt_ids").get<std::vector<TokenId>>();
        request.max_tokens = expected.size();
        request.ignore_end_of_turn = true;
        Ids ours;
        const auto stats = (*engine)->generate(request, ours, {});
        ASSERT_TRUE(stats.has_value()) << stats.error().message;
        const auto differs =
            std::mismatch(ours.ids.begin(), ours.ids.end(), expected.begin(), expected.end());
        if (differs.second == expected.end()) {
            ++n_equal;
            continue;
        }
        const auto step = static_cast<size_t>(differs.second - expected.begin());
        const json& logits = chat.at("steps").at(step).at("logits");
        EXPECT_LT(logits.at(0).get<double>() - logits.at(1).get<double>(), tolerance)
            << "step " << step;
    }
    EXPECT_EQ(n_chats, 3U);
    RecordProperty("equal_chats", static_cast<int>(n_equal));
    if (GetParam() == Compute::Exact) {
        EXPECT_EQ(n_equal, n_chats);
    }
}

TEST_P(DefaultModelComputeTest, LossMatchesTheReference) {
    for (const json& text : readJson("smollm2-135m-instruct-q4_1.json")) {
        if (!text.contains("mean_nll")) {
            continue;
        }
        const auto ids = text.at("ids").get<std::vector<TokenId>>();
        LogitsRequest request;
        request.load.model_path = base_.string();
        request.ids = ids;
        request.compute = GetParam();
        request.n_threads = 2;
        const auto logits = computeLogits(request, {});
        ASSERT_TRUE(logits.has_value()) << logits.error().message;
        const double loss = meanLoss(logits->values, ids, logits->vocab_size);
        std::printf("mean loss %.6f, reference %.6f\n", loss, text.at("mean_nll").get<double>());
        EXPECT_NEAR(loss / text.at("mean_nll").get<double>(), 1.0,
                    GetParam() == Compute::Exact ? 1e-5 : 5e-3);
        return;
    }
    FAIL() << "no loss in the reference";
}

INSTANTIATE_TEST_SUITE_P(,
                         DefaultModelComputeTest,
                         ::testing::Values(Compute::Exact, Compute::Fast),
                         [](const auto& parameter) {
                             return parameter.param == Compute::Exact ? "exact" : "fast";
                         });

/// Pieces as the repository index hands them in must give the very ids that the adapter was trained
/// on.
TEST_F(DefaultModelTest, BuildsThePromptTheAdapterWasTrainedOn) {
    const std::filesystem::path adapter = dataPath("../../resources/models") / kAdapterFile;
    ASSERT_TRUE(std::filesystem::exists(adapter)) << adapter;
    EngineConfig config;
    config.n_threads = 2;
    const auto engine =
        Engine::load({base_.string(), {{adapter.string(), 1.0F}}}, config, nullptr, {});
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    EXPECT_EQ((*engine)->info().context_tokens, 32768U);
    ASSERT_EQ((*engine)->info().notices.size(), 1U);
    EXPECT_NE((*engine)->info().notices[0].find("layers 3-29 attend sparsely (MSA)"),
              std::string::npos);

    const json example = readJson("prompt_example.json");
    const std::string text = example.at("prompt");
    const auto between = [&](const std::string& from, const std::string& to) {
        const size_t begin = text.find(from) + from.size();
        return text.substr(begin, text.find(to, begin) - begin);
    };
    ChatMessage system;
    system.role = "system";
    system.content = {{ChatPartKind::Text, between("<|im_start|>system\n", "<|im_end|>"), -1}};
    ChatMessage user;
    user.role = "user";
    const std::string content = between("<|im_start|>user\n", "<|im_end|>");
    PromptRequest request;
    const size_t question = content.rfind("\n\nQuestion: ");
    for (size_t begin = 0; begin < question;) {
        const size_t end = std::min(content.find("\n### ", begin + 1), question);
        const std::string piece = content.substr(begin, end - begin);
        const auto source = static_cast<int64_t>(request.pieces.size());
        request.pieces.push_back({source, piece.size(),
                                  std::make_shared<const std::vector<TokenId>>(
                                      (*engine)->tokenizer().encode(piece, SpecialTokens::Plain))});
        user.content.push_back({ChatPartKind::Text, piece, source});
        begin = end;
    }
    // The label was trained by itself, like each piece.
    const std::string label = "\n\nQuestion: ";
    const auto label_source = static_cast<int64_t>(request.pieces.size());
    request.pieces.push_back({label_source, label.size(),
                              std::make_shared<const std::vector<TokenId>>(
                                  (*engine)->tokenizer().encode(label, SpecialTokens::Plain))});
    user.content.push_back({ChatPartKind::Text, label, label_source});
    user.content.push_back({ChatPartKind::Text, content.substr(question + label.size()), -1});
    request.chat.messages = {system, user};
    const auto prompt = (*engine)->buildPrompt(request);
    ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
    EXPECT_EQ(request.pieces.size(), example.at("pieces").size() + 1);
    EXPECT_EQ(prompt->ranges.size(), request.pieces.size());
    EXPECT_EQ(prompt->ids, example.at("ids").get<std::vector<TokenId>>());
}

}  // namespace
}  // namespace belvedere::testing
