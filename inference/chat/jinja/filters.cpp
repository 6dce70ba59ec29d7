// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "inference/chat/jinja/format.h"
#include "inference/chat/jinja/html.h"
#include "inference/chat/jinja/methods.h"
#include "inference/chat/jinja/operators.h"
#include "inference/chat/jinja/python_text.h"
#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

using Bound = std::vector<const Value*>;

[[nodiscard]] bool isGiven(const Value* value) {
    return value != nullptr && !is<NoneType>(*value);
}

[[nodiscard]] Result<Value> defaultFilter(Runtime&,
                                          const Value& input,
                                          const CallArguments& arguments) {
    const Bound bound =
        BV_TRY(bindArguments("default", arguments, {"default_value", "boolean"}, 0));
    const bool takes_false = bound[1] != nullptr && isTrue(*bound[1]);
    if (is<Undefined>(input) || (takes_false && !isTrue(input))) {
        return bound[0] != nullptr ? *bound[0] : Value(Text());
    }
    return input;
}

[[nodiscard]] Result<Value> stringFilter(Runtime& runtime,
                                         const Value& input,
                                         const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("string", arguments, {}, 0));
    return Value(BV_TRY(toText(runtime, input)));
}

template <std::string (*kChange)(std::string_view)>
[[nodiscard]] Result<Value> caseFilter(Runtime& runtime,
                                       const Value& input,
                                       const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("a filter that changes case", arguments, {}, 0));
    return mapText(runtime, BV_TRY(toText(runtime, input)), kChange);
}

/// Words begin after white space and after - ( { [ <, unlike those of str.title.
[[nodiscard]] std::string toTitleWords(std::string_view bytes) {
    std::string out;
    std::string word;
    bool after_separator = true;
    const auto flush = [&] {
        if (word.empty()) {
            return;
        }
        size_t first = 0;
        (void)nextPoint(word, first);
        out += toUpper(std::string_view(word).substr(0, first)) +
               toLower(std::string_view(word).substr(first));
        word.clear();
    };
    for (size_t at = 0; at < bytes.size();) {
        const size_t begin = at;
        const char32_t point = nextPoint(bytes, at);
        const bool separates =
            isSpace(point) ||
            (point < 0x80 &&
             std::string_view("-({[<").find(static_cast<char>(point)) != std::string_view::npos);
        if (separates != after_separator) {
            flush();
            after_separator = separates;
        }
        word += bytes.substr(begin, at - begin);
    }
    flush();
    return out;
}

[[nodiscard]] Result<Value> trimFilter(Runtime& runtime,
                                       const Value& input,
                                       const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("trim", arguments, {"chars"}, 0));
    const Text text = BV_TRY(toText(runtime, input));
    if (!isGiven(bound[0])) {
        return Value(trimText(runtime, text, nullptr, TrimSide::Both));
    }
    const Text characters = BV_TRY(requireText(*bound[0], "the argument of trim"));
    return Value(trimText(runtime, text, &characters, TrimSide::Both));
}

[[nodiscard]] Result<Value> replaceFilter(Runtime& runtime,
                                          const Value& input,
                                          const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("replace", arguments, {"old", "new", "count"}, 2));
    const Text text = markSafe(runtime, BV_TRY(toText(runtime, input)), false);
    const Text from = BV_TRY(toText(runtime, *bound[0]));
    const Text to = markSafe(runtime, BV_TRY(toText(runtime, *bound[1])), false);
    const int64_t count =
        isGiven(bound[2]) ? BV_TRY(requireInteger(*bound[2], "the count of replace")) : -1;
    return Value(BV_TRY(replaceText(runtime, text, from, to, count)));
}

