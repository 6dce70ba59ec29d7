// SPDX-License-Identifier: Apache-2.0
// Tool calls in streamed text: the table of cases of each format, and the same result wherever the
// stream is cut.

#include <gtest/gtest.h>

#include "agent/tool_calls/parser.h"

namespace belvedere::testing {
namespace {

using agent::Json;
using agent::ParserEvent;
using agent::ParserEvents;
using agent::ToolCallFormat;

const std::string kMarker = "]<]minimax[>[";

std::vector<agent::ToolSpec> tools() {
    return {{"get_weather", "", Json::parse(R"({"type": "object", "properties": {
                "city": {"type": "string"}, "days": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}}, "o": {"type": "object"}}})")},
            {"other", "", Json::parse(R"({"type": "object", "properties": {}})")}};
}

ParserEvents parse(ToolCallFormat format,
                   const std::vector<std::string>& chunks,
                   agent::StreamEnd end = agent::StreamEnd::Complete,
                   bool starts_in_thinking = false) {
    agent::ParserOptions options;
    options.format = format;
    options.tools = tools();
    options.starts_in_thinking = starts_in_thinking;
    options.has_minimax_thinking = format == ToolCallFormat::MinimaxM3;
    const auto parser = agent::makeToolCallParser(options);
    ParserEvents events;
    for (const std::string& chunk : chunks) {
        parser->feed(chunk, events);
    }
    parser->finish(end, events);
    return events;
}

/// "text:...", "think:...", "call:name{...}", "bad:name" - text joined, call starts left out.
std::string summary(const ParserEvents& events) {
    std::string text;
    std::string out;
    const auto flush = [&] {
        out += text.empty() ? "" : text + "|";
        text.clear();
    };
    ParserEvent::Kind last = ParserEvent::Kind::CallStarted;
    for (const ParserEvent& event : events) {
        const bool is_text =
            event.kind == ParserEvent::Kind::Text || event.kind == ParserEvent::Kind::Thinking;
        if (is_text && event.kind == last) {
            text += event.text;
            continue;
        }
        flush();
        last = event.kind;
        if (is_text) {
            text = (event.kind == ParserEvent::Kind::Text ? "text:" : "think:") + event.text;
        } else if (event.kind == ParserEvent::Kind::CallFinished) {
            out += "call:" + event.call.name + event.call.arguments.dump() + "|";
        } else if (event.kind == ParserEvent::Kind::MalformedCall) {
            out += "bad:" + event.call.name + "|";
        }
    }
    flush();
    return out;
}

std::string m3(const std::string& arguments, const std::string& name = "get_weather") {
    return kMarker + "<tool_call>\n" + kMarker + "<invoke name=\"" + name + "\">" + arguments +
           kMarker + "</invoke>\n" + kMarker + "</tool_call>";
}

std::string m3Value(const std::string& key, const std::string& value) {
    return kMarker + "<" + key + ">" + value + kMarker + "</" + key + ">";
}

struct Case {
    const char* name;
    ToolCallFormat format;
    std::string output;
    std::string expected;
};

std::vector<Case> cases() {
    using enum ToolCallFormat;
    return {
        // The table T1 to T15 of MiniMax-M3's format.
        {"T1", MinimaxM3, m3(m3Value("city", "A & <B>")), R"(call:get_weather{"city":"A & <B>"}|)"},
        {"T2", MinimaxM3, m3(m3Value("days", " 3 ")), R"(call:get_weather{"days":3}|)"},
        {"T2Word", MinimaxM3, m3(m3Value("days", "three")), R"(call:get_weather{"days":"three"}|)"},
        {"T3", MinimaxM3, m3(m3Value("tags", m3Value("item", "a"))),
         R"(call:get_weather{"tags":["a"]}|)"},
        {"T4", MinimaxM3, m3(m3Value("tags", R"(["a","b"])")),
         R"(call:get_weather{"tags":["a","b"]}|)"},
        {"T5", MinimaxM3, m3(m3Value("city", "x</city>y")),
         R"(call:get_weather{"city":"x</city>y"}|)"},
        {"T6", MinimaxM3, m3(m3Value("city", "\n<html><tool_call></html>\n")),
         R"(call:get_weather{"city":"\n<html><tool_call></html>\n"}|)"},
        {"T7", MinimaxM3,
         kMarker + "<tool_call>\n" + kMarker + "<invoke name=\"other\">" + kMarker + "</invoke>\n" +
             kMarker + "<invoke name=\"other\">" + kMarker + "</invoke>\n" + kMarker +
             "</tool_call>",
         "call:other{}|call:other{}|"},
        {"T10", MinimaxM3, m3("", "fly"), "call:fly{}|"},
        {"T11", MinimaxM3, "<mm:think>still thinking" + m3("", "other"),
         "think:still thinking|call:other{}|"},
        {"T12", MinimaxM3, "Use <tool_call> for calls.", "text:Use <tool_call> for calls.|"},
        {"ThinkOnlyClosed", MinimaxM3, "</mm:think>Hello", "text:Hello|"},
        {"Nested", MinimaxM3, m3(m3Value("o", m3Value("a", "1") + m3Value("-b", "x"))),
         R"(call:get_weather{"o":{"a":"1","-b":"x"}}|)"},
        // Hermes and what models make of it.
        {"Hermes", Hermes, "Hi <tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>",
         "text:Hi |call:other{}|"},
        {"HermesArgumentsAsText", Hermes,
         R"(<tool_call>{"name": "get_weather", "arguments": "{\"city\": \"B\"}"}</tool_call>)",
         R"(call:get_weather{"city":"B"}|)"},
        {"HermesParametersKey", Hermes,
         R"(<tool_call>{"name": "get_weather", "parameters": {"days": 2}}</tool_call>)",
         R"(call:get_weather{"days":2}|)"},
        {"HermesTrailingComma", Hermes,
         R"(<tool_call>{"name": "get_weather", "arguments": {"days": 2,},}</tool_call>)",
         R"(call:get_weather{"days":2}|)"},
        {"HermesSingleQuotes", Hermes,
         R"(<tool_call>{'name': 'get_weather', 'arguments': {'city': 'O"K'}}</tool_call>)",
         R"(call:get_weather{"city":"O\"K"}|)"},
        {"HermesPrefix", Hermes,
         R"(<tool_call>{"name": "functions.other", "arguments": {}}</tool_call>)", "call:other{}|"},
        {"HermesMissingCloser", Hermes, R"(<tool_call>{"name": "other", "arguments": {}})",
         "call:other{}|"},
        {"HermesMarkerInText", Hermes, "a <tool_cal l> b </tool", "text:a <tool_cal l> b </tool|"},
        {"QwenXml", QwenXml,
         "<tool_call>\n<function=get_weather>\n<parameter=city>\n "
         "a\n</parameter>\n<parameter=days>\n"
         "4\n</parameter>\n</function>\n</tool_call>",
         R"(call:get_weather{"city":" a","days":4}|)"},
        {"LlamaJson", LlamaJson, R"({"name": "get_weather", "parameters": {"days": 1}})",
         R"(call:get_weather{"days":1}|)"},
        {"LlamaText", LlamaJson, "{not a call} at all", "text:{not a call} at all|"},
        {"MinimaxM2", MinimaxM2,
         "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">x "
         "</parameter>\n<parameter name=\"days\">5</parameter>\n</invoke>\n</minimax:tool_call>",
         R"(call:get_weather{"city":"x ","days":5}|)"},
        {"None", None, "<think>a</think>b <tool_call>{}</tool_call>",
         "think:a|text:b <tool_call>{}</tool_call>|"},
    };
}

