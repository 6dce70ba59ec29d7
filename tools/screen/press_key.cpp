// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/press_key.h"

#include "tools/files/text.h"
#include "tools/screen/effect.h"
#include "tools/screen/keyboard.h"
#include "tools/tool_input.h"

namespace belvedere::tools {
namespace {

constexpr int64_t kMaxPresses = 50;

struct PressKeyInput {
    std::string keys;
    int64_t count = 1;
};

Fields<PressKeyInput> pressKeyFields() {
    using In = PressKeyInput;
    return {{&In::keys,
             {.name = "keys",
              .description = "A key or a chord, e.g. Return, Escape, F5, ctrl+shift+t, alt+Tab.",
              .is_required = true,
              .aliases = {"key", "chord", "combo", "text"}}},
            {&In::count,
             {.name = "count",
              .description = "How many times. Default: 1.",
              .aliases = {"times", "repeat"},
              .min = 1,
              .max = kMaxPresses}}};
}

class PressKey : public TypedTool<PressKeyInput> {
  public:
    explicit PressKey(std::shared_ptr<ScreenLog> log)
        : TypedTool(pressKeyFields()), log_(std::move(log)) {}

    [[nodiscard]] std::string name() const override { return "press_key"; }

    [[nodiscard]] std::string description() const override {
        return "Presses and releases a key, or a chord of modifiers (ctrl, shift, alt, super, "
               "altgr) and a key, in the "
               "window that has the keyboard focus; up to 50 times. Keys have their X11 names. "
               "Reports that they were "
               "delivered and whether pixels of the screen changed.";
    }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Execute; }

    [[nodiscard]] bool alwaysAsks() const override { return true; }

  protected:
    [[nodiscard]] std::string titleOf(const PressKeyInput& input) const override {
        return fmt::format("Press {}{}", showText(input.keys).text,
                           input.count > 1 ? fmt::format(", {} times", input.count) : "");
    }

    [[nodiscard]] std::string subjectOf(const PressKeyInput& input) const override {
        return showText(input.keys).text;
    }

    Result<agent::ToolOutput> runTyped(const PressKeyInput& input,
                                       const agent::ToolContext& context) override;

  private:
    std::shared_ptr<ScreenLog> log_;  ///< it has its own lock
};

Result<agent::ToolOutput> PressKey::runTyped(const PressKeyInput& input,
                                             const agent::ToolContext& context) {
    const Chord chord = BV_TRY(parseChord(input.keys));
    const std::unique_ptr<XDisplay> display = BV_TRY(XDisplay::open());
    const auto action = [&]() -> Result<std::string> {
        const std::unique_ptr<Keyboard> keyboard = BV_TRY(Keyboard::open(*display));
        BV_TRY(keyboard->press(chord, static_cast<int>(input.count), context.stop));
        return fmt::format("{}{}", showText(input.keys).text,
                           input.count > 1 ? fmt::format(" x {}", input.count) : "");
    };
    return actAndObserve(*display, log_->latest(context.session_id), action, context.stop);
}

}  // namespace

std::unique_ptr<agent::Tool> makePressKey(std::shared_ptr<ScreenLog> log) {
    return std::make_unique<PressKey>(std::move(log));
}

}  // namespace belvedere::tools
