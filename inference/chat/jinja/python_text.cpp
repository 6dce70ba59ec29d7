// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/python_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

[[nodiscard]] std::string_view boolText(bool value) {
    return value ? "True" : "False";
}

/// Python takes double quotes only for a text that holds single quotes and no double ones.
void appendTextRepr(std::string& out, std::string_view bytes) {
    const bool use_double =
        bytes.find('\'') != std::string_view::npos && bytes.find('"') == std::string_view::npos;
    const char quote = use_double ? '"' : '\'';
    out.push_back(quote);
    for (size_t at = 0; at < bytes.size();) {
        const size_t begin = at;
        const char32_t point = nextPoint(bytes, at);
        if (point == static_cast<char32_t>(quote) || point == '\\') {
            out.push_back('\\');
            out.push_back(static_cast<char>(point));
        } else if (point == '\n') {
            out += "\\n";
        } else if (point == '\r') {
            out += "\\r";
        } else if (point == '\t') {
            out += "\\t";
        } else if (isPrintable(point)) {
            out += bytes.substr(begin, at - begin);
        } else if (point < 0x100) {
            out += fmt::format("\\x{:02x}", static_cast<uint32_t>(point));
        } else if (point < 0x10000) {
            out += fmt::format("\\u{:04x}", static_cast<uint32_t>(point));
        } else {
            out += fmt::format("\\U{:08x}", static_cast<uint32_t>(point));
        }
    }
    out.push_back(quote);
}

struct Brackets {
    std::string_view open;
    std::string_view close;
};

[[nodiscard]] Brackets bracketsOf(SequenceKind kind) {
    switch (kind) {
        case SequenceKind::Tuple:
            return {"(", ")"};
        case SequenceKind::Keys:
            return {"dict_keys([", "])"};
        case SequenceKind::Values:
            return {"dict_values([", "])"};
        case SequenceKind::Items:
            return {"dict_items([", "])"};
        default:
            return {"[", "]"};
    }
}

[[nodiscard]] Result<void> appendSequenceRepr(Runtime& runtime,
                                              std::string& out,
                                              const Sequence& sequence) {
    if (sequence.kind == SequenceKind::Generator) {
        return fail(ErrorCode::Unsupported,
                    "printing a generator is not supported: pass it through the filter list");
    }
    if (sequence.kind == SequenceKind::Range) {
        if (sequence.repr.empty()) {
            return fail(ErrorCode::Unsupported, "printing a part of a range is not supported");
        }
        out += sequence.repr;
        return {};
    }
    const Brackets brackets = bracketsOf(sequence.kind);
    out += brackets.open;
    for (size_t i = 0; i < sequence.items.size(); ++i) {
        out += i == 0 ? "" : ", ";
        BV_TRY(appendRepr(runtime, out, sequence.items[i]));
    }
    const bool lone = sequence.kind == SequenceKind::Tuple && sequence.items.size() == 1;
    out += lone ? "," : "";
    out += brackets.close;
    return {};
}

[[nodiscard]] Result<void> appendDictRepr(Runtime& runtime, std::string& out, const Dict& dict) {
    out.push_back('{');
    bool is_first = true;
    for (const auto& [key, value] : dict.items()) {
        out += is_first ? "" : ", ";
        is_first = false;
        BV_TRY(appendRepr(runtime, out, key));
        out += ": ";
        BV_TRY(appendRepr(runtime, out, value));
    }
    out.push_back('}');
    return {};
}

}  // namespace

std::string floatText(double real) {
    if (std::isnan(real)) {
        return "nan";
    }
    if (std::isinf(real)) {
        return real < 0 ? "-inf" : "inf";
    }
    std::array<char, 40> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), real,
                                   std::chars_format::scientific);
    const std::string_view shortest(buffer.data(), static_cast<size_t>(end.ptr - buffer.data()));
    const size_t e = shortest.find('e');
    const int exponent = std::stoi(std::string(shortest.substr(e + 1)));
    if (exponent < -4 || exponent >= 16) {  // where Python changes to the form with an exponent
        return std::string(shortest);
    }
    const bool is_negative = shortest.front() == '-';
    std::string digits;
    for (const char c : shortest.substr(0, e)) {
        if (c >= '0' && c <= '9') {
            digits.push_back(c);
        }
    }
    std::string out = is_negative ? "-" : "";
    if (exponent < 0) {
        return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
    }
    const size_t n_whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() < n_whole) {
        digits.append(n_whole - digits.size(), '0');
    }
    const std::string fraction = digits.substr(n_whole);
    return out + digits.substr(0, n_whole) + "." + (fraction.empty() ? "0" : fraction);
}

Result<Text> toText(Runtime& runtime, const Value& value) {
    if (const Text* text = asText(value)) {
        return *text;
    }
    if (is<Undefined>(value)) {
        return Text();
    }
    std::string out;
    BV_TRY(appendRepr(runtime, out, value));
    TextBuilder builder(&runtime.meter);
    builder.append(out, kValueOrigin);
    return builder.finish();
}

Result<void> appendRepr(Runtime& runtime, std::string& out, const Value& value) {
    runtime.meter.spend(1);
    BV_TRY(runtime.check());
    if (!runtime.meter.hasRoomFor(out.size())) {
        return runtime.reserve(out.size());
    }
    if (const Text* text = asText(value)) {
        runtime.meter.spendBytes(text->bytes().size() * 16);  // decodes each character
        if (text->isMarkup()) {
            out += "Markup(";
        }
        appendTextRepr(out, text->bytes());
        out += text->isMarkup() ? ")" : "";
    } else if (is<NoneType>(value)) {
        out += "None";
    } else if (const bool* truth = std::get_if<bool>(&value)) {
        out += boolText(*truth);
    } else if (const int64_t* integer = std::get_if<int64_t>(&value)) {
        out += fmt::format("{}", *integer);
    } else if (const double* real = std::get_if<double>(&value)) {
        out += floatText(*real);
    } else if (const Sequence* sequence = asSequence(value)) {
        return appendSequenceRepr(runtime, out, *sequence);
    } else if (const Dict* dict = asDict(value)) {
        return appendDictRepr(runtime, out, *dict);
    } else if (is<Undefined>(value)) {
        out += "Undefined";
    } else {
        return fail(ErrorCode::Unsupported, "printing a {} is not supported", typeName(value));
    }
    return {};
}

}  // namespace belvedere::inference::jinja
