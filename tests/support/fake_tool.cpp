// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_tool.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace belvedere::testing {

namespace {

using agent::Json;
using agent::ToolContext;
using agent::ToolKind;
using agent::ToolOutput;

std::string textOf(const Json& arguments, const char* key) {
    return arguments.is_object() ? arguments.value(key, std::string()) : std::string();
}

ToolOutput output(std::string text) {
    ToolOutput made;
    made.text = std::move(text);
    return made;
}

class FakeTool : public agent::Tool {
  public:
    explicit FakeTool(FakeToolFacts facts) : facts_(std::move(facts)) {}

    [[nodiscard]] std::string name() const override { return facts_.name; }

    [[nodiscard]] std::string description() const override { return "For tests."; }

    [[nodiscard]] Json parameters() const override {
        return Json::parse(R"({"type": "object", "properties": {
            "text": {"type": "string"}, "n": {"type": "integer"}}})");
    }

    [[nodiscard]] ToolKind kind() const override { return facts_.kind; }

    [[nodiscard]] std::string title(const Json& arguments) const override {
        return facts_.name + " " + textOf(arguments, "text");
    }

    [[nodiscard]] std::string subject(const Json& arguments) const override {
        return textOf(arguments, "text");
    }

    [[nodiscard]] bool alwaysAsks() const override { return facts_.always_asks; }

    Result<ToolOutput> run(const Json& arguments, const ToolContext& context) override {
        return facts_.run ? facts_.run(arguments, context)
                          : Result<ToolOutput>(output(arguments.dump()));
    }

  private:
    FakeToolFacts facts_;
};

Result<ToolOutput> waitForStop(const Json& /*arguments*/, const ToolContext& context) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait(lock, context.stop, [] { return false; });
    return fail(ErrorCode::Cancelled, "cancelled");
}

}  // namespace

std::unique_ptr<agent::Tool> fakeTool(FakeToolFacts facts) {
    return std::make_unique<FakeTool>(std::move(facts));
}

std::shared_ptr<agent::ToolRegistry> fakeTools() {
    auto tools = std::make_shared<agent::ToolRegistry>();
    tools->add(fakeTool({"echo", ToolKind::Read, false,
                         [](const Json& arguments, const ToolContext&) -> Result<ToolOutput> {
                             return output(textOf(arguments, "text"));
                         }}));
    tools->add(fakeTool({"write_note", ToolKind::Write, false, nullptr}));
    tools->add(fakeTool({"run_command", ToolKind::Execute, true, nullptr}));
    tools->add(fakeTool({"broken", ToolKind::Read, false,
                         [](const Json&, const ToolContext&) -> Result<ToolOutput> {
                             return fail(ErrorCode::NotFound, "no such thing");
                         }}));
    tools->add(fakeTool({"wait_for_stop", ToolKind::Read, false, waitForStop}));
    tools->add(fakeTool({"noisy", ToolKind::Read, false,
                         [](const Json&, const ToolContext& context) -> Result<ToolOutput> {
                             context.on_output("first\n");
                             context.on_output("second\n");
                             return output("first\nsecond\n");
                         }}));
    return tools;
}

}  // namespace belvedere::testing
