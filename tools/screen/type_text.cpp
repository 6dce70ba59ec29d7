// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/type_text.h"

#include "tools/files/text.h"
#include "tools/screen/effect.h"
#include "tools/screen/keyboard.h"
#include "tools/tool_input.h"

namespace belvedere::tools {
namespace {

constexpr size_t kMaxCharacters = 5000;

struct TypeTextInput {
    std::string text;
};

Fields<TypeTextInput> typeTextFields() {
    return {{&TypeTextInput::text,
             {.name = "text",
              .description = "What to type; a line feed is the Return key.",
              .is_required = true,
              .aliases = {"content", "string", "value"}}}};
}

class TypeText : public TypedTool<TypeTextInput> {
  public:
    explicit TypeText(std::shared_ptr<ScreenLog> log)
        : TypedTool(typeTextFields()), log_(std::move(log)) {}

    [[nodiscard]] std::string name() const override { return "type_text"; }

    [[nodiscard]] std::string description() const override {
        return "Types text into the window that has the keyboard focus, any Unicode character "
               "whatever the keyboard "
               "layout, at most 5000. Reports that the keys were delivered and whether pixels of "
               "the screen changed; it "
               "can not know whether a program took them.";
    }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Execute; }

    [[nodiscard]] bool alwaysAsks() const override { return true; }

  protected:
    [[nodiscard]] std::string titleOf(const TypeTextInput& input) const override {
        const std::string text = showText(input.text).text;
        const std::string_view cut = cutText(text, 60);
        return fmt::format("Type \"{}{}\"", cut, cut.size() < text.size() ? "..." : "");
    }

    [[nodiscard]] std::string subjectOf(const TypeTextInput& input) const override {
        return showText(input.text).text;
    }

    [[nodiscard]] std::string previewOf(const TypeTextInput& input) const override {
        return showText(input.text).text;
    }

    Result<agent::ToolOutput> runTyped(const TypeTextInput& input,
                                       const agent::ToolContext& context) override;

  private:
    std::shared_ptr<ScreenLog> log_;  ///< it has its own lock
};

Result<agent::ToolOutput> TypeText::runTyped(const TypeTextInput& input,
                                             const agent::ToolContext& context) {
    const std::vector<KeySymbol> symbols = BV_TRY(keySymbolsOf(input.text));
    if (symbols.empty() || symbols.size() > kMaxCharacters) {
        return fail(ErrorCode::InvalidArgument,
                    "type_text: text: has {} characters; 1 to {} can be typed", symbols.size(),
                    kMaxCharacters);
    }
    const std::unique_ptr<XDisplay> display = BV_TRY(XDisplay::open());
    const auto action = [&]() -> Result<std::string> {
        const std::unique_ptr<Keyboard> keyboard = BV_TRY(Keyboard::open(*display));
        BV_TRY(keyboard->type(symbols, context.stop));
        return fmt::format("{} characters", symbols.size());
    };
    return actAndObserve(*display, log_->latest(context.session_id), action, context.stop);
}

}  // namespace

std::unique_ptr<agent::Tool> makeTypeText(std::shared_ptr<ScreenLog> log) {
    return std::make_unique<TypeText>(std::move(log));
}

}  // namespace belvedere::tools
