// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "inference/chat/jinja/operators.h"
#include "inference/chat/jinja/python_text.h"
#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

constexpr size_t kMaxWidth = 10'000;

/// The fields that both formatters share.
struct Spec {
    std::string fill = " ";
    char align = '\0';  ///< < > ^ or =; none: by type
    char sign = '\0';   ///< + or space
    bool alternate = false;
    size_t width = 0;
    std::optional<size_t> precision;
    char type = '\0';
};

[[nodiscard]] Result<size_t> readNumber(std::string_view text, size_t& at) {
    size_t number = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
        number = number * 10 + static_cast<size_t>(text[at] - '0');
        if (number > kMaxWidth) {
            return fail(ErrorCode::Corrupt, "a width in a format is over {}", kMaxWidth);
        }
    }
    return number;
}

[[nodiscard]] std::string padded(const Spec& spec,
                                 std::string prefix,
                                 std::string body,
                                 char default_align) {
    const size_t n = countPoints(prefix) + countPoints(body);
    const char align = spec.align == '\0' ? default_align : spec.align;
    if (n >= spec.width) {
        return prefix + body;
    }
    const size_t missing = spec.width - n;
    const size_t left = align == '<' ? 0 : (align == '^' ? missing / 2 : missing);
    std::string before;
    for (size_t i = 0; i < left; ++i) {
        before += spec.fill;
    }
    std::string after;
    for (size_t i = left; i < missing; ++i) {
        after += spec.fill;
    }
    return align == '=' ? prefix + before + body : before + prefix + body + after;
}

[[nodiscard]] std::string signOf(const Spec& spec, bool is_negative) {
    return is_negative ? "-" : (spec.sign == '\0' ? "" : std::string(1, spec.sign));
}

[[nodiscard]] Result<std::string> formatInteger(const Spec& spec, int64_t value) {
    const bool is_negative = value < 0;
    const uint64_t magnitude =
        is_negative ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    std::string prefix = signOf(spec, is_negative);
    std::string digits;
    switch (spec.type) {
        case 'x':
            digits = fmt::format("{:x}", magnitude);
            break;
        case 'X':
            digits = fmt::format("{:X}", magnitude);
            break;
        case 'o':
            digits = fmt::format("{:o}", magnitude);
            break;
        case 'b':
            digits = fmt::format("{:b}", magnitude);
            break;
        default:
            digits = fmt::format("{}", magnitude);
            break;
    }
    if (spec.alternate && std::string_view("xXob").find(spec.type) != std::string_view::npos) {
        prefix += {'0', spec.type};
    }
    const size_t n_digits = spec.precision.value_or(0);
    if (digits.size() < n_digits) {
        digits.insert(0, n_digits - digits.size(), '0');
    }
    return padded(spec, std::move(prefix), std::move(digits), '>');
}

[[nodiscard]] Result<std::string> formatReal(const Spec& spec, double value, bool is_percent) {
    constexpr size_t kMaxPrecision = 100;
    const size_t precision = spec.precision.value_or(6);
    if (precision > kMaxPrecision || spec.alternate) {
        return fail(ErrorCode::Unsupported,
                    "a number format with # or a precision over {} is not supported",
                    kMaxPrecision);
    }
    const double magnitude = std::abs(is_percent ? value * 100 : value);
    std::string digits;
    switch (spec.type) {
        case 'e':
            digits = fmt::format("{:.{}e}", magnitude, precision);
            break;
        case 'E':
            digits = fmt::format("{:.{}E}", magnitude, precision);
            break;
        case 'g':
            digits = fmt::format("{:.{}g}", magnitude, std::max<size_t>(precision, 1));
            break;
        case 'G':
            digits = fmt::format("{:.{}G}", magnitude, std::max<size_t>(precision, 1));
            break;
        default:
            digits = fmt::format("{:.{}f}", magnitude, precision);
            break;
    }
    if (is_percent) {
        digits += '%';
    }
    Spec finite = spec;
    if (!std::isfinite(magnitude) && spec.fill == "0") {
        return fail(ErrorCode::Unsupported,
                    "padding a number that is not finite with zeros is not supported");
    }
    const bool is_negative = std::signbit(value) && !std::isnan(value);
    return padded(finite, signOf(spec, is_negative), std::move(digits), '>');
}

[[nodiscard]] std::string formatText(const Spec& spec, std::string_view text, char default_align) {
    if (spec.precision.has_value()) {
        text = text.substr(0, offsetOfPoint(text, *spec.precision));
    }
    return padded(spec, "", std::string(text), default_align);
}

