// SPDX-License-Identifier: Apache-2.0
#include "tools/all_tools.h"

#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"
#include "tools/screen/click.h"
#include "tools/screen/press_key.h"
#include "tools/screen/screenshot.h"
#include "tools/screen/type_text.h"

namespace belvedere::tools {
namespace {

using testing::Json;

std::set<std::string> names(const agent::ToolRegistry& registry) {
    std::set<std::string> result;
    for (const auto& tool : registry.all()) {
        result.insert(tool->name());
    }
    return result;
}

TEST(AllTools, ListsTheFileToolsAndTheShell) {
    const belvedere::testing::TempDir dir;
    const auto registry = allTools(testing::openWorkspace(dir), {.screen = false});
    EXPECT_EQ(names(*registry),
              (std::set<std::string>{"edit_file", "list_files", "read_file", "run_command",
                                     "search_text", "write_file"}));
}

TEST(AllTools, OffersTheScreenOnlyWhereThereIsADisplay) {
    const belvedere::testing::TempDir dir;
    unsetenv("DISPLAY");
    EXPECT_EQ(allTools(testing::openWorkspace(dir), {})->all().size(), 6U);
    setenv("DISPLAY", ":0", 1);
    const auto registry = allTools(testing::openWorkspace(dir), {});
    for (const char* name : {"screenshot", "click", "type_text", "press_key"}) {
        const agent::Tool* tool = registry->find(name);
        ASSERT_NE(tool, nullptr) << name;
        EXPECT_TRUE(tool->alwaysAsks()) << name;
        EXPECT_EQ(tool->defaultVerdict(Json::object()), agent::Verdict::Ask) << name;
    }
    unsetenv("DISPLAY");
}

TEST(AllTools, ToolsShareWhatWasRead) {
    const belvedere::testing::TempDir dir;
    dir.write("a.txt", "one\n");
    const auto registry = allTools(testing::openWorkspace(dir), {.screen = false});
    (void)testing::call(*registry->find("read_file"), {{"path", "a.txt"}});
    EXPECT_EQ(testing::textOf(
                  testing::call(*registry->find("edit_file"),
                                {{"path", "a.txt"}, {"old_text", "one"}, {"new_text", "two"}})),
              "edited a.txt at line 1\n");
}

TEST(AllTools, SchemasAreObjectsWithDescriptions) {
    const belvedere::testing::TempDir dir;
    setenv("DISPLAY", ":0", 1);
    const auto registry = allTools(testing::openWorkspace(dir), {});
    unsetenv("DISPLAY");
    EXPECT_EQ(registry->all().size(), 10U);
    for (const auto& tool : registry->all()) {
        const Json schema = tool->parameters();
        EXPECT_EQ(schema["type"], "object") << tool->name();
        EXPECT_GT(tool->description().size(), 50U) << tool->name();
        for (const auto& [name, property] : schema["properties"].items()) {
            EXPECT_FALSE(property["description"].get<std::string>().empty())
                << tool->name() << "." << name;
        }
    }
}

TEST(ScreenTools, SayWhatIsMissingWithoutADisplay) {
    const auto log = std::make_shared<ScreenLog>();
    const std::string start = "error: no display: DISPLAY is not set; ";
    unsetenv("DISPLAY");
    unsetenv("WAYLAND_DISPLAY");
    const std::string none = start + "start the program in a graphical X11 session, or set DISPLAY";
    EXPECT_EQ(testing::textOf(testing::call(*makeScreenshot(log), Json::object())), none);
    EXPECT_EQ(testing::textOf(testing::call(*makeClick(log), {{"x", 1}, {"y", 1}})), none);
    EXPECT_EQ(testing::textOf(testing::call(*makeTypeText(log), {{"text", "a"}})), none);
    EXPECT_EQ(testing::textOf(testing::call(*makePressKey(log), {{"keys", "Return"}})), none);
    setenv("WAYLAND_DISPLAY", "wayland-0", 1);
    EXPECT_EQ(
        testing::textOf(testing::call(*makeScreenshot(log), Json::object())),
        start +
            "this is a Wayland session without X11: start XWayland, or log in to an X11 session");
    unsetenv("WAYLAND_DISPLAY");
    setenv("DISPLAY", ":987", 1);
    EXPECT_EQ(testing::textOf(testing::call(*makeScreenshot(log), Json::object())),
              "error: no display: the X server :987 can not be reached; check DISPLAY and the "
              "permission to connect");
    unsetenv("DISPLAY");
}

}  // namespace
}  // namespace belvedere::tools
