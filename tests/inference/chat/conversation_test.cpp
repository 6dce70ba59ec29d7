// SPDX-License-Identifier: Apache-2.0
// Requests to prompts, and the command that renders JSON.

#include "inference/chat/conversation.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inference/chat/fallback.h"
#include "inference/chat/render_command.h"

namespace belvedere::inference {
namespace {

using Json = nlohmann::ordered_json;

[[nodiscard]] ChatMessage message(std::string role, std::string text) {
    ChatMessage made;
    made.role = std::move(role);
    made.content.push_back({ChatPartKind::Text, std::move(text), -1});
    return made;
}

[[nodiscard]] std::string render(const std::string& source, const ChatRequest& request) {
    const auto compiled = ChatTemplate::compile(source);
    if (!compiled.has_value()) {
        return compiled.error().message;
    }
    const auto rendered = renderChat(*compiled, request, "<s>", "</s>");
    return rendered.has_value() ? rendered->text : rendered.error().message;
}

TEST(RenderChat, GivesTemplatesTheVariablesTheyKnow) {
    ChatRequest request;
    request.messages = {message("user", "Hi"), message("assistant", "")};
    request.messages[1].reasoning = "why";
    request.messages[1].tool_calls = {{"call_1", "read", {{"path", "a.cpp"}, {"n", 3}}}};
    request.messages.push_back(message("tool", "text"));
    request.messages[2].tool_call_id = "call_1";
    request.messages[2].tool_name = "read";
    request.tools = {{"read", "Read a file", {{"type", "object"}}}};
    request.variables["thinking_mode"] = "enabled";
    EXPECT_EQ(
        render("{{ messages | tojson }}", request),
        R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "reasoning_content": "why", )"
        R"("tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read", "arguments": )"
        R"({"path": "a.cpp", "n": 3}}}]}, {"role": "tool", "content": "text", "tool_call_id": "call_1", "name": "read"}])");
    EXPECT_EQ(
        render("{{ tools | tojson }}", request),
        R"([{"type": "function", "function": {"name": "read", "description": "Read a file", "parameters": )"
        R"({"type": "object"}}}])");
    EXPECT_EQ(
        render("{{ bos_token ~ eos_token ~ add_generation_prompt ~ thinking_mode }}", request),
        "<s></s>Trueenabled");
    request.tools.clear();
    request.add_generation_prompt = false;
    EXPECT_EQ(render("{{ tools is defined }} {{ add_generation_prompt }}", request), "False False");
}

TEST(RenderChat, KeepsTheSourceOfEveryPart) {
    ChatRequest request;
    ChatMessage user;
    user.role = "user";
    user.content = {{ChatPartKind::Text, " file one\n", 11},
                    {ChatPartKind::Text, "two\n", 12},
                    {ChatPartKind::Text, "?", -1}};
    request.messages = {user};
    const auto compiled =
        ChatTemplate::compile("<{{ messages[0].content | trim }}>{{ bos_token }}");
    const auto rendered = renderChat(*compiled, request, "<s>", "");
    ASSERT_TRUE(rendered.has_value()) << rendered.error().message;
    EXPECT_EQ(rendered->text, "<file one\ntwo\n?><s>");
    const std::vector<RenderedSpan> expected = {{0, 1, true, -1},
                                                {1, 10, false, 11},
                                                {10, 14, false, 12},
                                                {14, 15, false, -1},
                                                {15, 19, true, -1}};
    EXPECT_EQ(rendered->spans, expected);
}

TEST(RenderChat, MakesAListOfPartsWhereThereIsAnImage) {
    ChatRequest request;
    ChatMessage user;
    user.role = "user";
    user.content = {{ChatPartKind::Image, "", -1},
                    {ChatPartKind::Text, "What?", 4},
                    {ChatPartKind::Video, "", -1}};
    request.messages = {user};
    EXPECT_EQ(render("{{ messages[0].content | tojson }}", request),
              R"([{"type": "image"}, {"type": "text", "text": "What?"}, {"type": "video"}])");
    const auto compiled = ChatTemplate::compile(
        "{% for p in messages[0].content %}{{ p.text or '[IMG]' }}{% endfor %}");
    const auto rendered = renderChat(*compiled, request, "", "");
    ASSERT_TRUE(rendered.has_value());
    const std::vector<RenderedSpan> expected = {
        {0, 5, true, -1}, {5, 10, false, 4}, {10, 15, true, -1}};
    EXPECT_EQ(rendered->spans, expected);
}

TEST(RenderChat, RefusesArgumentsThatAreNoObject) {
    ChatRequest request;
    request.messages = {message("assistant", "")};
    request.messages[0].tool_calls = {{"1", "read", "{\"path\": 1}"}};
    EXPECT_EQ(render("x", request),
              "message 0: the arguments of tool call 'read' are string, not an object");
}

TEST(FallbackTemplate, IsChatMlAndSaysSo) {
    const ChatTemplate fallback = fallbackTemplate();
    EXPECT_EQ(fallback.name(), "built-in ChatML");
    ChatRequest request;
    request.messages = {message("system", "S"), message("user", "Hi")};
    const auto plain = renderChat(fallback, request, "", "");
    ASSERT_TRUE(plain.has_value()) << plain.error().message;
    EXPECT_EQ(
        plain->text,
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");

    request.tools = {{"read", "Read", {{"type", "object"}}}};
    ChatMessage call = message("assistant", "Let me see.");
    call.tool_calls = {{"1", "read", {{"path", "a"}}}};
    request.messages.push_back(call);
    request.messages.push_back(message("tool", "text"));
    const auto tools = renderChat(fallback, request, "", "");
    ASSERT_TRUE(tools.has_value()) << tools.error().message;
    EXPECT_NE(tools->text.find("<tools>\n{\"type\": \"function\""), std::string::npos)
        << tools->text;
    EXPECT_NE(tools->text.find("<|im_start|>assistant\nLet me see.\n<tool_call>\n{\"name\": "
                               "\"read\", \"arguments\": {\"path\": "
                               "\"a\"}}\n</tool_call><|im_end|>\n"),
              std::string::npos)
        << tools->text;
    EXPECT_NE(
        tools->text.find("<|im_start|>user\n<tool_response>\ntext\n</tool_response><|im_end|>\n"),
        std::string::npos);
    EXPECT_EQ(tools->text.find("S<|im_end|>\n<|im_start|>system"), std::string::npos)
        << "one system turn only";
}

TEST(RenderCommand, RendersExactlyTheBytes) {
    const auto rendered = renderFromJson(
        "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{{ x }} "
        "{{ strftime_now('%d %b %Y') }}"
        "{% if add_generation_prompt %} >{% endif %}",
        R"({"messages": [{"role": "user", "content": "é"}], "bos_token": "<s>", "now": "2026-01-02 03:04:05", "x": 1.50})");
    ASSERT_TRUE(rendered.has_value()) << rendered.error().message;
    EXPECT_EQ(*rendered, "<s>user: é\n1.5 02 Jan 2026 >");
}

TEST(RenderCommand, RefusesBadInputWithThePlace) {
    const std::pair<const char*, const char*> cases[] = {
        {"", "invalid JSON at byte"},
        {"{\"messages\": [}", "invalid JSON at byte 15"},
        {"{\"messages\": []} x", "invalid JSON"},
        {"[]", "expected one object, found array"},
        {"{}", "/messages is missing"},
        {R"({"messages": {}})", "/messages: expected a list, found object"},
        {R"({"messages": [1]})", "/messages/0: expected an object, found number"},
        {R"({"messages": [], "messages": []})", "the name 'messages' is given twice"},
        {R"({"messages": [], "tools": "x"})", "/tools: expected a list, found string"},
        {R"({"messages": [], "add_generation_prompt": 1})",
         "/add_generation_prompt: expected true or false, found number"},
        {R"({"messages": [], "bos_token": null})", "/bos_token: expected text, found null"},
        {R"({"messages": [], "now": "2026-02-30 00:00:00"})", "/now: '2026-02-30 00:00:00' is not"},
        {R"({"messages": [], "now": "yesterday"})", "/now: 'yesterday' is not YYYY-MM-DD HH:MM:SS"},
        {R"({"messages": [], "x": 18446744073709551615})", "does not fit in 64 bits"},
        {R"({"messages": [], "x": 123456789012345678901234567890})", "does not fit in 64 bits"},
        {R"({"messages": [], "x": "\ud800"})", "invalid JSON"},
    };
    for (const auto& [input, message] : cases) {
        const auto rendered = renderFromJson("x", input);
        ASSERT_FALSE(rendered.has_value()) << input;
        EXPECT_EQ(rendered.error().code, ErrorCode::InvalidArgument) << input;
        EXPECT_NE(rendered.error().message.find(message), std::string::npos)
            << input << ": " << rendered.error().message;
    }
    const std::string deep =
        R"({"messages": [], "x": )" + std::string(5000, '[') + std::string(5000, ']') + "}";
    EXPECT_FALSE(renderFromJson("x", deep).has_value());
}

}  // namespace
}  // namespace belvedere::inference