[[nodiscard]] std::optional<double> asReal(const Value& value) {
    if (const double* real = std::get_if<double>(&value)) {
        return *real;
    }
    const std::optional<int64_t> integer = asInteger(value);
    return integer.has_value() ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

/// Collects the result; a field stays with its provenance only when it is a text printed as it is.
class Output {
  public:
    Output(Runtime& runtime, const Text& format)
        : runtime_(runtime), format_(format), builder_(&runtime.meter) {}

    void literal(size_t begin, size_t end) { builder_.append(format_, begin, end); }

    Result<void> text(const Text& value) {
        BV_TRY(makeRoom(value.bytes().size()));
        builder_.append(value);
        return {};
    }

    Result<void> made(std::string_view value) {
        BV_TRY(makeRoom(value.size()));
        builder_.append(value, kValueOrigin);
        return {};
    }

    Value finish() { return builder_.finish(); }

  private:
    Result<void> makeRoom(size_t n_bytes) {
        runtime_.meter.spendBytes(n_bytes);
        return runtime_.meter.hasRoomFor(builder_.size() + n_bytes) ? runtime_.check()
                                                                    : runtime_.reserve(SIZE_MAX);
    }

    Runtime& runtime_;
    const Text& format_;
    TextBuilder builder_;
};

class PercentFormatter {
  public:
    PercentFormatter(Runtime& runtime, const Text& format, const Value& arguments)
        : runtime_(runtime), format_(format), arguments_(arguments), output_(runtime, format) {
        const Sequence* sequence = asSequence(arguments);
        tuple_ = sequence != nullptr && sequence->kind == SequenceKind::Tuple ? sequence : nullptr;
    }

    Result<Value> run();

  private:
    Result<void> field(size_t& at);
    Result<Value> nextArgument();
    Result<void> convert(const Spec& spec, const Value& value);

    Runtime& runtime_;
    const Text& format_;
    const Value& arguments_;
    const Sequence* tuple_ = nullptr;
    size_t n_used_ = 0;
    bool by_name_ = false;
    Output output_;
};

Result<Value> PercentFormatter::nextArgument() {
    const size_t n = tuple_ == nullptr ? 1 : tuple_->items.size();
    if (n_used_ >= n) {
        return typeError("not enough arguments for the format");
    }
    ++n_used_;
    return tuple_ == nullptr ? arguments_ : tuple_->items[n_used_ - 1];
}

Result<void> PercentFormatter::convert(const Spec& spec, const Value& value) {
    switch (spec.type) {
        case 's': {
            const Text text = BV_TRY(toText(runtime_, value));
            if (spec.width == 0 && !spec.precision.has_value()) {
                return output_.text(text);
            }
            return output_.made(formatText(spec, text.bytes(), '>'));
        }
        case 'r': {
            std::string repr;
            BV_TRY(appendRepr(runtime_, repr, value));
            return output_.made(formatText(spec, repr, '>'));
        }
        case 'd':
        case 'i':
        case 'u':
        case 'x':
        case 'X':
        case 'o': {
            std::optional<int64_t> integer = asInteger(value);
            const double* real = std::get_if<double>(&value);
            const bool truncates = real != nullptr && std::string_view("diu").find(spec.type) !=
                                                          std::string_view::npos;
            if (truncates && std::abs(*real) < 9.2e18) {
                integer = static_cast<int64_t>(*real);
            }
            if (!integer.has_value()) {
                return typeError("%{} format: a number is required, not {}", spec.type,
                                 typeName(value));
            }
            return output_.made(BV_TRY(formatInteger(spec, *integer)));
        }
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G': {
            const std::optional<double> real = asReal(value);
            if (!real.has_value()) {
                return typeError("%{} format: a number is required, not {}", spec.type,
                                 typeName(value));
            }
            return output_.made(BV_TRY(formatReal(spec, *real, false)));
        }
        default:
            return fail(ErrorCode::Unsupported, "format %{} is not supported", spec.type);
    }
}

