// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>

#include "inference/chat/jinja/filters.h"
#include "inference/chat/jinja/html.h"
#include "inference/chat/jinja/methods.h"
#include "inference/chat/jinja/operators.h"
#include "inference/chat/jinja/python_text.h"
#include "inference/chat/jinja/tests.h"
#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

using Bound = std::vector<const Value*>;

[[nodiscard]] bool isGiven(const Value* value) {
    return value != nullptr && !is<NoneType>(*value);
}

[[nodiscard]] Value generator(Runtime& runtime, std::vector<Value> items) {
    return runtime.heap.sequence(SequenceKind::Generator, std::move(items));
}

/// item[path]: a number, or names and numbers with dots between. A null path gives the item itself.
[[nodiscard]] Result<Value> attributeByPath(Runtime& runtime,
                                            Value item,
                                            const Value* path,
                                            const Value* fallback) {
    if (!isGiven(path)) {
        return item;
    }
    if (asInteger(*path).has_value()) {
        return itemOf(runtime, item, *path);
    }
    const Text names = BV_TRY(requireText(*path, "the attribute of a filter"));
    std::string_view rest = names.bytes();
    while (true) {
        runtime.meter.spend(1);
        BV_TRY(runtime.check());
        const size_t dot = rest.find('.');
        const std::string_view name = rest.substr(0, dot);
        int64_t index = 0;
        const auto parsed = std::from_chars(name.data(), name.data() + name.size(), index);
        const bool is_index =
            parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() && index >= 0;
        item = BV_TRY(itemOf(runtime, item,
                             is_index ? Value(index) : runtime.heap.text(name, kTemplateOrigin)));
        if (isGiven(fallback) && is<Undefined>(item)) {
            item = *fallback;
        }
        if (dot == std::string_view::npos) {
            return item;
        }
        rest.remove_prefix(dot + 1);
    }
}

/// What sort, min, max and unique compare: text without case, unless told otherwise.
[[nodiscard]] Value comparisonKey(Runtime& runtime, const Value& value, bool is_case_sensitive) {
    const Text* text = asText(value);
    return text == nullptr || is_case_sensitive ? value : mapText(runtime, *text, toLower);
}

[[nodiscard]] Result<Value> lengthFilter(Runtime&,
                                         const Value& input,
                                         const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("length", arguments, {}, 0));
    return Value(BV_TRY(lengthOf(input)));
}

[[nodiscard]] Result<Value> listFilter(Runtime& runtime,
                                       const Value& input,
                                       const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("list", arguments, {}, 0));
    return runtime.heap.list(BV_TRY(iterate(runtime, input)));
}

[[nodiscard]] Result<Value> firstFilter(Runtime& runtime,
                                        const Value& input,
                                        const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("first", arguments, {}, 0));
    const SequencePtr items = BV_TRY(iterateShared(runtime, input));
    return items->items.empty() ? runtime.heap.undefined("no first item, the sequence is empty")
                                : items->items.front();
}

[[nodiscard]] Result<SequencePtr> reversible(Runtime& runtime, const Value& input) {
    const Sequence* sequence = asSequence(input);
    if (sequence != nullptr && sequence->kind == SequenceKind::Generator) {
        return typeError("'generator' object is not reversible");
    }
    return iterateShared(runtime, input);
}

[[nodiscard]] Result<Value> lastFilter(Runtime& runtime,
                                       const Value& input,
                                       const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("last", arguments, {}, 0));
    const SequencePtr items = BV_TRY(reversible(runtime, input));
    return items->items.empty() ? runtime.heap.undefined("no last item, the sequence is empty")
                                : items->items.back();
}

[[nodiscard]] Result<Value> reverseFilter(Runtime& runtime,
                                          const Value& input,
                                          const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("reverse", arguments, {}, 0));
    if (asText(input) != nullptr) {
        const Value backward = int64_t{-1};
        return sliceOf(runtime, input, nullptr, nullptr, &backward);
    }
    std::vector<Value> items = BV_TRY(iterate(runtime, Value(BV_TRY(reversible(runtime, input)))));
    std::ranges::reverse(items);
    return generator(runtime, std::move(items));
}

