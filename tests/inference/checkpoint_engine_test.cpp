// SPDX-License-Identifier: Apache-2.0
// A checkpoint runs end to end: tokenizer, chat template and end tokens come from the files beside
// its weights.
#include <gtest/gtest.h>

#include "inference/engine.h"
#include "inference/inspect.h"
#include "tests/inference/checkpoint_twin.h"
#include "tests/support/reference_dir.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using namespace inference;

class CheckpointEngineTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const auto json = dataPath("tokenizers/smollm.json");
        const auto tokenizer = loadTokenizer(json.string());
        ASSERT_TRUE(tokenizer.has_value());
        TinyModelOptions options;
        options.quantized = false;
        options.n_padding_rows = static_cast<uint32_t>((*tokenizer)->vocabSize());
        CheckpointBuilder checkpoint = checkpointTwin(tinyModel(options), R"({
            "model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
            "max_position_embeddings": 512, "hidden_act": "silu", "rope_theta": 10000.0,
            "tie_word_embeddings": false, "eos_token_id": 3})");
        checkpoint.config["vocab_size"] = checkpoint.ending("embed_tokens.weight").shape[0];
        checkpoint.config["intermediate_size"] = checkpoint.ending("gate_proj.weight").shape[0];
        folder_ = checkpoint.write(dir_.path() / "model");
        write("tokenizer.json", readFile(json));
        write("chat_template.jinja",
              "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}");
    }

    void write(const std::string& name, const std::string& text) {
        dir_.write("model/" + name, text);
    }

    Result<std::unique_ptr<Engine>> load() { return Engine::load({folder_, {}}, {}, nullptr, {}); }

    TempDir dir_;
    std::string folder_;
};

class TextSink : public GenerationSink {
  public:
    void onPrefill(size_t /*n_done*/, size_t /*n_total*/) override {}

    void onText(std::string_view /*text*/, std::span<const TokenId> ids) override {
        n_tokens += ids.size();
    }

    size_t n_tokens = 0;
};

TEST_F(CheckpointEngineTest, Answers) {
    const auto engine = load();
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    EXPECT_EQ((*engine)->info().chat_template, "from the model file");
    EXPECT_EQ((*engine)->info().name, "model");
    PromptRequest request;
    ChatMessage message;
    message.role = "user";
    message.content.push_back({ChatPartKind::Text, "hello"});
    request.chat.messages.push_back(message);
    const auto prompt = (*engine)->buildPrompt(request);
    ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
    EXPECT_EQ((*engine)->tokenizer().decode(prompt->ids), "[user]hello");
    GenerateRequest generate;
    generate.sequence = (*engine)->openSequence();
    generate.prompt = prompt->ids;
    generate.max_tokens = 4;
    generate.ignore_end_of_turn = true;
    TextSink sink;
    const auto stats = (*engine)->generate(generate, sink, {});
    ASSERT_TRUE(stats.has_value()) << stats.error().message;
    EXPECT_EQ(sink.n_tokens, 4U);
}

TEST_F(CheckpointEngineTest, EndTokensAreThoseForGenerationElseOfTheConfig) {
    const auto ends = [&](TokenId id) {
        const auto tokenizer = loadTokenizer(folder_);
        EXPECT_TRUE(tokenizer.has_value())
            << (tokenizer.has_value() ? "" : tokenizer.error().message);
        return tokenizer.has_value() && (*tokenizer)->isEndOfGeneration(id);
    };
    EXPECT_TRUE(ends(3));
    EXPECT_FALSE(ends(40));
    write("generation_config.json", R"({"temperature": 1.0})");
    EXPECT_TRUE(ends(3));
    write("generation_config.json", R"({"eos_token_id": [40, 41]})");
    EXPECT_FALSE(ends(3));
    EXPECT_TRUE(ends(40) && ends(41));
    for (const char* wrong : {R"({"eos_token_id": 16000000})", R"({"eos_token_id": "x"})",
                              R"({"eos_token_id": [1, -1]})"}) {
        write("generation_config.json", wrong);
        const auto tokenizer = loadTokenizer(folder_);
        ASSERT_FALSE(tokenizer.has_value()) << wrong;
        EXPECT_NE(tokenizer.error().message.find("eos_token_id"), std::string::npos);
    }
}

TEST_F(CheckpointEngineTest, TheTemplateMayStandInTheTokenizersConfig) {
    std::filesystem::remove(std::filesystem::path(folder_) / "chat_template.jinja");
    EXPECT_FALSE(readChatTemplate(folder_).has_value());
    write("tokenizer_config.json", R"({"chat_template": "one"})");
    EXPECT_EQ(readChatTemplate(folder_).value_or(""), "one");
    write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "two"},
        {"name": "default", "template": "three"}]})");
    EXPECT_EQ(readChatTemplate(folder_).value_or(""), "three");
    write("tokenizer_config.json", R"({"chat_template": 7})");
    const auto wrong = readChatTemplate(folder_);
    ASSERT_FALSE(wrong.has_value());
    EXPECT_NE(wrong.error().message.find("tokenizer_config.json"), std::string::npos);
}

TEST_F(CheckpointEngineTest, WithoutATokenizerItsFileIsNamed) {
    std::filesystem::remove(std::filesystem::path(folder_) / "tokenizer.json");
    const auto engine = load();
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(engine.error().code, ErrorCode::NotFound);
    EXPECT_NE(engine.error().message.find("tokenizer.json"), std::string::npos);
}

}  // namespace
}  // namespace belvedere::testing
