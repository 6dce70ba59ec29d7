// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/render_command.h"

#include <charconv>
#include <optional>
#include <utility>

#include "inference/chat/strict_json.h"
#include "inference/chat/template.h"

namespace belvedere::inference {
namespace {

using Json = nlohmann::ordered_json;

/// "YYYY-MM-DD HH:MM:SS"
[[nodiscard]] std::optional<std::chrono::sys_seconds> parseTime(std::string_view text) {
    constexpr std::string_view kForm = "dddd-dd-dd dd:dd:dd";
    if (text.size() != kForm.size()) {
        return std::nullopt;
    }
    for (size_t i = 0; i < kForm.size(); ++i) {
        const bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (kForm[i] == 'd' ? !is_digit : text[i] != kForm[i]) {
            return std::nullopt;
        }
    }
    const auto number = [text](size_t at, size_t n) {
        int value = 0;
        std::from_chars(text.data() + at, text.data() + at + n, value);
        return value;
    };
    const std::chrono::year_month_day date(std::chrono::year(number(0, 4)),
                                           std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                           std::chrono::day(static_cast<unsigned>(number(8, 2))));
    const int hour = number(11, 2);
    const int minute = number(14, 2);
    const int second = number(17, 2);
    if (!date.ok() || hour > 23 || minute > 59 || second > 59) {
        return std::nullopt;
    }
    return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
           std::chrono::seconds(second);
}

[[nodiscard]] Result<void> expectType(const Json& input,
                                      const char* name,
                                      bool (*fits)(const Json&),
                                      const char* wanted) {
    const auto found = input.find(name);
    if (found != input.end() && !fits(*found)) {
        return fail(ErrorCode::InvalidArgument, "/{}: expected {}, found {}", name, wanted,
                    found->type_name());
    }
    return {};
}

[[nodiscard]] Result<void> checkInput(const Json& input) {
    if (!input.is_object()) {
        return fail(ErrorCode::InvalidArgument, "expected one object, found {}", input.type_name());
    }
    if (!input.contains("messages")) {
        return fail(ErrorCode::InvalidArgument, "/messages is missing");
    }
    const auto is_list = [](const Json& json) { return json.is_array(); };
    const auto is_list_or_null = [](const Json& json) { return json.is_array() || json.is_null(); };
    const auto is_boolean = [](const Json& json) { return json.is_boolean(); };
    const auto is_text = [](const Json& json) { return json.is_string(); };
    BV_TRY(expectType(input, "messages", is_list, "a list"));
    BV_TRY(expectType(input, "tools", is_list_or_null, "a list"));
    BV_TRY(expectType(input, "add_generation_prompt", is_boolean, "true or false"));
    BV_TRY(expectType(input, "bos_token", is_text, "text"));
    BV_TRY(expectType(input, "eos_token", is_text, "text"));
    BV_TRY(expectType(input, "now", is_text, "text"));
    for (size_t i = 0; i < input["messages"].size(); ++i) {
        if (!input["messages"][i].is_object()) {
            return fail(ErrorCode::InvalidArgument, "/messages/{}: expected an object, found {}", i,
                        input["messages"][i].type_name());
        }
    }
    return {};
}

}  // namespace

Result<std::string> renderFromJson(std::string_view template_source, std::string_view input_json) {
    Result<Json> parsed = parseStrictJson(input_json);
    if (!parsed.has_value()) {
        return failWithContext(std::move(parsed).error(), "render input");
    }
    Json& input = *parsed;
    if (Result<void> checked = checkInput(input); !checked.has_value()) {
        return failWithContext(std::move(checked).error(), "render input");
    }
    RenderOptions options;
    if (input.contains("now")) {
        const auto& text = input["now"].get_ref<const std::string&>();
        options.now = parseTime(text);
        if (!options.now.has_value()) {
            return fail(ErrorCode::InvalidArgument,
                        "render input: /now: '{}' is not YYYY-MM-DD HH:MM:SS", text);
        }
        input.erase("now");
    }
    if (!input.contains("add_generation_prompt")) {
        input["add_generation_prompt"] = true;
    }
    const ChatTemplate chat_template = BV_TRY(ChatTemplate::compile(template_source));
    return BV_TRY(chat_template.render(input, options)).text;
}

}  // namespace belvedere::inference
