// SPDX-License-Identifier: Apache-2.0
#include "agent/tool_calls/schema.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "agent/tool_calls/lenient_json.h"
#include "agent/tool_calls/markers.h"

namespace belvedere::agent {

namespace {

constexpr size_t kMaxSteps = 64;  // nodes followed for one view

const Json* member(const Json& object, const char* name) {
    if (!object.is_object()) {
        return nullptr;
    }
    const auto it = object.find(name);
    return it == object.end() ? nullptr : &*it;
}

/// "#/$defs/point" inside root; nullptr: not there, or not local.
const Json* resolveReference(const Json& root, const std::string& reference) {
    if (!reference.starts_with('#')) {
        return nullptr;
    }
    const Json* node = &root;
    std::string_view path = std::string_view(reference).substr(1);
    while (path.starts_with('/')) {
        path.remove_prefix(1);
        const std::string_view part = path.substr(0, path.find('/'));
        path.remove_prefix(part.size());
        node = member(*node, std::string(part).c_str());
        if (node == nullptr) {
            return nullptr;
        }
    }
    return node;
}

bool namesType(const Json& node, std::string_view type) {
    if (const Json* declared = member(node, "type")) {
        const auto is = [&](const Json& name) {
            return name.is_string() && name.get_ref<const std::string&>() == type;
        };
        return declared->is_array() ? std::any_of(declared->begin(), declared->end(), is)
                                    : is(*declared);
    }
    if (const Json* values = member(node, "enum"); values != nullptr && values->is_array()) {
        return type == "string" && std::any_of(values->begin(), values->end(),
                                               [](const Json& value) { return value.is_string(); });
    }
    return (type == "object" && member(node, "properties") != nullptr) ||
           (type == "array" && member(node, "items") != nullptr);
}

std::optional<Json> wholeJson(std::string_view text) {
    Result<LenientValue> read = readLenientJson(text);
    if (!read.has_value() || !trimmed(text.substr(read->n_bytes)).empty()) {
        return std::nullopt;
    }
    return std::move(read->value);
}

bool fits(const Json& value, const SchemaView& schema) {
    return (value.is_number_integer() && (schema.allows("integer") || schema.allows("number"))) ||
           (value.is_number_float() && schema.allows("number")) ||
           (value.is_boolean() && schema.allows("boolean")) ||
           (value.is_object() && schema.allows("object")) ||
           (value.is_array() && schema.allows("array")) ||
           (value.is_null() && schema.allows("null"));
}

Json objectFrom(std::vector<NamedValue> children) {
    Json json = Json::object();
    auto& members = json.get_ref<Json::object_t&>();
    std::unordered_map<std::string, size_t> index;
    std::vector<bool> repeats;
    for (NamedValue& child : children) {
        const auto [it, is_new] = index.emplace(child.name, members.size());
        if (is_new) {
            members.emplace_back(std::move(child.name), std::move(child.value));
            repeats.push_back(false);
            continue;
        }
        Json& value = std::next(members.begin(), static_cast<std::ptrdiff_t>(it->second))->second;
        if (!repeats[it->second]) {
            value = Json::array({std::move(value)});
            repeats[it->second] = true;
        }
        value.push_back(std::move(child.value));
    }
    return json;
}

}  // namespace

SchemaView::SchemaView(const Json& root) : SchemaView(&root, root) {}

SchemaView::SchemaView(const Json* root, const Json& node) : root_(root) {
    size_t n_steps = 0;
    collect(node, n_steps);
}

void SchemaView::collect(const Json& node, size_t& n_steps) {
    if (++n_steps > kMaxSteps || !node.is_object()) {
        return;
    }
    if (const Json* reference = member(node, "$ref");
        reference != nullptr && reference->is_string()) {
        if (const Json* target =
                resolveReference(*root_, reference->get_ref<const std::string&>())) {
            collect(*target, n_steps);
        }
        return;
    }
    alternatives_.push_back(&node);
    if (const Json* nullable = member(node, "nullable"); nullable != nullptr && *nullable == true) {
        static const Json kNull = {{"type", "null"}};
        alternatives_.push_back(&kNull);
    }
    for (const char* key : {"anyOf", "oneOf", "allOf"}) {
        if (const Json* parts = member(node, key); parts != nullptr && parts->is_array()) {
            for (const Json& part : *parts) {
                collect(part, n_steps);
            }
        }
    }
}

SchemaView SchemaView::property(std::string_view name) const {
    SchemaView view;
    view.root_ = root_;
    size_t n_steps = 0;
    for (const Json* node : alternatives_) {
        const Json* properties = member(*node, "properties");
        const Json* schema =
            properties == nullptr ? nullptr : member(*properties, std::string(name).c_str());
        if (schema == nullptr) {
            schema = member(*node, "additionalProperties");
        }
        if (schema != nullptr) {
            view.collect(*schema, n_steps);
        }
    }
    return view;
}

SchemaView SchemaView::items() const {
    SchemaView view;
    view.root_ = root_;
    size_t n_steps = 0;
    for (const Json* node : alternatives_) {
        if (const Json* schema = member(*node, "items")) {
            view.collect(*schema, n_steps);
        }
    }
    return view;
}

bool SchemaView::allows(std::string_view type) const {
    return std::any_of(alternatives_.begin(), alternatives_.end(),
                       [&](const Json* node) { return namesType(*node, type); });
}

Json valueFromText(std::string_view text, const SchemaView& schema) {
    if (!schema.isKnown() || schema.allows("string")) {
        return std::string(text);
    }
    const std::string_view word = trimmed(text);
    if (word.empty()) {
        if (schema.allows("object")) {
            return Json::object();
        }
        return schema.allows("array") ? Json(Json::array()) : Json(std::string(text));
    }
    constexpr std::array<std::string_view, 3> kNulls = {"null", "Null", "NULL"};
    if (schema.allows("null") && std::find(kNulls.begin(), kNulls.end(), word) != kNulls.end()) {
        return nullptr;
    }
    std::optional<Json> value = wholeJson(word);
    return value && fits(*value, schema) ? std::move(*value) : Json(std::string(text));
}

Json valueFromChildren(std::vector<NamedValue> children,
                       std::string_view text,
                       const SchemaView& schema) {
    const bool all_items =
        std::all_of(children.begin(), children.end(),
                    [](const NamedValue& child) { return child.name == "item"; });
    const bool wants_array = schema.allows("array");
    const bool wants_object = schema.allows("object");
    if ((wants_array && !wants_object) ||
        (all_items && !children.empty() && (wants_array || !wants_object))) {
        Json json = Json::array();
        for (NamedValue& child : children) {
            json.push_back(std::move(child.value));
        }
        return json;
    }
    if (!trimmed(text).empty()) {
        children.push_back({"$text", std::string(text)});
    }
    return objectFrom(std::move(children));
}

void coerceArguments(Json& arguments, const Json& parameters) {
    const SchemaView schema(parameters);
    for (auto& [name, value] : arguments.items()) {
        if (value.is_string()) {
            const SchemaView expected = schema.property(name);
            if (expected.isKnown()) {
                value = valueFromText(value.get<std::string>(), expected);
            }
        }
    }
}

}  // namespace belvedere::agent
