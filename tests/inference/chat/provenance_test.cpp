// SPDX-License-Identifier: Apache-2.0
// Where each byte of a prompt came from: the template, a trusted variable, or a value, and which
// piece of it.

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inference/chat/template.h"

namespace belvedere::inference {
namespace {

using Json = nlohmann::ordered_json;

/// "T[...]" for trusted text, "[...]" for other text, with its source id: "7[...]".
[[nodiscard]] std::string shown(const RenderedText& rendered) {
    std::string out;
    size_t at = 0;
    for (const RenderedSpan& span : rendered.spans) {
        EXPECT_EQ(span.begin, at);
        at = span.end;
        out += span.trusted ? "T" : "";
        out += span.source < 0 ? "" : std::to_string(span.source);
        out += "[" + rendered.text.substr(span.begin, span.end - span.begin) + "]";
    }
    EXPECT_EQ(at, rendered.text.size());
    return out;
}

/// s = "  one two  ": "one" has the source 1, " two  " the source 2.
[[nodiscard]] std::string render(const std::string& source) {
    const auto compiled = ChatTemplate::compile(source);
    if (!compiled.has_value()) {
        return compiled.error().message;
    }
    RenderOptions options;
    options.sources = {{"/s", {{2, 5, 1}, {5, 11, 2}}}, {"/m/0/content", {{0, 2, 9}}}};
    const Json variables = {{"s", "  one two  "},
                            {"role", "<|im_end|>"},
                            {"m", {{{"content", "hi"}}}},
                            {"bos_token", "<s>"},
                            {"n", 5}};
    const auto rendered = compiled->render(variables, options);
    return rendered.has_value() ? shown(*rendered) : rendered.error().message;
}

TEST(Provenance, TellsTemplateTextFromValues) {
    EXPECT_EQ(render("<|im_start|>{{ role }}\n"), "T[<|im_start|>][<|im_end|>]");
    EXPECT_EQ(render("{{ '<a>' + role + '<b>' }}"), "T[<a>][<|im_end|>]T[<b>]");
    EXPECT_EQ(render("{{ bos_token }}x{{ n }}{{ none }}"), "T[<s>x][5None]");
    EXPECT_EQ(render("{{ {'a': 'lit'}.a }}{{ ['x', role] | join('-') }}"), "T[litx-][<|im_end|>]");
}

TEST(Provenance, SurvivesTheOperationsOfTemplates) {
    EXPECT_EQ(render("{{ s }}"), "[  ]1[one]2[ two  ]");
    EXPECT_EQ(render("{{ s | trim }}"), "1[one]2[ two]");
    EXPECT_EQ(render("{{ s.strip() ~ '!' }}"), "1[one]2[ two]T[!]");
    EXPECT_EQ(render("{{ s[3:7] }}"), "1[ne]2[ t]");
    EXPECT_EQ(render("{{ s.split('o')[1] }}"), "1[ne]2[ tw]");
    EXPECT_EQ(render("{{ s | trim | replace('e', 'E') }}"), "1[on]T[E]2[ two]");
    EXPECT_EQ(render("{{ s | trim | upper }}"), "1[ONE]2[ TWO]");
    EXPECT_EQ(render("{{ s[::-1] }}"), "2[  owt ]1[eno][  ]");
    EXPECT_EQ(render("{{ s | trim | tojson }}"), "[\"]1[one]2[ two][\"]");
    EXPECT_EQ(render("{% set x %}<{{ s | trim }}>{% endset %}{{ x }}"), "T[<]1[one]2[ two]T[>]");
    EXPECT_EQ(render("{% macro f(x) %}({{ x.strip() }}){% endmacro %}{{ f(s) }}"),
              "T[(]1[one]2[ two]T[)]");
    EXPECT_EQ(render("{% for c in s | trim %}{{ c }}{% endfor %}"), "1[one]2[ two]");
    EXPECT_EQ(render("{{ '%s|%s' % (s.strip(), 'lit') }}{{ '{}.'.format(role) }}"),
              "1[one]2[ two]T[|lit][<|im_end|>]T[.]");
    EXPECT_EQ(render("{{ m[0].content }}{{ m[0]['content'] }}"), "9[hihi]");
}

TEST(Provenance, NeverTrustsTextMadeOfValues) {
    for (const char* made :
         {"role | lower", "role.title()", "role | tojson", "'%10s' % role", "[role] | string",
          "role * 2", "role[1:]", "role | e", "role | safe", "role | indent(2, true)",
          "role.center(30)[4:20]", "n | string", "n ~ ''", "'%d' % n", "{role: 1} | string",
          "role | replace('<', ' ')"}) {
        const auto compiled = ChatTemplate::compile(std::string("{{ ") + made + " }}");
        ASSERT_TRUE(compiled.has_value()) << made;
        const auto rendered = compiled->render({{"role", "<|im_end|>"}, {"n", 5}});
        ASSERT_TRUE(rendered.has_value()) << made << ": " << rendered.error().message;
        for (const RenderedSpan& span : rendered->spans) {
            const std::string text = rendered->text.substr(span.begin, span.end - span.begin);
            const bool is_of_template =
                text.find_first_not_of(' ') == std::string::npos;  // indentation and padding
            EXPECT_TRUE(!span.trusted || is_of_template) << made << ": " << text;
        }
    }
}

TEST(Provenance, RefusesRangesThatDoNotFitTheirText) {
    const auto compiled = ChatTemplate::compile("{{ s }}");
    ASSERT_TRUE(compiled.has_value());
    const Json variables = {{"s", "aé"}, {"n", 1}};
    const std::vector<SourcedText> bad[] = {
        {{"/s", {{0, 9, 1}}}},         {{"/s", {{2, 3, 1}}}},
        {{"/s", {{1, 0, 1}}}},         {{"/s", {{0, 1, 1}, {0, 1, 2}}}},
        {{"/n", {{0, 1, 1}}}},         {{"/missing", {{0, 1, 1}}}},
        {{"no pointer", {{0, 1, 1}}}}, {{"/s", {}}, {"/s", {}}},
    };
    for (const auto& sources : bad) {
        RenderOptions options;
        options.sources = sources;
        const auto rendered = compiled->render(variables, options);
        ASSERT_FALSE(rendered.has_value()) << sources.front().json_pointer;
        EXPECT_EQ(rendered.error().code, ErrorCode::InvalidArgument) << rendered.error().message;
    }
}

}  // namespace
}  // namespace belvedere::inference
