// SPDX-License-Identifier: Apache-2.0
// The language against what Jinja2 makes of the same templates.

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inference/chat/template.h"
#include "tests/support/reference_dir.h"

namespace belvedere::inference {
namespace {

using Json = nlohmann::ordered_json;

[[nodiscard]] Result<std::string> render(const std::string& source,
                                         const Json& variables = Json::object()) {
    const ChatTemplate compiled = BV_TRY(ChatTemplate::compile(source));
    return BV_TRY(compiled.render(variables)).text;
}

TEST(TemplateLanguage, AgreesWithJinja2) {
    std::ifstream file(testing::dataPath("chat/language.json"));
    const Json data = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
    int n_texts = 0;
    for (const Json& each : data["cases"]) {
        const std::string source = each["template"];
        const Result<std::string> rendered = render(source, data["variables"]);
        if (!each.contains("text")) {
            EXPECT_FALSE(rendered.has_value()) << source << "\nshould fail, gives: " << *rendered;
            continue;
        }
        if (!rendered.has_value()) {
            EXPECT_EQ(rendered.error().code, ErrorCode::Unsupported) << source << "\n"
                                                                     << rendered.error().message;
            continue;
        }
        EXPECT_EQ(*rendered, each["text"].get<std::string>()) << source;
        ++n_texts;
    }
    EXPECT_GT(n_texts, 250);
}

struct BadTemplate {
    const char* source;
    ErrorCode code;
    const char* message;
};

TEST(TemplateLanguage, RefusesWhatItDoesNotKnowByNameAndLine) {
    const BadTemplate cases[] = {
        {"a\n{% include 'x' %}", ErrorCode::Unsupported, "line 2: tag include is not supported"},
        {"{% import 'x' as y %}", ErrorCode::Unsupported, "line 1: tag import is not supported"},
        {"\n\n{{ x | urlize }}", ErrorCode::Unsupported, "line 3: filter urlize is not supported"},
        {"{{ x is odious }}", ErrorCode::Unsupported, "line 1: test odious is not supported"},
        {"{% for x in y recursive %}{% endfor %}", ErrorCode::Unsupported,
         "line 1: a recursive for loop"},
        {"{{ f(*x) }}", ErrorCode::Unsupported, "line 1: a call with *arguments"},
        {"{{ cycler(1, 2) }}", ErrorCode::Unsupported, "function cycler"},
        {"{{ x", ErrorCode::Corrupt, "line 1: the template ends inside a tag"},
        {"{% if x %}\n\n", ErrorCode::Corrupt, "expected elif or else or endif"},
        {"{{ ) }}", ErrorCode::Corrupt, "unexpected ')'"},
        {"{{ 1 + }}", ErrorCode::Corrupt, "expected an expression, found '}}'"},
        {"{{ 'a }}", ErrorCode::Corrupt, "a string has no closing '"},
        {"{% break %}", ErrorCode::Corrupt, "'break' outside a loop"},
        {"{# x", ErrorCode::Corrupt, "a comment has no end"},
        {"{{ 99999999999999999999 }}", ErrorCode::Unsupported, "not a decimal number of 64 bits"},
        {"\xff", ErrorCode::Corrupt, "byte 0 of the template is not valid UTF-8"},
        {"{{ é }}", ErrorCode::Unsupported, "unexpected character 'é'"},
    };
    for (const BadTemplate& each : cases) {
        const auto compiled = ChatTemplate::compile(each.source);
        ASSERT_FALSE(compiled.has_value()) << each.source;
        EXPECT_EQ(compiled.error().code, each.code)
            << each.source << ": " << compiled.error().message;
        EXPECT_NE(compiled.error().message.find(each.message), std::string::npos)
            << compiled.error().message;
    }
}

TEST(TemplateLanguage, NamesTheLineOfAnErrorWhileRendering) {
    const auto rendered = render("{{ 1 }}\n{% for x in [1] %}\n  {{ missing.role }}\n{% endfor %}");
    ASSERT_FALSE(rendered.has_value());
    EXPECT_EQ(rendered.error().message, "chat template: line 3: 'missing' is undefined");
    const auto refused = render("\n{{ raise_exception('roles must alternate') }}");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(refused.error().message,
              "chat template: line 2: the template refuses the messages: roles must alternate");
}

TEST(TemplateLanguage, GenerationBlocksKeepTheirTextAndTheirVariables) {
    const auto rendered = render(
        "{% for m in [1, 2] %}{% generation %}{{ loop.index }}{% set x = 1 %}{% endgeneration %}{{ "
        "x }};{% endfor %}");
    ASSERT_TRUE(rendered.has_value()) << rendered.error().message;
    EXPECT_EQ(*rendered, "1;2;");
}

TEST(TemplateLanguage, ShowsThePinnedTime) {
    const auto compiled = ChatTemplate::compile(
        "{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %Y %B %A %a %j %I %p %y %-d %%') }}");
    ASSERT_TRUE(compiled.has_value());
    RenderOptions options;
    options.now = std::chrono::sys_days(std::chrono::year(2026) / 1 / 2) + std::chrono::hours(15) +
                  std::chrono::minutes(4) + std::chrono::seconds(5);
    const auto rendered = compiled->render(Json::object(), options);
    ASSERT_TRUE(rendered.has_value());
    EXPECT_EQ(rendered->text,
              "2026-01-02 15:04:05 02 Jan 2026 January Friday Fri 002 03 PM 26 2 %");
}

TEST(TemplateLanguage, RefusesIntegersThatDoNotFit) {
    for (const char* source :
         {"{{ 9223372036854775807 + 1 }}", "{{ 10 ** 30 }}", "{{ 5000000000 * 5000000000 }}",
          "{{ -(0 - 9223372036854775807 - 1) }}", "{{ '99999999999999999999' | int }}"}) {
        const auto rendered = render(source);
        ASSERT_FALSE(rendered.has_value()) << source;
        EXPECT_EQ(rendered.error().code, ErrorCode::Unsupported) << rendered.error().message;
    }
}

TEST(TemplateLanguage, RefusesValuesThatAreNotUtf8) {
    const Json variables = {{"messages", {{{"content", "a\xff"}}}}};
    const auto rendered = render("{{ messages }}", variables);
    ASSERT_FALSE(rendered.has_value());
    EXPECT_NE(rendered.error().message.find("/messages/0/content: byte 1 is not valid UTF-8"),
              std::string::npos)
        << rendered.error().message;
}

}  // namespace
}  // namespace belvedere::inference
