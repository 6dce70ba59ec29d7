// SPDX-License-Identifier: Apache-2.0
#include "inference/model/config_json.h"

#include <cmath>

#include "inference/format/printable.h"

namespace belvedere::inference {

using Json = nlohmann::json;

const Json* ConfigJson::find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

tl::unexpected<Error> ConfigJson::mismatch(const char* key, const std::string& expected) const {
    const Json* value = find(key);
    const std::string found =
        value == nullptr ? "nothing" : value->dump(-1, ' ', false, Json::error_handler_t::replace);
    return fail(ErrorCode::Corrupt, "{}: {}: expected {}, found {}", file_, path(key), expected,
                printable(found));
}

template <class T>
Result<T> ConfigJson::required(const char* key, Result<std::optional<T>> found) const {
    std::optional<T> value = BV_TRY(std::move(found));
    if (!value) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing", file_, path(key));
    }
    return std::move(*value);
}

Result<size_t> ConfigJson::count(const char* key, uint64_t max) const {
    return required(key, findCount(key, max));
}

Result<double> ConfigJson::number(const char* key) const {
    return required(key, findNumber(key));
}

Result<bool> ConfigJson::flag(const char* key) const {
    return required(key, findFlag(key));
}

Result<std::string> ConfigJson::text(const char* key) const {
    return required(key, findText(key));
}

Result<ConfigJson> ConfigJson::object(const char* key) const {
    return required(key, findObject(key));
}

Result<std::optional<size_t>> ConfigJson::findCount(const char* key, uint64_t max) const {
    const std::optional<size_t> value = BV_TRY(findUint(key, max));
    if (value && *value == 0) {
        return mismatch(key, fmt::format("a whole number from 1 to {}", max));
    }
    return value;
}

Result<std::optional<size_t>> ConfigJson::findUint(const char* key, uint64_t max) const {
    const Json* value = find(key);
    if (value == nullptr) {
        return std::optional<size_t>();
    }
    if (!value->is_number_unsigned() || value->get<uint64_t>() > max) {
        return mismatch(key, fmt::format("a whole number from 0 to {}", max));
    }
    return std::optional<size_t>(value->get<uint64_t>());
}

Result<std::optional<double>> ConfigJson::findNumber(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) {
        return std::optional<double>();
    }
    if (!value->is_number() || !std::isfinite(value->get<double>())) {
        return mismatch(key, "a number");
    }
    return std::optional<double>(value->get<double>());
}

Result<std::optional<bool>> ConfigJson::findFlag(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) {
        return std::optional<bool>();
    }
    if (!value->is_boolean()) {
        return mismatch(key, "true or false");
    }
    return std::optional<bool>(value->get<bool>());
}

Result<std::optional<std::string>> ConfigJson::findText(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) {
        return std::optional<std::string>();
    }
    if (!value->is_string()) {
        return mismatch(key, "a text");
    }
    return std::optional<std::string>(value->get<std::string>());
}

Result<std::optional<ConfigJson>> ConfigJson::findObject(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) {
        return std::optional<ConfigJson>();
    }
    if (!value->is_object()) {
        return mismatch(key, "an object");
    }
    return std::optional<ConfigJson>(ConfigJson(*value, file_, path(key) + "."));
}

Result<const Json*> ConfigJson::findList(const char* key, size_t n) const {
    const Json* value = find(key);
    if (value != nullptr && (!value->is_array() || value->size() != n)) {
        return mismatch(key, fmt::format("a list with one entry for each of {} layers", n));
    }
    return value;
}

Result<std::optional<std::vector<bool>>> ConfigJson::findSwitches(const char* key, size_t n) const {
    const Json* list = BV_TRY(findList(key, n));
    if (list == nullptr) {
        return std::optional<std::vector<bool>>();
    }
    std::vector<bool> switches;
    for (const Json& value : *list) {
        if (!value.is_number_unsigned() || value.get<uint64_t>() > 1) {
            return mismatch(key, "a list of 0 and 1");
        }
        switches.push_back(value.get<uint64_t>() == 1);
    }
    return std::optional(std::move(switches));
}

Result<std::optional<std::vector<bool>>> ConfigJson::findChoices(const char* key,
                                                                 size_t n,
                                                                 const char* off,
                                                                 const char* on) const {
    const Json* list = BV_TRY(findList(key, n));
    if (list == nullptr) {
        return std::optional<std::vector<bool>>();
    }
    std::vector<bool> choices;
    for (const Json& value : *list) {
        if (value != off && value != on) {
            return fail(ErrorCode::Unsupported, "{}: {}: expected \"{}\" or \"{}\", found {}",
                        file_, path(key), off, on,
                        printable(value.dump(-1, ' ', false, Json::error_handler_t::replace)));
        }
        choices.push_back(value == on);
    }
    return std::optional(std::move(choices));
}

Result<std::vector<size_t>> ConfigJson::findUints(const char* key, uint64_t end) const {
    const Json* value = find(key);
    std::vector<size_t> numbers;
    if (value == nullptr) {
        return numbers;
    }
    const Json list = value->is_array() ? *value : Json::array({*value});
    for (const Json& element : list) {
        if (!element.is_number_unsigned() || element.get<uint64_t>() >= end) {
            return mismatch(key, fmt::format("whole numbers from 0 to {}", end - 1));
        }
        numbers.push_back(element.get<uint64_t>());
    }
    return numbers;
}

Result<void> ConfigJson::textIsOr(const char* key, const char* expected) const {
    const std::optional<std::string> value = BV_TRY(findText(key));
    if (value && *value != expected) {
        return fail(ErrorCode::Unsupported, "{}: {} is \"{}\" (supported: \"{}\")", file_,
                    path(key), printable(*value), expected);
    }
    return {};
}

Result<void> ConfigJson::flagIsOr(const char* key, bool expected) const {
    const std::optional<bool> value = BV_TRY(findFlag(key));
    if (value && *value != expected) {
        return fail(ErrorCode::Unsupported, "{}: {} is {} (supported: {})", file_, path(key),
                    *value, expected);
    }
    return {};
}

}  // namespace belvedere::inference