class ToolCallTest : public ::testing::TestWithParam<Case> {};

TEST_P(ToolCallTest, IsReadAsExpected) {
    EXPECT_EQ(summary(parse(GetParam().format, {GetParam().output})), GetParam().expected);
}

TEST_P(ToolCallTest, DoesNotDependOnWhereTheStreamIsCut) {
    const std::string& output = GetParam().output;
    for (size_t cut = 0; cut <= output.size(); ++cut) {
        const auto events = parse(GetParam().format, {output.substr(0, cut), output.substr(cut)});
        ASSERT_EQ(summary(events), GetParam().expected) << "cut at " << cut;
    }
    std::vector<std::string> bytes;
    for (const char c : output) {
        bytes.emplace_back(1, c);
    }
    EXPECT_EQ(summary(parse(GetParam().format, bytes)), GetParam().expected);
}

/// T8: a call that a limit cuts anywhere is never complete before its last value is.
TEST_P(ToolCallTest, IsNotRunWhenItIsCut) {
    const std::string& output = GetParam().output;
    for (size_t length = 0; length < output.size(); ++length) {
        const auto events =
            parse(GetParam().format, {output.substr(0, length)}, agent::StreamEnd::Cut);
        for (const ParserEvent& event : events) {
            if (event.kind == ParserEvent::Kind::CallFinished) {
                // What is complete is complete as in the whole.
                const std::string call =
                    "call:" + event.call.name + event.call.arguments.dump() + "|";
                EXPECT_NE(GetParam().expected.find(call), std::string::npos)
                    << "cut to " << length << " of " << output.size() << ": " << call;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(,
                         ToolCallTest,
                         ::testing::ValuesIn(cases()),
                         [](const ::testing::TestParamInfo<Case>& entry) {
                             return std::string(entry.param.name);
                         });

TEST(ToolCallLimits, AHugeCallIsMalformedAndDoesNotGrowFurther) {
    const std::string open = "<tool_call>{\"name\": \"other\", \"arguments\": {\"a\": \"";
    std::vector<std::string> chunks = {open};
    const std::string megabyte(size_t{1} << 20, 'x');
    for (int i = 0; i < 10; ++i) {
        chunks.push_back(megabyte);
    }
    chunks.push_back("\"}}</tool_call>");
    const auto events = parse(ToolCallFormat::Hermes, chunks);
    size_t n_bytes = 0;
    bool is_malformed = false;
    for (const ParserEvent& event : events) {
        EXPECT_NE(event.kind, ParserEvent::Kind::CallFinished);
        is_malformed |= event.kind == ParserEvent::Kind::MalformedCall;
        n_bytes += event.kind == ParserEvent::Kind::MalformedCall ? event.text.size() : 0;
    }
    EXPECT_TRUE(is_malformed);
    EXPECT_LT(n_bytes, size_t{1} << 20);
}

TEST(ToolCallLimits, DeepNestingIsMalformed) {
    const std::string deep(100'000, '[');
    const auto events =
        parse(ToolCallFormat::Hermes, {"<tool_call>{\"name\": \"other\", \"arguments\": " + deep});
    for (const ParserEvent& event : events) {
        EXPECT_NE(event.kind, ParserEvent::Kind::CallFinished);
    }
}

}  // namespace
}  // namespace belvedere::testing