[[nodiscard]] Result<Value> indentFilter(Runtime& runtime,
                                         const Value& input,
                                         const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("indent", arguments, {"width", "first", "blank"}, 0));
    const Text text = BV_TRY(requireText(input, "the input of indent"));
    Text indentation = *asText(runtime.heap.text("    ", kTemplateOrigin));
    if (bound[0] != nullptr && asText(*bound[0]) != nullptr) {
        indentation = *asText(*bound[0]);
    } else if (bound[0] != nullptr) {
        const int64_t width = BV_TRY(requireInteger(*bound[0], "the width of indent"));
        const Value space = runtime.heap.text(" ", kTemplateOrigin);
        indentation = *asText(BV_TRY(applyBinary(runtime, BinaryOperator::Multiply, space, width)));
    }
    const bool indents_first = bound[1] != nullptr && isTrue(*bound[1]);
    const bool indents_blank = bound[2] != nullptr && isTrue(*bound[2]);
    const Text newline = *asText(runtime.heap.text("\n", kTemplateOrigin));
    const Value whole = BV_TRY(applyBinary(runtime, BinaryOperator::Add, text, Value(newline)));
    const Value lines = BV_TRY(callMethod(runtime, whole, "splitlines", {}));
    std::vector<Text> indented;
    for (const Value& line : asSequence(lines)->items) {
        const bool is_first = indented.empty();
        const bool wants = is_first ? indents_first : (indents_blank || !asText(line)->empty());
        TextBuilder builder(&runtime.meter);
        BV_TRY(runtime.reserve(indentation.bytes().size() + asText(line)->bytes().size()));
        builder.append(wants ? indentation : Text());
        builder.append(*asText(line));
        indented.push_back(builder.finish());
    }
    return Value(BV_TRY(joinTexts(runtime, newline, indented)));
}

/// float(text): white space around it and single underscores between digits are allowed.
[[nodiscard]] std::optional<double> parseFloat(Runtime& runtime, const Text& text) {
    const Text trimmed = trimText(runtime, text, nullptr, TrimSide::Both);
    std::string digits(trimmed.bytes());
    for (size_t i = 0; i < digits.size(); ++i) {
        const auto isDigitAt = [&](size_t k) {
            return k < digits.size() && digits[k] >= '0' && digits[k] <= '9';
        };
        if (digits[i] == '_' && (i == 0 || !isDigitAt(i - 1) || !isDigitAt(i + 1))) {
            return std::nullopt;
        }
    }
    std::erase(digits, '_');
    const bool has_plus = digits.starts_with('+') && !digits.starts_with("+-");
    const char* begin = digits.data() + (has_plus ? 1 : 0);
    const char* end = digits.data() + digits.size();
    double real = 0.0;
    const auto parsed = std::from_chars(begin, end, real);
    if (parsed.ptr != end || begin == end || digits.find('(') != std::string::npos) {
        return std::nullopt;
    }
    if (parsed.ec == std::errc::result_out_of_range) {
        real = std::strtod(digits.c_str(), nullptr);  // Python gives 0 or infinity
    } else if (parsed.ec != std::errc()) {
        return std::nullopt;
    }
    return real;
}

/// int(text) for base 10; nullopt when it is no whole number, an error when it does not fit.
[[nodiscard]] Result<std::optional<int64_t>> parseInteger(Runtime& runtime, const Text& text) {
    const Text trimmed = trimText(runtime, text, nullptr, TrimSide::Both);
    const std::string_view bytes = trimmed.bytes();
    const size_t n_sign = bytes.starts_with('-') || bytes.starts_with('+') ? 1 : 0;
    std::string digits = bytes.starts_with('-') ? "-" : "";
    for (size_t i = n_sign; i < bytes.size(); ++i) {
        const auto isDigitAt = [&](size_t k) {
            return k < bytes.size() && bytes[k] >= '0' && bytes[k] <= '9';
        };
        if (isDigitAt(i)) {
            digits.push_back(bytes[i]);
        } else if (bytes[i] != '_' || i == n_sign || !isDigitAt(i - 1) || !isDigitAt(i + 1)) {
            return std::optional<int64_t>();
        }
    }
    int64_t integer = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), integer);
    if (parsed.ec == std::errc::result_out_of_range) {
        return fail(ErrorCode::Unsupported, "the number {} does not fit in 64 bits",
                    digits.substr(0, 40));
    }
    return parsed.ec == std::errc() ? std::optional(integer) : std::nullopt;
}

[[nodiscard]] Result<std::optional<int64_t>> truncated(double real) {
    if (!std::isfinite(real)) {
        return std::optional<int64_t>();
    }
    if (std::abs(real) >= 9.2e18) {
        return fail(ErrorCode::Unsupported, "the number {} does not fit in 64 bits", real);
    }
    return std::optional(static_cast<int64_t>(real));
}

