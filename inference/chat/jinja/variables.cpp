// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/variables.h"

#include <algorithm>

#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

using Json = nlohmann::ordered_json;

[[nodiscard]] bool isBoundary(std::string_view text, size_t offset) {
    return offset >= text.size() || (static_cast<unsigned char>(text[offset]) & 0xC0) != 0x80;
}

class Converter {
  public:
    Converter(Runtime& runtime, Origin origin, const SourceMap& sources)
        : runtime_(runtime), origin_(origin), sources_(sources) {}

    Result<Value> convert(const Json& json, const std::string& pointer, size_t depth);

  private:
    Result<Value> convertText(const std::string& text, const std::string& pointer);
    Result<Value> convertObject(const Json& json, const std::string& pointer, size_t depth);
    Result<Value> convertArray(const Json& json, const std::string& pointer, size_t depth);

    Runtime& runtime_;
    Origin origin_;
    const SourceMap& sources_;
};

Result<Value> Converter::convertText(const std::string& text, const std::string& pointer) {
    if (const std::optional<size_t> bad = findInvalidUtf8(text)) {
        return fail(ErrorCode::InvalidArgument, "{}: byte {} is not valid UTF-8", pointer, *bad);
    }
    const auto found = sources_.find(pointer);
    if (found == sources_.end()) {
        return runtime_.heap.text(text, origin_);
    }
    TextBuilder builder(&runtime_.meter);
    size_t at = 0;
    for (const SourceRange& range : *found->second) {
        const std::string_view bytes = text;
        builder.append(bytes.substr(at, range.begin - at), origin_);
        builder.append(bytes.substr(range.begin, range.end - range.begin),
                       Origin{origin_.trusted, range.source});
        at = range.end;
    }
    builder.append(std::string_view(text).substr(at), origin_);
    return Value(builder.finish());
}

Result<Value> Converter::convertObject(const Json& json, const std::string& pointer, size_t depth) {
    std::vector<Dict::Item> items;
    items.reserve(json.size());
    for (const auto& [name, member] : json.items()) {
        const std::string place = pointer + "/" + escapePointerPart(name);
        Value key = BV_TRY(convertText(name, place + " (its name)"));
        items.emplace_back(std::move(key), BV_TRY(convert(member, place, depth + 1)));
    }
    return runtime_.heap.dict(std::move(items));
}

Result<Value> Converter::convertArray(const Json& json, const std::string& pointer, size_t depth) {
    std::vector<Value> items;
    items.reserve(json.size());
    for (size_t i = 0; i < json.size(); ++i) {
        items.push_back(BV_TRY(convert(json[i], fmt::format("{}/{}", pointer, i), depth + 1)));
    }
    return runtime_.heap.list(std::move(items));
}

Result<Value> Converter::convert(const Json& json, const std::string& pointer, size_t depth) {
    constexpr size_t kMaxNesting = 128;
    if (depth > kMaxNesting) {
        return fail(ErrorCode::InvalidArgument, "{}: values nest deeper than {}", pointer,
                    kMaxNesting);
    }
    BV_TRY(runtime_.check());
    switch (json.type()) {
        case Json::value_t::null:
            return Value(NoneType{});
        case Json::value_t::boolean:
            return Value(json.get<bool>());
        case Json::value_t::number_integer:
            return Value(json.get<int64_t>());
        case Json::value_t::number_unsigned:
            if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
                return fail(ErrorCode::InvalidArgument, "{}: {} does not fit in 64 bits", pointer,
                            json.get<uint64_t>());
            }
            return Value(json.get<int64_t>());
        case Json::value_t::number_float:
            return Value(json.get<double>());
        case Json::value_t::string:
            return convertText(json.get_ref<const std::string&>(), pointer);
        case Json::value_t::array:
            return convertArray(json, pointer, depth);
        case Json::value_t::object:
            return convertObject(json, pointer, depth);
        default:
            return fail(ErrorCode::InvalidArgument, "{}: not a JSON value", pointer);
    }
}

}  // namespace

std::string escapePointerPart(std::string_view name) {
    std::string out;
    for (const char c : name) {
        if (c == '~') {
            out += "~0";
        } else if (c == '/') {
            out += "~1";
        } else {
            out.push_back(c);
        }
    }
    return out;
}

Result<SourceMap> indexSources(const std::vector<SourcedText>& sources, const Json& variables) {
    SourceMap map;
    for (const SourcedText& sourced : sources) {
        const Json* json = nullptr;
        try {
            const Json::json_pointer pointer(sourced.json_pointer);
            json = variables.contains(pointer) ? &variables.at(pointer) : nullptr;
        } catch (const Json::exception&) {
            json = nullptr;  // the library has no call that reports a malformed pointer otherwise
        }
        if (json == nullptr || !json->is_string()) {
            return fail(ErrorCode::InvalidArgument, "source ranges name {}, which is no text",
                        sourced.json_pointer);
        }
        const auto& text = json->get_ref<const std::string&>();
        size_t at = 0;
        for (const SourceRange& range : sourced.ranges) {
            const bool is_ordered =
                at <= range.begin && range.begin <= range.end && range.end <= text.size();
            if (!is_ordered || !isBoundary(text, range.begin) || !isBoundary(text, range.end)) {
                return fail(ErrorCode::InvalidArgument,
                            "{}: source range {}..{} is out of order, outside the text or inside a "
                            "character",
                            sourced.json_pointer, range.begin, range.end);
            }
            at = range.end;
        }
        if (!map.emplace(sourced.json_pointer, &sourced.ranges).second) {
            return fail(ErrorCode::InvalidArgument, "source ranges name {} twice",
                        sourced.json_pointer);
        }
    }
    return map;
}

Result<Value> valueFromJson(Runtime& runtime,
                            const Json& json,
                            const std::string& pointer,
                            bool is_trusted,
                            const SourceMap& sources) {
    return Converter(runtime, Origin{is_trusted, -1}, sources).convert(json, pointer, 0);
}

}  // namespace belvedere::inference::jinja
