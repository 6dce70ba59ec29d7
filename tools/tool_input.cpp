// SPDX-License-Identifier: Apache-2.0
#include "tools/tool_input.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/ranges.h>

namespace belvedere::tools {
namespace {

/// "filePath", "file-path" and "FILE_PATH" are one name.
std::string foldedName(std::string_view name) {
    std::string folded;
    for (const char c : name) {
        if (c != '_' && c != '-') {
            folded += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        }
    }
    return folded;
}

bool isNamed(const FieldInfo& field, std::string_view name) {
    const std::string folded = foldedName(name);
    return folded == foldedName(field.name) ||
           std::ranges::any_of(field.aliases, [&](const std::string& alias) {
               return folded == foldedName(alias);
           });
}

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// What a value looks like in an error: short.
std::string shown(const Json& value) {
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    constexpr size_t kMaxShown = 60;
    if (text.size() > kMaxShown) {
        text = text.substr(0, kMaxShown) + "...";  // ASCII: no character is cut
    }
    return text;
}

Result<Json> readText(const FieldInfo& field, const Json& value) {
    Json text;
    if (value.is_string()) {
        text = value;
    } else if (value.is_number() || value.is_boolean()) {
        text = value.dump();
    } else {
        return fail(ErrorCode::InvalidArgument, "{}: expected text, found {}", field.name,
                    shown(value));
    }
    if (!field.choices.empty() &&
        std::ranges::find(field.choices, text.get<std::string>()) == field.choices.end()) {
        return fail(ErrorCode::InvalidArgument, "{}: expected one of {}, found {}", field.name,
                    fmt::join(field.choices, ", "), shown(value));
    }
    return text;
}

std::optional<int64_t> integerOf(const Json& value) {
    if (value.is_number_unsigned()) {
        const uint64_t number = value.get<uint64_t>();
        return number <= INT64_MAX ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
    }
    if (value.is_number_integer()) {
        return value.get<int64_t>();
    }
    if (value.is_number_float()) {
        const double number = value.get<double>();
        constexpr double kLimit = 9.0e15;  // below 2^53 every whole number is exact
        return std::abs(number) < kLimit && number == std::floor(number)
                   ? std::optional(static_cast<int64_t>(number))
                   : std::nullopt;
    }
    if (value.is_string()) {
        const std::string& whole = value.get_ref<const std::string&>();
        const std::string_view text = trimmed(whole);
        int64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error == std::errc() && end == text.data() + text.size()) {
            return number;
        }
    }
    return std::nullopt;
}

Result<Json> readInteger(const FieldInfo& field, const Json& value) {
    const std::optional<int64_t> number = integerOf(value);
    if (!number) {
        return fail(ErrorCode::InvalidArgument, "{}: expected a whole number, found {}", field.name,
                    shown(value));
    }
    if (*number < field.min || *number > field.max) {
        return fail(ErrorCode::InvalidArgument, "{}: {} is outside {} to {}", field.name, *number,
                    field.min, field.max);
    }
    return Json(*number);
}

Result<Json> readBoolean(const FieldInfo& field, const Json& value) {
    if (value.is_boolean()) {
        return value;
    }
    std::string text = value.is_string()
                           ? std::string(trimmed(value.get_ref<const std::string&>()))
                           : value.dump(-1, ' ', true, Json::error_handler_t::replace);
    std::ranges::transform(text, text.begin(), [](char c) {
        return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    });
    if (text == "true" || text == "yes" || text == "1") {
        return Json(true);
    }
    if (text == "false" || text == "no" || text == "0") {
        return Json(false);
    }
    return fail(ErrorCode::InvalidArgument, "{}: expected true or false, found {}", field.name,
                shown(value));
}

Result<Json> readValue(const FieldInfo& field, const Json& value) {
    switch (field.type) {
        case FieldType::Text:
            return readText(field, value);
        case FieldType::Integer:
            return readInteger(field, value);
        case FieldType::Boolean:
            return readBoolean(field, value);
    }
    return fail(ErrorCode::Internal, "{}: unknown type of field", field.name);
}

/// The arguments as an object, also where they are JSON inside a string, or the bare value of the
/// one required text.
Result<Json> asObject(const std::vector<FieldInfo>& fields, const Json& arguments) {
    if (arguments.is_object()) {
        return arguments;
    }
    if (arguments.is_null()) {
        return Json::object();
    }
    if (arguments.is_string()) {
        Json parsed = Json::parse(arguments.get_ref<const std::string&>(), nullptr, false);
        if (parsed.is_object()) {
            return parsed;
        }
        const auto is_required = [](const FieldInfo& field) { return field.is_required; };
        const auto field = std::ranges::find_if(fields, is_required);
        if (std::ranges::count_if(fields, is_required) == 1 && field->type == FieldType::Text) {
            return Json{{field->name, arguments}};
        }
    }
    return fail(ErrorCode::InvalidArgument, "arguments: expected an object, found {}",
                shown(arguments));
}

std::string fieldNames(const std::vector<FieldInfo>& fields) {
    std::vector<std::string> names;
    for (const FieldInfo& field : fields) {
        names.push_back(field.name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

const char* typeName(FieldType type) {
    switch (type) {
        case FieldType::Text:
            return "string";
        case FieldType::Integer:
            return "integer";
        case FieldType::Boolean:
            return "boolean";
    }
    return "string";
}

}  // namespace

Json makeSchema(const std::vector<FieldInfo>& fields) {
    Json properties = Json::object();
    Json required = Json::array();
    for (const FieldInfo& field : fields) {
        Json property = {{"type", typeName(field.type)}, {"description", field.description}};
        if (!field.choices.empty()) {
            property["enum"] = field.choices;
        }
        if (field.min != std::numeric_limits<int64_t>::min()) {
            property["minimum"] = field.min;
        }
        if (field.max != std::numeric_limits<int64_t>::max()) {
            property["maximum"] = field.max;
        }
        properties[field.name] = std::move(property);
        if (field.is_required) {
            required.push_back(field.name);
        }
    }
    return {{"type", "object"},
            {"properties", std::move(properties)},
            {"required", std::move(required)}};
}

Result<std::vector<Json>> readArguments(const std::vector<FieldInfo>& fields,
                                        const Json& arguments) {
    const Json object = BV_TRY(asObject(fields, arguments));
    std::vector<Json> values(fields.size());
    for (const auto& [name, value] : object.items()) {
        if (value.is_null()) {
            continue;
        }
        const auto field = std::ranges::find_if(
            fields, [&](const FieldInfo& known) { return isNamed(known, name); });
        if (field == fields.end()) {
            // Ignoring it would run something else than what was asked.
            return fail(ErrorCode::InvalidArgument, "{}: no such argument; there are: {}",
                        shown(name), fieldNames(fields));
        }
        Json& place = values[static_cast<size_t>(field - fields.begin())];
        Json read = BV_TRY(readValue(*field, value));
        if (!place.is_null() && place != read) {
            return fail(ErrorCode::InvalidArgument, "{}: given twice with different values",
                        field->name);
        }
        place = std::move(read);
    }
    for (size_t i = 0; i < fields.size(); ++i) {
        if (fields[i].is_required && values[i].is_null()) {
            return fail(ErrorCode::InvalidArgument, "{}: missing", fields[i].name);
        }
    }
    return values;
}

}  // namespace belvedere::tools
