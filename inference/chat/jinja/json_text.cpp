// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "inference/chat/jinja/python_text.h"
#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

/// Appends what stands for the point inside a JSON string; false when the point stands for itself.
[[nodiscard]] bool appendEscape(std::string& out, char32_t point, bool ascii_only) {
    constexpr std::string_view kLetters = "\"\\\n\r\t\f\b";
    constexpr std::string_view kShort = "\"\\nrtfb";
    const size_t known =
        point < 0x80 ? kLetters.find(static_cast<char>(point)) : std::string_view::npos;
    if (known != std::string_view::npos) {
        out.push_back('\\');
        out.push_back(kShort[known]);
    } else if (point < 0x20 || (ascii_only && point >= 0x7F && point < 0x10000)) {
        if (point == 0x7F) {
            return false;
        }
        out += fmt::format("\\u{:04x}", static_cast<uint32_t>(point));
    } else if (ascii_only && point >= 0x10000) {
        const uint32_t offset = static_cast<uint32_t>(point) - 0x10000;
        out +=
            fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
    } else {
        return false;
    }
    return true;
}

class JsonWriter {
  public:
    JsonWriter(Runtime& runtime, const JsonStyle& style)
        : runtime_(runtime), style_(style), out_(&runtime.meter) {}

    Result<void> write(const Value& value, size_t level);

    Text finish() { return out_.finish(); }

  private:
    void put(std::string_view text) { out_.append(text, kValueOrigin); }

    void writeText(const Text& text);
    Result<void> writeSequence(const Sequence& sequence, size_t level);
    Result<void> writeDict(const Dict& dict, size_t level);
    Result<Text> keyText(const Value& key);

    /// What stands before an item: the separator, and with an indent a line of its own.
    void startItem(bool is_first, size_t level) {
        if (!is_first) {
            put(style_.item_separator);
        }
        newLine(level);
    }

    void newLine(size_t level) {
        if (style_.indent.has_value()) {
            put("\n");
            for (size_t i = 0; i < level; ++i) {
                put(*style_.indent);
            }
        }
    }

    Runtime& runtime_;
    const JsonStyle& style_;
    TextBuilder out_;
};

void JsonWriter::writeText(const Text& text) {
    runtime_.meter.spendBytes(text.bytes().size() * 16);  // decodes each character
    put("\"");
    size_t begin = 0;
    for (const TextRun& run : text.runs()) {
        const std::string_view bytes = text.bytes().substr(0, run.end);
        std::string escaped;
        for (size_t at = begin; at < bytes.size();) {
            const size_t point_begin = at;
            const char32_t point = nextPoint(bytes, at);
            if (!appendEscape(escaped, point, style_.ascii_only)) {
                escaped += bytes.substr(point_begin, at - point_begin);
            }
        }
        out_.append(escaped, run.origin);
        begin = run.end;
    }
    put("\"");
}

Result<void> JsonWriter::writeSequence(const Sequence& sequence, size_t level) {
    put("[");
    for (size_t i = 0; i < sequence.items.size(); ++i) {
        startItem(i == 0, level + 1);
        BV_TRY(write(sequence.items[i], level + 1));
    }
    if (!sequence.items.empty()) {
        newLine(level);
    }
    put("]");
    return {};
}

Result<Text> JsonWriter::keyText(const Value& key) {
    if (const Text* text = asText(key)) {
        return *text;
    }
    if (const bool* truth = std::get_if<bool>(&key)) {
        return *asText(runtime_.heap.text(*truth ? "true" : "false", kValueOrigin));
    }
    if (is<NoneType>(key)) {
        return *asText(runtime_.heap.text("null", kValueOrigin));
    }
    if (is<int64_t>(key) || is<double>(key)) {
        return toText(runtime_, key);
    }
    return typeError("keys must be str, int, float, bool or None, not {}", typeName(key));
}

Result<void> JsonWriter::writeDict(const Dict& dict, size_t level) {
    std::vector<Value> keys;
    for (const Dict::Item& item : dict.items()) {
        keys.push_back(item.first);
    }
    std::vector<size_t> order(keys.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (style_.sort_keys) {
        order = BV_TRY(sortedOrder(keys, false, runtime_.meter));
    }
    put("{");
    bool is_first = true;
    for (const size_t i : order) {
        const auto& [key, value] = dict.items()[i];
        startItem(is_first, level + 1);
        is_first = false;
        writeText(BV_TRY(keyText(key)));
        put(style_.key_separator);
        BV_TRY(write(value, level + 1));
    }
    if (!is_first) {
        newLine(level);
    }
    put("}");
    return {};
}

Result<void> JsonWriter::write(const Value& value, size_t level) {
    runtime_.meter.spend(1);
    BV_TRY(runtime_.check());
    if (!runtime_.meter.hasRoomFor(out_.size())) {
        return runtime_.reserve(out_.size());
    }
    if (const Text* text = asText(value)) {
        writeText(*text);
    } else if (is<NoneType>(value)) {
        put("null");
    } else if (const bool* truth = std::get_if<bool>(&value)) {
        put(*truth ? "true" : "false");
    } else if (const int64_t* integer = std::get_if<int64_t>(&value)) {
        put(fmt::format("{}", *integer));
    } else if (const double* real = std::get_if<double>(&value)) {
        const std::string_view infinite = *real < 0 ? "-Infinity" : "Infinity";
        put(std::isnan(*real) ? "NaN"
                              : (std::isinf(*real) ? std::string(infinite) : floatText(*real)));
    } else if (const Sequence* sequence = asListOrTuple(value)) {
        return writeSequence(*sequence, level);
    } else if (const Dict* dict = asDict(value)) {
        return writeDict(*dict, level);
    } else {
        return typeError("object of type {} cannot be written as JSON", typeName(value));
    }
    return {};
}

}  // namespace

Result<Text> toJson(Runtime& runtime, const Value& value, const JsonStyle& style) {
    JsonWriter writer(runtime, style);
    BV_TRY(writer.write(value, 0));
    return writer.finish();
}

}  // namespace belvedere::inference::jinja