[[nodiscard]] Result<Value> joinFilter(Runtime& runtime,
                                       const Value& input,
                                       const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("join", arguments, {"d", "attribute"}, 0));
    const Text separator = bound[0] == nullptr ? Text() : BV_TRY(toText(runtime, *bound[0]));
    const SequencePtr items = BV_TRY(iterateShared(runtime, input));
    std::vector<Text> texts;
    for (const Value& item : items->items) {
        texts.push_back(
            BV_TRY(toText(runtime, BV_TRY(attributeByPath(runtime, item, bound[1], nullptr)))));
        runtime.meter.spend(1);
        BV_TRY(runtime.check());
    }
    return Value(BV_TRY(joinTexts(runtime, markSafe(runtime, separator, false), texts)));
}

[[nodiscard]] Result<Value> itemsFilter(Runtime& runtime,
                                        const Value& input,
                                        const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("items", arguments, {}, 0));
    if (is<Undefined>(input)) {
        return generator(runtime, {});
    }
    if (asDict(input) == nullptr) {
        return typeError("only a mapping has item pairs, not {}", typeName(input));
    }
    return generator(runtime,
                     BV_TRY(iterate(runtime, BV_TRY(callMethod(runtime, input, "items", {})))));
}

struct SortOptions {
    bool is_reverse = false;
    bool is_case_sensitive = false;
};

/// The items in the order of their keys.
[[nodiscard]] Result<std::vector<Value>> sortedByKey(Runtime& runtime,
                                                     const std::vector<Value>& items,
                                                     const std::vector<Value>& keys,
                                                     SortOptions options) {
    std::vector<Value> sorted;
    sorted.reserve(items.size());
    for (const size_t i : BV_TRY(sortedOrder(keys, options.is_reverse, runtime.meter))) {
        sorted.push_back(items[i]);
    }
    return sorted;
}

[[nodiscard]] Result<std::vector<Value>> keysOf(Runtime& runtime,
                                                const std::vector<Value>& items,
                                                const Value* attribute,
                                                bool is_case_sensitive) {
    std::vector<Value> keys;
    keys.reserve(items.size());
    for (const Value& item : items) {
        keys.push_back(comparisonKey(runtime,
                                     BV_TRY(attributeByPath(runtime, item, attribute, nullptr)),
                                     is_case_sensitive));
    }
    return keys;
}

/// The keys of sort: the attributes with commas between, as a list, so that equal ones are not
/// ordered (two undefined values).
[[nodiscard]] Result<std::vector<Value>> sortKeys(Runtime& runtime,
                                                  const std::vector<Value>& items,
                                                  const Text& attributes,
                                                  bool is_case_sensitive) {
    CallArguments comma;
    comma.positional.push_back(runtime.heap.text(",", kTemplateOrigin));
    const Value paths = BV_TRY(callMethod(runtime, attributes, "split", comma));
    std::vector<std::vector<Value>> lists(items.size());
    for (const Value& path : asSequence(paths)->items) {
        const std::vector<Value> keys = BV_TRY(keysOf(runtime, items, &path, is_case_sensitive));
        for (size_t i = 0; i < items.size(); ++i) {
            lists[i].push_back(keys[i]);
        }
    }
    std::vector<Value> result;
    for (std::vector<Value>& list : lists) {
        result.push_back(runtime.heap.list(std::move(list)));
    }
    return result;
}