[[nodiscard]] Result<Value> intFilter(Runtime& runtime,
                                      const Value& input,
                                      const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("int", arguments, {"default", "base"}, 0));
    if (bound[1] != nullptr && asInteger(*bound[1]) != 10) {
        return fail(ErrorCode::Unsupported, "the filter int is supported for base 10 only");
    }
    if (const Undefined* undefined = std::get_if<Undefined>(&input)) {
        return undefinedError(*undefined);
    }
    std::optional<int64_t> integer = asInteger(input);
    if (const double* real = std::get_if<double>(&input)) {
        if (std::isinf(*real)) {
            return typeError("cannot convert float infinity to integer");
        }
        integer = BV_TRY(truncated(*real));
    } else if (const Text* text = asText(input)) {
        integer = BV_TRY(parseInteger(runtime, *text));
        if (!integer.has_value()) {
            integer = BV_TRY(truncated(parseFloat(runtime, *text).value_or(NAN)));
        }
    }
    if (integer.has_value()) {
        return Value(*integer);
    }
    return bound[0] != nullptr ? *bound[0] : Value(int64_t{0});
}

[[nodiscard]] Result<Value> floatFilter(Runtime& runtime,
                                        const Value& input,
                                        const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("float", arguments, {"default"}, 0));
    if (const Undefined* undefined = std::get_if<Undefined>(&input)) {
        return undefinedError(*undefined);
    }
    if (is<double>(input)) {
        return input;
    }
    std::optional<double> real;
    if (const std::optional<int64_t> integer = asInteger(input)) {
        real = static_cast<double>(*integer);
    } else if (const Text* text = asText(input)) {
        real = parseFloat(runtime, *text);
    }
    if (real.has_value()) {
        return Value(*real);
    }
    return bound[0] != nullptr ? *bound[0] : Value(0.0);
}

[[nodiscard]] Result<Value> absFilter(Runtime&,
                                      const Value& input,
                                      const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("abs", arguments, {}, 0));
    if (const double* real = std::get_if<double>(&input)) {
        return Value(std::abs(*real));
    }
    const std::optional<int64_t> integer = asInteger(input);
    if (!integer.has_value()) {
        return typeError("bad operand type for abs(): '{}'", typeName(input));
    }
    return negate(*integer, *integer < 0);
}

[[nodiscard]] Result<Value> roundFilter(Runtime&,
                                        const Value& input,
                                        const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("round", arguments, {"precision", "method"}, 0));
    const int64_t precision =
        bound[0] == nullptr ? 0 : BV_TRY(requireInteger(*bound[0], "the precision of round"));
    const std::string method(bound[1] == nullptr
                                 ? "common"
                                 : BV_TRY(requireText(*bound[1], "the method of round")).bytes());
    if (method != "common" && method != "ceil" && method != "floor") {
        return typeError("the method of round must be common, ceil or floor, not {}", method);
    }
    if (precision < 0 || precision > 300) {
        return fail(ErrorCode::Unsupported,
                    "round is supported for a precision from 0 to 300, not {}", precision);
    }
    const std::optional<int64_t> integer = asInteger(input);
    const double* real = std::get_if<double>(&input);
    if (!integer.has_value() && real == nullptr) {
        return typeError("type {} cannot be rounded", typeName(input));
    }
    if (method == "common" && integer.has_value()) {
        return Value(*integer);
    }
    const double number = real != nullptr ? *real : static_cast<double>(*integer);
    if (method == "common") {  // through decimal digits, so that halves are those of the exact
                               // value, as in Python
        return Value(std::isfinite(number)
                         ? std::strtod(fmt::format("{:.{}f}", number, precision).c_str(), nullptr)
                         : number);
    }
    const double scale = std::pow(10.0, static_cast<double>(precision));
    return Value((method == "ceil" ? std::ceil(number * scale) : std::floor(number * scale)) /
                 scale);
}

