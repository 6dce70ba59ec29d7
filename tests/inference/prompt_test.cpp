// SPDX-License-Identifier: Apache-2.0
// From messages to ids: fixed pieces, ranges, and text that looks like a special token.
#include <gtest/gtest.h>

#include "inference/engine.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using namespace inference;

class PromptTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const auto path = dir_.write("tiny.gguf", tinyModel());
        auto engine = Engine::load({path.string(), {}}, {}, nullptr, {});
        ASSERT_TRUE(engine.has_value()) << engine.error().message;
        engine_ = std::move(*engine);
    }

    [[nodiscard]] std::vector<TokenId> ids(const std::string& text) const {
        return engine_->tokenizer().encode(text, SpecialTokens::Plain);
    }

    static ChatMessage user(std::vector<ChatPart> parts) {
        ChatMessage message;
        message.role = "user";
        message.content = std::move(parts);
        return message;
    }

    TempDir dir_;
    std::unique_ptr<Engine> engine_;
};

TEST_F(PromptTest, UserTextNeverBecomesASpecialToken) {
    PromptRequest request;
    request.chat.messages = {user({{ChatPartKind::Text, "a<|im_end|>b", -1}})};
    const auto prompt = engine_->buildPrompt(request);
    ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
    const TokenId end = *engine_->tokenizer().find("<|im_end|>");
    EXPECT_EQ(std::count(prompt->ids.begin(), prompt->ids.end(), end), 1);
    EXPECT_EQ(engine_->tokenizer().decode(prompt->ids),
              "<|im_start|>user\na<|im_end|>b<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(PromptTest, FixedPiecesKeepTheirIdsAndBorders) {
    // Ids that the tokenizer would not choose for this text, and a border inside what it would
    // merge.
    const auto odd = std::make_shared<const std::vector<TokenId>>(
        std::vector<TokenId>{*engine_->tokenizer().find("t"), *engine_->tokenizer().find("h"),
                             *engine_->tokenizer().find("e")});
    PromptRequest request;
    request.chat.messages = {user({{ChatPartKind::Text, "x t", 1},
                                   {ChatPartKind::Text, "the", 2},
                                   {ChatPartKind::Text, "he end", 3}})};
    request.pieces = {{2, 3, odd}};
    const auto prompt = engine_->buildPrompt(request);
    ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
    ASSERT_EQ(prompt->ranges.size(), 3U);
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(prompt->ranges[i].source, static_cast<int64_t>(i + 1));
    }
    const PromptRange& piece = prompt->ranges[1];
    ASSERT_EQ(piece.token_end - piece.token_begin, 3U);
    EXPECT_TRUE(std::equal(odd->begin(), odd->end(),
                           prompt->ids.begin() + static_cast<std::ptrdiff_t>(piece.token_begin)));
    const auto text = [&](const PromptRange& range) {
        return engine_->tokenizer().decode(
            std::span(prompt->ids).subspan(range.token_begin, range.token_end - range.token_begin));
    };
    EXPECT_EQ(text(prompt->ranges[0]), "x t");
    EXPECT_EQ(text(prompt->ranges[2]), "he end");
}

TEST_F(PromptTest, APieceThatIsNotWholeIsTokenizedAnew) {
    const auto wrong = std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{1, 2, 3});
    PromptRequest request;
    request.chat.messages = {user({{ChatPartKind::Text, "some text", 5}})};
    request.pieces = {{5, 4, wrong}};
    const auto prompt = engine_->buildPrompt(request);
    ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
    EXPECT_NE(engine_->tokenizer().decode(prompt->ids).find("some text"), std::string::npos);
}

TEST_F(PromptTest, RefusesPiecesThatAreNoTokens) {
    PromptRequest request;
    request.chat.messages = {user({{ChatPartKind::Text, "some", 5}})};
    request.pieces = {
        {5, 4, std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{100000})}};
    const auto prompt = engine_->buildPrompt(request);
    ASSERT_FALSE(prompt.has_value());
    EXPECT_EQ(prompt.error().code, ErrorCode::InvalidArgument);
    request.pieces = {{5, 4, nullptr}};
    EXPECT_FALSE(engine_->buildPrompt(request).has_value());
}

TEST_F(PromptTest, WithoutATemplateChatMlServes) {
    TinyModelOptions options;
    options.chat_template = false;
    const auto path = dir_.write("bare.gguf", tinyModel(options));
    const auto engine = Engine::load({path.string(), {}}, {}, nullptr, {});
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    EXPECT_EQ((*engine)->info().chat_template, "built-in ChatML");
    PromptRequest request;
    request.chat.messages = {user({{ChatPartKind::Text, "hello", -1}})};
    const auto prompt = (*engine)->buildPrompt(request);
    ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
    EXPECT_EQ(prompt->ids.front(), *(*engine)->tokenizer().find("<|im_start|>"));
}

}  // namespace
}  // namespace belvedere::testing
