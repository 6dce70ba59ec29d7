// SPDX-License-Identifier: Apache-2.0
#include "tools/tool_input.h"

#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"

namespace belvedere::tools {
namespace {

struct SampleInput {
    std::string path;
    int64_t limit = 10;
    bool all = false;
    std::string mode = "fast";
};

class SampleTool : public TypedTool<SampleInput> {
  public:
    SampleTool()
        : TypedTool({{&SampleInput::path,
                      {.name = "file_path",
                       .description = "The file.",
                       .is_required = true,
                       .aliases = {"path"}}},
                     {&SampleInput::limit,
                      {.name = "limit", .description = "Most lines.", .min = 1, .max = 100}},
                     {&SampleInput::all, {.name = "all", .description = "Everything."}},
                     {&SampleInput::mode,
                      {.name = "mode", .description = "How.", .choices = {"fast", "slow"}}}}) {}

    [[nodiscard]] std::string name() const override { return "sample"; }

    [[nodiscard]] std::string description() const override { return "A sample."; }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Read; }

  protected:
    [[nodiscard]] std::string titleOf(const SampleInput& input) const override {
        return "Sample " + input.path;
    }

    [[nodiscard]] std::string subjectOf(const SampleInput& input) const override {
        return input.path;
    }

    Result<agent::ToolOutput> runTyped(const SampleInput& input,
                                       const agent::ToolContext&) override {
        agent::ToolOutput output;
        output.text = fmt::format("{}|{}|{}|{}", input.path, input.limit, input.all, input.mode);
        return output;
    }
};

std::string run(const Json& arguments) {
    SampleTool tool;
    return testing::textOf(testing::call(tool, arguments));
}

TEST(ToolInput, SchemaNamesTypesLimitsAndChoices) {
    const Json expected = Json::parse(R"({"type":"object","properties":{
        "file_path":{"type":"string","description":"The file."},
        "limit":{"type":"integer","description":"Most lines.","minimum":1,"maximum":100},
        "all":{"type":"boolean","description":"Everything."},
        "mode":{"type":"string","description":"How.","enum":["fast","slow"]}},
        "required":["file_path"]})");
    EXPECT_EQ(SampleTool().parameters(), expected);
}

TEST(ToolInput, DefaultsStayWhereNothingIsGiven) {
    EXPECT_EQ(run({{"file_path", "a"}}), "a|10|false|fast");
    EXPECT_EQ(run({{"file_path", "a"}, {"limit", nullptr}}), "a|10|false|fast");
}

TEST(ToolInput, ForgivesOtherSpellingsOfANameAndAliases) {
    for (const char* name : {"file_path", "filePath", "file-path", "FILEPATH", "path", "Path"}) {
        EXPECT_EQ(run({{name, "a"}}), "a|10|false|fast") << name;
    }
}

TEST(ToolInput, ForgivesNumbersAndBooleansAsText) {
    EXPECT_EQ(run({{"path", "a"}, {"limit", "25"}, {"all", "True"}}), "a|25|true|fast");
    EXPECT_EQ(run({{"path", "a"}, {"limit", 25.0}, {"all", 1}}), "a|25|true|fast");
    EXPECT_EQ(run({{"path", 7}, {"limit", " 3 "}, {"all", "no"}}), "7|3|false|fast");
}

TEST(ToolInput, ForgivesArgumentsInsideAString) {
    EXPECT_EQ(run(R"({"path": "a", "limit": 2})"), "a|2|false|fast");
    EXPECT_EQ(run("src/a.cpp"), "src/a.cpp|10|false|fast");
}

TEST(ToolInput, NamesTheFieldThatIsWrong) {
    EXPECT_EQ(run(Json::object()), "error: sample: file_path: missing");
    EXPECT_EQ(run(nullptr), "error: sample: file_path: missing");
    EXPECT_EQ(run({{"path", Json::array()}}), "error: sample: file_path: expected text, found []");
    EXPECT_EQ(run({{"path", "a"}, {"limit", "many"}}),
              "error: sample: limit: expected a whole number, found \"many\"");
    EXPECT_EQ(run({{"path", "a"}, {"limit", 2.5}}),
              "error: sample: limit: expected a whole number, found 2.5");
    EXPECT_EQ(run({{"path", "a"}, {"limit", 0}}), "error: sample: limit: 0 is outside 1 to 100");
    EXPECT_EQ(run({{"path", "a"}, {"limit", UINT64_MAX}}),
              "error: sample: limit: expected a whole number, found 18446744073709551615");
    EXPECT_EQ(run({{"path", "a"}, {"all", "perhaps"}}),
              "error: sample: all: expected true or false, found \"perhaps\"");
    EXPECT_EQ(run({{"path", "a"}, {"mode", "warp"}}),
              "error: sample: mode: expected one of fast, slow, found \"warp\"");
    EXPECT_EQ(run(Json::array({1})), "error: sample: arguments: expected an object, found [1]");
}

TEST(ToolInput, RefusesWhatItDoesNotKnowInsteadOfIgnoringIt) {
    EXPECT_EQ(
        run({{"path", "a"}, {"recursive", true}}),
        "error: sample: \"recursive\": no such argument; there are: file_path, limit, all, mode");
}

TEST(ToolInput, RefusesOneArgumentWithTwoValues) {
    EXPECT_EQ(run({{"path", "a"}, {"file_path", "b"}}),
              "error: sample: file_path: given twice with different values");
    EXPECT_EQ(run({{"path", "a"}, {"file_path", "a"}}), "a|10|false|fast");
}

TEST(ToolInput, TitleAndVerdictOfUnreadableArgumentsAreCautious) {
    const SampleTool tool;
    EXPECT_EQ(tool.title({{"path", "x"}}), "Sample x");
    EXPECT_EQ(tool.title(Json::array()), "sample");
    EXPECT_EQ(tool.defaultVerdict({{"path", "x"}}), agent::Verdict::Allow);
    EXPECT_EQ(tool.defaultVerdict(Json::array()), agent::Verdict::Ask);
}

}  // namespace
}  // namespace belvedere::tools