[[nodiscard]] Result<Value> sortFilter(Runtime& runtime,
                                       const Value& input,
                                       const CallArguments& arguments) {
    const Bound bound =
        BV_TRY(bindArguments("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0));
    const SortOptions options{bound[0] != nullptr && isTrue(*bound[0]),
                              bound[1] != nullptr && isTrue(*bound[1])};
    const std::vector<Value> items = BV_TRY(iterate(runtime, input));
    const Text* attributes = bound[2] == nullptr ? nullptr : asText(*bound[2]);
    const std::vector<Value> keys =
        attributes == nullptr
            ? BV_TRY(keysOf(runtime, items, bound[2], options.is_case_sensitive))
            : BV_TRY(sortKeys(runtime, items, *attributes, options.is_case_sensitive));
    return runtime.heap.list(BV_TRY(sortedByKey(runtime, items, keys, options)));
}

[[nodiscard]] Result<Value> dictSortFilter(Runtime& runtime,
                                           const Value& input,
                                           const CallArguments& arguments) {
    const Bound bound =
        BV_TRY(bindArguments("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0));
    const SortOptions options{bound[2] != nullptr && isTrue(*bound[2]),
                              bound[0] != nullptr && isTrue(*bound[0])};
    const std::string by(
        bound[1] == nullptr ? "key" : BV_TRY(requireText(*bound[1], "by of dictsort")).bytes());
    if (by != "key" && by != "value") {
        return typeError("dictsort sorts by key or value, not {}", by);
    }
    if (const Undefined* undefined = std::get_if<Undefined>(&input)) {
        return undefinedError(*undefined);
    }
    if (asDict(input) == nullptr) {
        return typeError("dictsort needs a mapping, not {}", typeName(input));
    }
    const std::vector<Value> items =
        BV_TRY(iterate(runtime, BV_TRY(callMethod(runtime, input, "items", {}))));
    const Value column = int64_t{by == "key" ? 0 : 1};
    const std::vector<Value> keys =
        BV_TRY(keysOf(runtime, items, &column, options.is_case_sensitive));
    return runtime.heap.list(BV_TRY(sortedByKey(runtime, items, keys, options)));
}

[[nodiscard]] Result<Value> uniqueFilter(Runtime& runtime,
                                         const Value& input,
                                         const CallArguments& arguments) {
    const Bound bound =
        BV_TRY(bindArguments("unique", arguments, {"case_sensitive", "attribute"}, 0));
    const std::vector<Value> items = BV_TRY(iterate(runtime, input));
    const std::vector<Value> keys =
        BV_TRY(keysOf(runtime, items, bound[1], bound[0] != nullptr && isTrue(*bound[0])));
    std::vector<Value> seen;
    std::vector<Value> kept;
    for (size_t i = 0; i < items.size(); ++i) {
        if (!isHashable(keys[i], runtime.meter)) {
            return typeError("unhashable type: '{}'", typeName(keys[i]));
        }
        const bool is_new = std::ranges::none_of(
            seen, [&](const Value& key) { return isEqual(key, keys[i], runtime.meter); });
        BV_TRY(runtime.check());
        if (is_new) {
            seen.push_back(keys[i]);
            kept.push_back(items[i]);
        }
    }
    return generator(runtime, std::move(kept));
}

template <Order kWanted>
[[nodiscard]] Result<Value> extremeFilter(Runtime& runtime,
                                          const Value& input,
                                          const CallArguments& arguments) {
    const Bound bound =
        BV_TRY(bindArguments("min and max", arguments, {"case_sensitive", "attribute"}, 0));
    const std::vector<Value> items = BV_TRY(iterate(runtime, input));
    const std::vector<Value> keys =
        BV_TRY(keysOf(runtime, items, bound[1], bound[0] != nullptr && isTrue(*bound[0])));
    if (items.empty()) {
        return runtime.heap.undefined("no aggregated item, the sequence is empty");
    }
    size_t best = 0;
    for (size_t i = 1; i < items.size(); ++i) {
        if (BV_TRY(compareValues(keys[i], keys[best], kWanted == Order::Less ? "<" : ">",
                                 runtime.meter)) == kWanted) {
            best = i;
        }
    }
    return items[best];
}

[[nodiscard]] Result<Value> sumFilter(Runtime& runtime,
                                      const Value& input,
                                      const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("sum", arguments, {"attribute", "start"}, 0));
    Value total = bound[1] == nullptr ? Value(int64_t{0}) : *bound[1];
    if (asText(total) != nullptr) {
        return typeError("sum() cannot sum strings");
    }
    const std::vector<Value> items = BV_TRY(iterate(runtime, input));
    for (const Value& item : items) {
        total = BV_TRY(applyBinary(runtime, BinaryOperator::Add, total,
                                   BV_TRY(attributeByPath(runtime, item, bound[0], nullptr))));
        runtime.meter.spend(1);
        BV_TRY(runtime.check());
    }
    return total;
}

[[nodiscard]] Result<Value> mapFilter(Runtime& runtime,
                                      const Value& input,
                                      const CallArguments& arguments) {
    if (!isTrue(input)) {  // also what cannot be iterated: Jinja2 looks at nothing then
        return generator(runtime, {});
    }
    const std::vector<Value> items = BV_TRY(iterate(runtime, input));
    std::vector<Value> mapped;
    mapped.reserve(items.size());
    if (arguments.positional.empty()) {
        const Bound bound = BV_TRY(bindArguments("map", arguments, {"attribute", "default"}, 1));
        for (const Value& item : items) {
            mapped.push_back(BV_TRY(attributeByPath(runtime, item, bound[0], bound[1])));
        }
        return generator(runtime, std::move(mapped));
    }
    const Text name =
        BV_TRY(requireText(arguments.positional.front(), "the filter that map applies"));
    const FilterFunction filter = findFilter(name.bytes());
    if (filter == nullptr) {
        return fail(ErrorCode::Unsupported, "filter {} is not supported", name.bytes());
    }
    CallArguments rest = arguments;
    rest.positional.erase(rest.positional.begin());
    for (const Value& item : items) {
        mapped.push_back(BV_TRY(filter(runtime, item, rest)));
        runtime.meter.spend(1);
        BV_TRY(runtime.check());
    }
    return generator(runtime, std::move(mapped));
}

enum class SelectBy { Item, Attribute };

/// select, reject, selectattr, rejectattr: the items that pass (or fail) a test, by default that of
/// being true.
template <SelectBy kBy, bool kKeepsPassing>
[[nodiscard]] Result<Value> selectFilter(Runtime& runtime,
                                         const Value& input,
                                         const CallArguments& arguments) {
    if (!isTrue(input)) {
        return generator(runtime, {});
    }
    CallArguments rest = arguments;
    Value attribute = NoneType{};
    if (kBy == SelectBy::Attribute) {
        if (rest.positional.empty()) {
            return typeError("selectattr and rejectattr need the name of an attribute");
        }
        attribute = rest.positional.front();
        rest.positional.erase(rest.positional.begin());
    }
    TestFunction test = nullptr;
    if (!rest.positional.empty()) {
        const Text name =
            BV_TRY(requireText(rest.positional.front(), "the test that select applies"));
        test = findTest(name.bytes());
        if (test == nullptr) {
            return fail(ErrorCode::Unsupported, "test {} is not supported", name.bytes());
        }
        rest.positional.erase(rest.positional.begin());
    }
    std::vector<Value> kept;
    for (const Value& item : BV_TRY(iterate(runtime, input))) {
        const Value tested = BV_TRY(attributeByPath(runtime, item, &attribute, nullptr));
        const bool passes = test == nullptr ? isTrue(tested) : BV_TRY(test(runtime, tested, rest));
        if (passes == kKeepsPassing) {
            kept.push_back(item);
        }
        runtime.meter.spend(1);
        BV_TRY(runtime.check());
    }
    return generator(runtime, std::move(kept));
}

constexpr std::array<std::pair<std::string_view, FilterFunction>, 19> kFilters = {{
    {"count", lengthFilter},
    {"dictsort", dictSortFilter},
    {"first", firstFilter},
    {"items", itemsFilter},
    {"join", joinFilter},
    {"last", lastFilter},
    {"length", lengthFilter},
    {"list", listFilter},
    {"map", mapFilter},
    {"max", extremeFilter<Order::Greater>},
    {"min", extremeFilter<Order::Less>},
    {"reject", selectFilter<SelectBy::Item, false>},
    {"rejectattr", selectFilter<SelectBy::Attribute, false>},
    {"reverse", reverseFilter},
    {"select", selectFilter<SelectBy::Item, true>},
    {"selectattr", selectFilter<SelectBy::Attribute, true>},
    {"sort", sortFilter},
    {"sum", sumFilter},
    {"unique", uniqueFilter},
}};

}  // namespace

FilterFunction findSequenceFilter(std::string_view name) {
    const auto found =
        std::ranges::find(kFilters, name, &std::pair<std::string_view, FilterFunction>::first);
    return found == kFilters.end() ? nullptr : found->second;
}

}  // namespace belvedere::inference::jinja