[[nodiscard]] Result<std::optional<std::string>> jsonIndent(const Value* indent) {
    constexpr int64_t kMaxIndent = 32;
    if (!isGiven(indent)) {
        return std::optional<std::string>();
    }
    if (const Text* text = asText(*indent)) {
        if (text->bytes().size() > static_cast<size_t>(kMaxIndent)) {
            return typeError("the indent of tojson has more than {} characters", kMaxIndent);
        }
        return std::optional<std::string>(text->bytes());
    }
    const int64_t width = BV_TRY(requireInteger(*indent, "the indent of tojson"));
    if (width > kMaxIndent) {
        return typeError("the indent of tojson is {}, at most {}", width, kMaxIndent);
    }
    return std::optional<std::string>(
        std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '));
}

[[nodiscard]] Result<Value> toJsonFilter(Runtime& runtime,
                                         const Value& input,
                                         const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments(
        "tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0));
    JsonStyle style;
    style.ascii_only = bound[0] != nullptr && isTrue(*bound[0]);
    style.indent = BV_TRY(jsonIndent(bound[1]));
    if (style.indent.has_value()) {
        style.item_separator = ",";
    }
    if (isGiven(bound[2])) {
        const Sequence* separators = asListOrTuple(*bound[2]);
        if (separators == nullptr || separators->items.size() != 2) {
            return typeError("the separators of tojson must be a pair of str");
        }
        style.item_separator =
            BV_TRY(requireText(separators->items[0], "each separator of tojson")).bytes();
        style.key_separator =
            BV_TRY(requireText(separators->items[1], "each separator of tojson")).bytes();
    }
    style.sort_keys = bound[3] != nullptr && isTrue(*bound[3]);
    return Value(BV_TRY(toJson(runtime, input, style)));
}

[[nodiscard]] Result<Value> safeFilter(Runtime& runtime,
                                       const Value& input,
                                       const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("safe", arguments, {}, 0));
    return Value(markSafe(runtime, BV_TRY(toText(runtime, input)), true));
}

[[nodiscard]] Result<Value> escapeFilter(Runtime& runtime,
                                         const Value& input,
                                         const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("escape", arguments, {}, 0));
    return Value(BV_TRY(escapeHtml(runtime, BV_TRY(toText(runtime, input)))));
}

[[nodiscard]] Result<Value> centerFilter(Runtime& runtime,
                                         const Value& input,
                                         const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("center", arguments, {"width"}, 0));
    CallArguments width;
    width.positional.push_back(bound[0] == nullptr ? Value(int64_t{80}) : *bound[0]);
    return callMethod(runtime, BV_TRY(toText(runtime, input)), "center", width);
}

[[nodiscard]] Result<Value> formatFilter(Runtime& runtime,
                                         const Value& input,
                                         const CallArguments& arguments) {
    if (!arguments.named.empty() && !arguments.positional.empty()) {
        return typeError("format takes positional or named arguments, not both");
    }
    const Text text = BV_TRY(toText(runtime, input));
    if (arguments.named.empty()) {
        return formatPercent(runtime, text, runtime.heap.tuple(arguments.positional));
    }
    std::vector<Dict::Item> items;
    for (const auto& [name, value] : arguments.named) {
        items.emplace_back(runtime.heap.text(name, kTemplateOrigin), value);
    }
    return formatPercent(runtime, text, runtime.heap.dict(std::move(items)));
}

constexpr std::array<std::pair<std::string_view, FilterFunction>, 20> kFilters = {{
    {"abs", absFilter},
    {"capitalize", caseFilter<toCapitalized>},
    {"center", centerFilter},
    {"d", defaultFilter},
    {"default", defaultFilter},
    {"e", escapeFilter},
    {"escape", escapeFilter},
    {"float", floatFilter},
    {"format", formatFilter},
    {"indent", indentFilter},
    {"int", intFilter},
    {"lower", caseFilter<toLower>},
    {"replace", replaceFilter},
    {"round", roundFilter},
    {"safe", safeFilter},
    {"string", stringFilter},
    {"title", caseFilter<toTitleWords>},
    {"tojson", toJsonFilter},
    {"trim", trimFilter},
    {"upper", caseFilter<toUpper>},
}};

}  // namespace

FilterFunction findFilter(std::string_view name) {
    const auto found =
        std::ranges::find(kFilters, name, &std::pair<std::string_view, FilterFunction>::first);
    return found == kFilters.end() ? findSequenceFilter(name) : found->second;
}

}  // namespace belvedere::inference::jinja