/// One field; `at` stands behind its %.
Result<void> PercentFormatter::field(size_t& at) {
    const std::string_view bytes = format_.bytes();
    Spec spec;
    std::optional<Value> named;
    if (at < bytes.size() && bytes[at] == '(') {
        const size_t close = bytes.find(')', at);
        const Dict* dict = asDict(arguments_);
        if (close == std::string_view::npos || dict == nullptr) {
            return typeError("the format requires a mapping");
        }
        const std::string_view key = bytes.substr(at + 1, close - at - 1);
        const Value* found = dict->find(key);
        if (found == nullptr) {
            return typeError("the format names '{}', which is not given", key);
        }
        named = *found;
        by_name_ = true;
        at = close + 1;
    }
    bool zero_fill = false;
    for (; at < bytes.size() && std::string_view("#0- +").find(bytes[at]) != std::string_view::npos;
         ++at) {
        switch (bytes[at]) {
            case '#':
                spec.alternate = true;
                break;
            case '0':
                zero_fill = true;
                break;
            case '-':
                spec.align = '<';
                break;
            case '+':
                spec.sign = '+';
                break;
            default:
                spec.sign = spec.sign == '+' ? '+' : ' ';
                break;
        }
    }
    spec.width = BV_TRY(readNumber(bytes, at));
    if (at < bytes.size() && bytes[at] == '.') {
        ++at;
        spec.precision = BV_TRY(readNumber(bytes, at));
    }
    if (at >= bytes.size()) {
        return typeError("the format ends inside a field");
    }
    spec.type = bytes[at];
    ++at;
    if (spec.type == '%') {
        return output_.made("%");
    }
    if (zero_fill && spec.align == '\0' && spec.type != 's' && spec.type != 'r') {
        spec.fill = "0";
        spec.align = '=';
    }
    const Value value = named.has_value() ? *std::move(named) : BV_TRY(nextArgument());
    return convert(spec, value);
}

Result<Value> PercentFormatter::run() {
    const std::string_view bytes = format_.bytes();
    runtime_.meter.spendBytes(bytes.size());
    size_t begin = 0;
    while (true) {
        const size_t percent = std::min(bytes.find('%', begin), bytes.size());
        output_.literal(begin, percent);
        if (percent == bytes.size()) {
            break;
        }
        begin = percent + 1;
        BV_TRY(field(begin));
        runtime_.meter.spend(1);
        BV_TRY(runtime_.check());
    }
    const Sequence* sequence = asSequence(arguments_);
    const bool is_indexable = sequence != nullptr && sequence->kind <= SequenceKind::Range;
    const bool may_be_unused =
        by_name_ || asDict(arguments_) != nullptr || (is_indexable && tuple_ == nullptr);
    const size_t n = tuple_ == nullptr ? 1 : tuple_->items.size();
    if (n_used_ < n && !may_be_unused) {
        return typeError("not all arguments were used by the format");
    }
    return output_.finish();
}

class BraceFormatter {
  public:
    BraceFormatter(Runtime& runtime, const Text& format, const CallArguments& arguments)
        : runtime_(runtime), format_(format), arguments_(arguments), output_(runtime, format) {}

    Result<Value> run();

  private:
    Result<void> field(std::string_view body);
    Result<Value> fieldValue(std::string_view name);
    Result<Spec> parseSpec(std::string_view text) const;
    Result<void> convert(const Spec& spec, const Value& value);

    Runtime& runtime_;
    const Text& format_;
    const CallArguments& arguments_;
    size_t n_automatic_ = 0;
    bool is_numbered_ = false;
    Output output_;
};

Result<Value> BraceFormatter::fieldValue(std::string_view name) {
    if (name.find_first_of(".[") != std::string_view::npos) {
        return fail(ErrorCode::Unsupported,
                    "str.format with attributes or items ('{}') is not supported", name);
    }
    size_t index = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_number =
        !name.empty() && parsed.ec == std::errc() && parsed.ptr == name.data() + name.size();
    if (name.empty() || is_number) {
        if ((is_number && n_automatic_ > 0) || (name.empty() && is_numbered_)) {
            return typeError("str.format: fields with and without numbers");
        }
        is_numbered_ = is_number;
        index = is_number ? index : n_automatic_++;
        if (index >= arguments_.positional.size()) {
            return typeError("str.format: no argument number {}", index);
        }
        return arguments_.positional[index];
    }
    const auto named =
        std::ranges::find(arguments_.named, name, &std::pair<std::string, Value>::first);
    if (named == arguments_.named.end()) {
        return typeError("str.format: no argument '{}'", name);
    }
    return named->second;
}

/// [[fill]align][sign][#][0][width][.precision][type]
Result<Spec> BraceFormatter::parseSpec(std::string_view text) const {
    Spec spec;
    size_t at = 0;
    constexpr std::string_view kAligns = "<>^=";
    size_t first = 0;
    if (!text.empty()) {
        (void)nextPoint(text, first);
    }
    if (first > 0 && first < text.size() && kAligns.find(text[first]) != std::string_view::npos) {
        spec.fill = text.substr(0, first);
        spec.align = text[first];
        at = first + 1;
    } else if (!text.empty() && kAligns.find(text[0]) != std::string_view::npos) {
        spec.align = text[0];
        at = 1;
    }
    const auto next = [&](std::string_view choices) {
        return at < text.size() && choices.find(text[at]) != std::string_view::npos ? text[at++]
                                                                                    : '\0';
    };
    spec.sign = next("+- ");
    spec.sign = spec.sign == '-' ? '\0' : spec.sign;
    spec.alternate = next("#") != '\0';
    if (next("0") != '\0' && spec.align == '\0') {
        spec.fill = "0";
        spec.align = '=';
    }
    spec.width = BV_TRY(readNumber(text, at));
    if (next(".") != '\0') {
        spec.precision = BV_TRY(readNumber(text, at));
    }
    spec.type = next("sdxXobeEfFgG%");
    if (at != text.size()) {
        return fail(ErrorCode::Unsupported, "format '{}' is not supported", text);
    }
    return spec;
}

