// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/click.h"

#include "tools/screen/display.h"
#include "tools/screen/effect.h"
#include "tools/tool_input.h"

namespace belvedere::tools {
namespace {

constexpr int64_t kMaxClicks = 3;

struct ClickInput {
    int64_t x = 0;
    int64_t y = 0;
    std::string button = "left";
    int64_t count = 1;
};

Fields<ClickInput> clickFields() {
    using In = ClickInput;
    return {{&In::x,
             {.name = "x",
              .description = "Pixel of the latest screenshot, from the left.",
              .is_required = true}},
            {&In::y,
             {.name = "y",
              .description = "Pixel of the latest screenshot, from the top.",
              .is_required = true}},
            {&In::button,
             {.name = "button",
              .description = "Mouse button. Default: left.",
              .choices = {"left", "middle", "right"}}},
            {&In::count,
             {.name = "count",
              .description = "2 for a double click. Default: 1.",
              .aliases = {"clicks", "n_clicks"},
              .min = 1,
              .max = kMaxClicks}}};
}

MouseButton buttonNamed(const std::string& name) {
    return name == "left" ? MouseButton::Left
                          : (name == "right" ? MouseButton::Right : MouseButton::Middle);
}

class Click : public TypedTool<ClickInput> {
  public:
    explicit Click(std::shared_ptr<ScreenLog> log)
        : TypedTool(clickFields()), log_(std::move(log)) {}

    [[nodiscard]] std::string name() const override { return "click"; }

    [[nodiscard]] std::string description() const override {
        return "Clicks with the mouse at a pixel of the latest screenshot of this session; needs "
               "one. Reports that the "
               "click was delivered and whether pixels of the screen changed; what it did is for "
               "the next screenshot to "
               "show.";
    }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Execute; }

    [[nodiscard]] bool alwaysAsks() const override { return true; }

  protected:
    [[nodiscard]] std::string titleOf(const ClickInput& input) const override {
        return fmt::format("Click {} at ({}, {}){}", input.button, input.x, input.y,
                           input.count > 1 ? fmt::format(", {} times", input.count) : "");
    }

    [[nodiscard]] std::string subjectOf(const ClickInput& input) const override {
        return fmt::format("{} {},{}", input.button, input.x, input.y);
    }

    Result<agent::ToolOutput> runTyped(const ClickInput& input,
                                       const agent::ToolContext& context) override;

  private:
    std::shared_ptr<ScreenLog> log_;  ///< shared with screenshot; it has its own lock
};

Result<agent::ToolOutput> Click::runTyped(const ClickInput& input,
                                          const agent::ToolContext& context) {
    const std::unique_ptr<XDisplay> display = BV_TRY(XDisplay::open());
    const std::optional<CoordinateRecord> record = log_->latest(context.session_id);
    if (!record) {
        return fail(ErrorCode::InvalidArgument,
                    "click: no screenshot was taken in this session: take one first");
    }
    const std::optional<PixelPoint> where = record->toScreen(input.x, input.y);
    if (!where) {
        return fail(ErrorCode::InvalidArgument,
                    "click: ({}, {}) is outside the screenshot of {}x{} pixels", input.x, input.y,
                    record->sent.width, record->sent.height);
    }
    const PixelSize now = BV_TRY(display->screenSize());
    if (!(now == record->physical)) {
        return fail(
            ErrorCode::InvalidArgument,
            "click: the screen is {}x{} now and was {}x{} in the screenshot: take a new one",
            now.width, now.height, record->physical.width, record->physical.height);
    }
    const auto action = [&]() -> Result<std::string> {
        const PixelPoint pointer = BV_TRY(
            display->click(*where, buttonNamed(input.button), static_cast<int>(input.count)));
        return fmt::format(
            "{} click{} at ({}, {}) of the screenshot, screen pixel ({}, {}); the pointer is at "
            "({}, {})",
            input.button, input.count > 1 ? fmt::format(" x {}", input.count) : "", input.x,
            input.y, where->x, where->y, pointer.x, pointer.y);
    };
    return actAndObserve(*display, record, action, context.stop);
}

}  // namespace

std::unique_ptr<agent::Tool> makeClick(std::shared_ptr<ScreenLog> log) {
    return std::make_unique<Click>(std::move(log));
}

}  // namespace belvedere::tools
