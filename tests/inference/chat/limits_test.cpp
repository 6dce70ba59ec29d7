// SPDX-License-Identifier: Apache-2.0
// A template is foreign code: whatever it does ends in an error, soon and within its memory.

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inference/chat/template.h"

namespace belvedere::inference {
namespace {

using Json = nlohmann::ordered_json;

TEST(TemplateLimits, EveryBombIsAClearError) {
    const char* bombs[] = {
        "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% "
        "endfor %}{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(x) %}{{ f(x ~ x) }}{% endmacro %}{{ f('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') }}",
        "{{ 'x' * 9000000000000 }}",
        "{{ [[1] * 100000] * 100000 * 100000 }}",
        "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(99999) %}{% set ns.s = ns.s + "
        "ns.s %}{% endfor %}",
        "{% set ns = namespace(s='x') %}{% for i in range(90000) %}{% set ns.s = ns.s ~ "
        "'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy' %}{% for j in range(90000) %}{{ ns.s }}{% endfor "
        "%}{% endfor %}",
        "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor "
        "%}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(300) %}{% set ns.l = [ns.l, ns.l] %}{% "
        "endfor %}{{ ns.l }}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(300) %}{% set ns.l = [ns.l, ns.l] %}{% "
        "endfor %}{{ ns.l | tojson }}",
        "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(300) %}{% set ns.a = [ns.a, ns.a] "
        "%}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
        "{% set ns = namespace(t=(1,)) %}{% for i in range(300) %}{% set ns.t = (ns.t, ns.t) %}{% "
        "endfor %}{{ {ns.t: 1} }}",
        "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
        "{{ (('a' * 3000000).split('a') | length) ~ (('a,' * 9000000).split(',')) }}",
        "{{ ('b' * 1000000) | join('a' * 1000000) }}",
        "{{ '%999999999s' % 'x' }}",
        "{{ '{:>999999999}'.format('x') }}",
        "{{ 'x'.center(999999999999) }}",
        "{{ ('a\n' * 1000000) | indent(100000) }}",
        "{% set ns = namespace(n=namespace(a=1)) %}{% for i in range(99999) %}{% for j in "
        "range(99999) %}{% set ns.n = namespace(a=ns.n) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(m=none) %}{% macro d() %}{% macro e() %}{{ ns.m() if ns.m }}{% "
        "endmacro %}{% set ns.m = e %}{% endmacro %}{% for i in range(9999) %}{{ d() }}{% endfor "
        "%}{{ ns.m() }}",
        "{% set s = 'a' * 10000000 %}{% for i in range(99999) %}{% for j in range(99999) %}{% if s "
        "== s ~ 'b' %}{% endif %}{{ s.count('b') }}{% endfor %}{% endfor %}",
        "{% set s = ' ' * 10000000 %}{% for i in range(99999) %}{% for j in range(99999) %}{{ s | "
        "trim }}{% endfor %}{% endfor %}",
        "{% set s = 'a' * 8000000 %}{% set t = 'a' * 4000000 ~ 'b' %}{% for i in range(99999) %}{{ "
        "t in s }}{{ "
        "s.rfind(t) }}{% endfor %}",
        "{% set s = 'a' * 8000000 %}{{ s.strip(s) }}{% for i in range(99999) %}{{ s.strip('b' * "
        "8000000) }}{% endfor %}",
        "{% set l = range(99999) | list %}{% for i in l %}{% for j in l %}{% if -1 in l %}{% endif "
        "%}{% endfor %}{% endfor %}",
    };
    TemplateLimits limits;  // an eighth of the defaults, so that the test is short
    limits.max_steps /= 8;
    limits.max_value_bytes /= 8;
    limits.max_output_bytes /= 8;
    for (const char* source : bombs) {
        const auto compiled = ChatTemplate::compile(source, limits);
        ASSERT_TRUE(compiled.has_value()) << source << ": " << compiled.error().message;
        const auto rendered = compiled->render(Json::object());
        ASSERT_FALSE(rendered.has_value()) << source;
        EXPECT_EQ(rendered.error().code, ErrorCode::Corrupt)
            << source << ": " << rendered.error().message;
    }
}

[[nodiscard]] std::string repeated(const std::string& text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) {
        out += text;
    }
    return out;
}

TEST(TemplateLimits, SourceThatNestsTooDeepIsRefused) {
    constexpr int kMany = 50'000;
    const std::string sources[] = {
        "{{ " + repeated("(", kMany) + "1" + repeated(")", kMany) + " }}",
        "{{ " + repeated("[", kMany) + repeated("]", kMany) + " }}",
        "{{ 1" + repeated("+1", kMany) + " }}",
        "{{ x" + repeated(".a", kMany) + " }}",
        "{{ x" + repeated("|list", kMany) + " }}",
        "{{ " + repeated("-", kMany) + "1 }}",
        "{{ " + repeated("not ", kMany) + "1 }}",
        "{{ 1" + repeated(" if 1 else 1", kMany) + " }}",
        repeated("{% if 1 %}", kMany),
        repeated("{% for x in y %}", kMany),
        repeated("{% macro f() %}", kMany),
        "{% set " + repeated("(", kMany) + "x" + repeated(")", kMany) + " = 1 %}",
        "{{ f" + repeated("(f", kMany) + repeated(")", kMany) + " }}",
    };
    for (const std::string& source : sources) {
        const auto compiled = ChatTemplate::compile(source);
        ASSERT_FALSE(compiled.has_value()) << source.substr(0, 40);
        EXPECT_EQ(compiled.error().code, ErrorCode::Corrupt) << compiled.error().message;
    }
}

/// What was parsed before the fault is given back: the leak check of the address sanitizer sees to
/// it.
TEST(TemplateLimits, AnAssignmentWithoutAValueIsAnError) {
    for (const char* source : {"{% set (a, b) = ( %}", "{% set ns.a = %}", "{% set a = [b, %}"}) {
        const auto compiled = ChatTemplate::compile(source);
        ASSERT_FALSE(compiled.has_value()) << source;
        EXPECT_EQ(compiled.error().code, ErrorCode::Corrupt);
    }
}

TEST(TemplateLimits, OutputAndStepsHoldToWhatTheCallerSays) {
    TemplateLimits limits;
    limits.max_output_bytes = 10;
    const auto wide = ChatTemplate::compile("{% for i in range(11) %}x{% endfor %}", limits);
    ASSERT_FALSE(wide->render(Json::object()).has_value());
    const auto narrow = ChatTemplate::compile("{% for i in range(10) %}x{% endfor %}", limits);
    EXPECT_TRUE(narrow->render(Json::object()).has_value());

    limits = {};
    limits.max_steps = 100;
    const auto slow = ChatTemplate::compile("{% for i in range(200) %}x{% endfor %}", limits);
    const auto rendered = slow->render(Json::object());
    ASSERT_FALSE(rendered.has_value());
    EXPECT_EQ(rendered.error().message,
              "chat template: line 1: the template runs longer than 100 steps");
}

TEST(TemplateLimits, LongConversationsStayWithinTheDefaults) {
    Json messages = Json::array();
    for (int i = 0; i < 1000; ++i) {
        messages.push_back(
            {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(2000, 'x')}});
    }
    // For each message a look at all that follow, as some published templates do.
    const auto compiled = ChatTemplate::compile(
        "{% for m in messages %}{% set ns = namespace(last=true) %}{% for n in "
        "messages[loop.index:] %}"
        "{% if n.role == 'user' %}{% set ns.last = false %}{% endif %}{% endfor %}"
        "{{ m.role + ': ' + m.content | trim }}{% endfor %}");
    ASSERT_TRUE(compiled.has_value());
    const auto rendered = compiled->render({{"messages", messages}});
    EXPECT_TRUE(rendered.has_value()) << rendered.error().message;
}

}  // namespace
}  // namespace belvedere::inference