Result<void> BraceFormatter::convert(const Spec& spec, const Value& value) {
    const std::string_view whole = "dxXob";
    const bool is_plain = spec.type == '\0' || spec.type == 's';
    if (const Text* text = asText(value); text != nullptr && is_plain && spec.align != '=') {
        if (spec.width == 0 && !spec.precision.has_value()) {
            return output_.text(*text);
        }
        return output_.made(formatText(spec, text->bytes(), '<'));
    }
    const std::optional<int64_t> integer =
        is<bool>(value) && spec.type == '\0' ? std::nullopt : asInteger(value);
    const std::optional<double> real = is<bool>(value) ? std::nullopt : asReal(value);
    if (integer.has_value() && !spec.precision.has_value() &&
        (spec.type == '\0' || whole.find(spec.type) != std::string_view::npos)) {
        return output_.made(BV_TRY(formatInteger(spec, *integer)));
    }
    if (real.has_value() && spec.type != '\0' && spec.type != 's' &&
        whole.find(spec.type) == std::string_view::npos) {
        return output_.made(BV_TRY(formatReal(spec, *real, spec.type == '%')));
    }
    const bool is_empty = spec.type == '\0' && spec.width == 0 && !spec.precision.has_value() &&
                          spec.sign == '\0' && spec.align == '\0' && !spec.alternate;
    if (is_empty) {
        return output_.text(BV_TRY(toText(runtime_, value)));
    }
    return fail(ErrorCode::Unsupported, "this format of a {} is not supported", typeName(value));
}

Result<void> BraceFormatter::field(std::string_view body) {
    const size_t colon = body.find(':');
    const std::string_view before = body.substr(0, colon);
    const std::string_view spec_text =
        colon == std::string_view::npos ? "" : body.substr(colon + 1);
    const size_t mark = before.find('!');
    const std::string_view conversion =
        mark == std::string_view::npos ? "" : before.substr(mark + 1);
    Value value = BV_TRY(fieldValue(before.substr(0, mark)));
    if (conversion == "r") {
        std::string repr;
        BV_TRY(appendRepr(runtime_, repr, value));
        value = runtime_.heap.text(repr, kValueOrigin);
    } else if (conversion == "s") {
        value = BV_TRY(toText(runtime_, value));
    } else if (!conversion.empty()) {
        return fail(ErrorCode::Unsupported, "conversion !{} is not supported", conversion);
    }
    return convert(BV_TRY(parseSpec(spec_text)), value);
}

Result<Value> BraceFormatter::run() {
    const std::string_view bytes = format_.bytes();
    runtime_.meter.spendBytes(bytes.size());
    size_t begin = 0;
    while (true) {
        const size_t brace = std::min(bytes.find_first_of("{}", begin), bytes.size());
        output_.literal(begin, brace);
        if (brace == bytes.size()) {
            return output_.finish();
        }
        runtime_.meter.spend(1);
        BV_TRY(runtime_.check());
        if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
            output_.literal(brace, brace + 1);
            begin = brace + 2;
            continue;
        }
        const size_t close = bytes.find('}', brace);
        if (bytes[brace] == '}' || close == std::string_view::npos) {
            return typeError("str.format: a single '{}'", bytes[brace]);
        }
        const std::string_view body = bytes.substr(brace + 1, close - brace - 1);
        if (body.find('{') != std::string_view::npos) {
            return fail(ErrorCode::Unsupported, "str.format with nested fields is not supported");
        }
        BV_TRY(field(body));
        begin = close + 1;
    }
}

}  // namespace

Result<Value> formatPercent(Runtime& runtime, const Text& format, const Value& arguments) {
    if (format.isMarkup()) {
        return fail(ErrorCode::Unsupported, "formatting a text marked safe is not supported");
    }
    return PercentFormatter(runtime, format, arguments).run();
}

Result<Value> formatBraces(Runtime& runtime, const Text& format, const CallArguments& arguments) {
    if (format.isMarkup()) {
        return fail(ErrorCode::Unsupported, "formatting a text marked safe is not supported");
    }
    return BraceFormatter(runtime, format, arguments).run();
}

}  // namespace belvedere::inference::jinja
