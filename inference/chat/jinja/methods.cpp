// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/methods.h"

#include <algorithm>
#include <array>
#include <span>

#include "inference/chat/jinja/text_methods.h"
#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

constexpr std::string_view kOtherTextAttributes[] = {
    "casefold", "encode",    "expandtabs", "format_map", "isidentifier", "isprintable",
    "istitle",  "maketrans", "rindex",     "swapcase",   "translate",
};
constexpr std::string_view kDictMethods[] = {"copy", "get", "items", "keys", "values"};
constexpr std::string_view kDictForbidden[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListMethods[] = {"copy", "count", "index"};
constexpr std::string_view kListForbidden[] = {"append", "clear",  "extend",  "insert",
                                               "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kNumberAttributes[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
    "numerator",        "real",      "to_bytes"};

[[nodiscard]] bool holds(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

[[nodiscard]] Value pairs(Runtime& runtime, const Dict& dict) {
    std::vector<Value> items;
    items.reserve(dict.items().size());
    for (const auto& [key, value] : dict.items()) {
        items.push_back(runtime.heap.tuple({key, value}));
    }
    return runtime.heap.sequence(SequenceKind::Items, std::move(items));
}

[[nodiscard]] Result<Value> callDictMethod(Runtime& runtime,
                                           const Value& object,
                                           std::string_view name,
                                           const CallArguments& arguments) {
    const Dict& dict = *asDict(object);
    runtime.meter.spend(dict.items().size() / 4);
    if (name == "get") {
        if (!arguments.named.empty()) {
            return typeError("dict.get takes no named arguments");
        }
        const auto bound = BV_TRY(bindArguments("dict.get", arguments, {"key", "default"}, 1));
        if (!isHashable(*bound[0], runtime.meter)) {
            return typeError("a {} cannot be a key", typeName(*bound[0]));
        }
        if (const Value* found = dict.find(*bound[0], runtime.meter)) {
            return *found;
        }
        return bound[1] != nullptr ? *bound[1] : Value(NoneType{});
    }
    (void)BV_TRY(bindArguments(name, arguments, {}, 0));
    if (name == "copy") {
        return object;  // nothing can change it, so the copy may be the same
    }
    if (name == "items") {
        return pairs(runtime, dict);
    }
    std::vector<Value> column;
    column.reserve(dict.items().size());
    for (const auto& [key, value] : dict.items()) {
        column.push_back(name == "keys" ? key : value);
    }
    return runtime.heap.sequence(name == "keys" ? SequenceKind::Keys : SequenceKind::Values,
                                 std::move(column));
}

[[nodiscard]] Result<Value> callListMethod(Runtime& runtime,
                                           const Value& object,
                                           std::string_view name,
                                           const CallArguments& arguments) {
    if (name == "copy") {
        (void)BV_TRY(bindArguments(name, arguments, {}, 0));
        return object;
    }
    const auto bound = BV_TRY(bindArguments(name, arguments, {"value"}, 1));
    int64_t n_equal = 0;
    int64_t index = 0;
    for (const Value& item : asSequence(object)->items) {
        if (isEqual(item, *bound[0], runtime.meter)) {
            if (name == "index") {
                return Value(index);
            }
            ++n_equal;
        }
        ++index;
    }
    if (name == "index") {
        return typeError("list.index: the value is not in the list");
    }
    return Value(n_equal);
}

}  // namespace

MethodKind methodKind(const Value& object, std::string_view name) {
    if (name.starts_with("__")) {
        return MethodKind::Forbidden;
    }
    if (asText(object) != nullptr) {
        if (findTextMethod(name) != nullptr) {
            return MethodKind::Callable;
        }
        return holds(kOtherTextAttributes, name) ? MethodKind::Unsupported : MethodKind::None;
    }
    if (asDict(object) != nullptr) {
        if (holds(kDictMethods, name)) {
            return MethodKind::Callable;
        }
        return holds(kDictForbidden, name)
                   ? MethodKind::Forbidden
                   : (name == "fromkeys" ? MethodKind::Unsupported : MethodKind::None);
    }
    if (const Sequence* sequence = asSequence(object)) {
        const bool is_list = sequence->kind == SequenceKind::List;
        if (holds(kListMethods, name) &&
            (is_list || (sequence->kind <= SequenceKind::Range && name != "copy"))) {
            return MethodKind::Callable;
        }
        return is_list && holds(kListForbidden, name) ? MethodKind::Forbidden : MethodKind::None;
    }
    const bool is_number = is<bool>(object) || is<int64_t>(object) || is<double>(object);
    if (is_number && holds(kNumberAttributes, name)) {
        return MethodKind::Unsupported;
    }
    const bool is_loop = is<std::shared_ptr<const Loop>>(object);
    return is_loop && name == "cycle" ? MethodKind::Callable : MethodKind::None;
}

Result<Value> callMethod(Runtime& runtime,
                         const Value& object,
                         std::string_view name,
                         const CallArguments& arguments) {
    if (const Text* text = asText(object)) {
        return findTextMethod(name)(runtime, *text, arguments);
    }
    if (asDict(object) != nullptr) {
        return callDictMethod(runtime, object, name, arguments);
    }
    if (const auto* loop = std::get_if<std::shared_ptr<const Loop>>(&object)) {
        if (arguments.positional.empty()) {
            return typeError("loop.cycle needs something to cycle through");
        }
        return arguments.positional[(*loop)->index0 % arguments.positional.size()];
    }
    return callListMethod(runtime, object, name, arguments);
}

}  // namespace belvedere::inference::jinja
