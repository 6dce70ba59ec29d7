// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace belvedere::inference::jinja {
namespace {

constexpr size_t kMinIndexed = 16;  // dicts below this size are searched from front to back
constexpr size_t kIndexEntryBytes = 48;

[[nodiscard]] size_t deepest(const std::vector<Value>& items) {
    size_t depth = 0;
    for (const Value& item : items) {
        depth = std::max(depth, depthOf(item));
    }
    return depth + 1;
}

[[nodiscard]] bool equalItems(const std::vector<Value>& a,
                              const std::vector<Value>& b,
                              Meter& meter) {
    if (a.size() != b.size()) {
        return false;
    }
    for (size_t i = 0; i < a.size(); ++i) {
        if (!isEqual(a[i], b[i], meter)) {
            return false;
        }
    }
    return true;
}

[[nodiscard]] bool equalDicts(const Dict& a, const Dict& b, Meter& meter) {
    if (a.items().size() != b.items().size()) {
        return false;
    }
    return std::ranges::all_of(a.items(), [&](const Dict::Item& item) {
        const Value* other = b.find(item.first, meter);
        return other != nullptr && isEqual(item.second, *other, meter);
    });
}

[[nodiscard]] Result<Order> compareSequences(const Sequence& a,
                                             const Sequence& b,
                                             std::string_view operation,
                                             Meter& meter) {
    const size_t n = std::min(a.items.size(), b.items.size());
    for (size_t i = 0; i < n; ++i) {
        if (!isEqual(a.items[i], b.items[i], meter)) {
            return compareValues(a.items[i], b.items[i], operation, meter);
        }
    }
    if (a.items.size() == b.items.size()) {
        return Order::Equal;
    }
    return a.items.size() < b.items.size() ? Order::Less : Order::Greater;
}

template <class T>
[[nodiscard]] Order orderOf(T a, T b) {
    if (a == b) {
        return Order::Equal;
    }
    return a < b ? Order::Less : (a > b ? Order::Greater : Order::Unordered);
}

/// long double holds every int64_t exactly where it has a 64-bit significand (x86) or more.
[[nodiscard]] long double wideNumber(const Value& value) {
    if (const double* real = std::get_if<double>(&value)) {
        return static_cast<long double>(*real);
    }
    return static_cast<long double>(asInteger(value).value_or(0));
}

}  // namespace

Dict::Dict(Meter* meter, std::vector<Item> items)
    : items_(std::move(items)), charge_(meter, kNodeBytes + items_.capacity() * sizeof(Item)) {
    for (const Item& item : items_) {
        depth_ = std::max({depth_, depthOf(item.first), depthOf(item.second)});
    }
    ++depth_;
    if (items_.size() < kMinIndexed) {
        return;
    }
    by_text_.reserve(items_.size());
    for (size_t i = 0; i < items_.size(); ++i) {
        if (const Text* key = asText(items_[i].first)) {
            by_text_.emplace(key->bytes(), i);
        }
    }
    charge_.grow(by_text_.size() * kIndexEntryBytes);
}

const Value* Dict::find(std::string_view key) const {
    if (!by_text_.empty()) {
        const auto found = by_text_.find(key);
        return found == by_text_.end() ? nullptr : &items_[found->second].second;
    }
    for (const Item& item : items_) {
        const Text* text = asText(item.first);
        if (text != nullptr && text->bytes() == key) {
            return &item.second;
        }
    }
    return nullptr;
}

const Value* Dict::find(const Value& key, Meter& meter) const {
    if (const Text* text = asText(key)) {
        meter.spendBytes(text->bytes().size());
        return find(text->bytes());
    }
    for (const Item& item : items_) {
        if (isEqual(item.first, key, meter)) {
            return &item.second;
        }
    }
    return nullptr;
}

Value* Namespace::find(std::string_view name) {
    for (auto& [attribute, value] : attributes) {
        if (attribute == name) {
            return &value;
        }
    }
    return nullptr;
}

Value Heap::text(std::string_view bytes, Origin origin) const {
    TextBuilder builder(meter_);
    builder.append(bytes, origin);
    return builder.finish();
}

Value Heap::sequence(SequenceKind kind, std::vector<Value> items, std::string repr) const {
    const size_t depth = deepest(items);
    const size_t n_bytes = kNodeBytes + items.capacity() * sizeof(Value);
    return std::make_shared<const Sequence>(Sequence{kind, std::move(items), std::move(repr), false,
                                                     depth, MemoryCharge(meter_, n_bytes)});
}

Value Heap::dict(std::vector<Dict::Item> items) const {
    return std::make_shared<const Dict>(meter_, std::move(items));
}

Value Heap::callable(decltype(Callable::target) target) const {
    const BoundMethod* bound = std::get_if<BoundMethod>(&target);
    const size_t depth = bound == nullptr ? 0 : depthOf(bound->receiver) + 1;
    return std::make_shared<const Callable>(
        Callable{std::move(target), depth, MemoryCharge(meter_, kNodeBytes)});
}

Value Heap::undefined(std::string message) const {
    return Undefined{std::make_shared<const std::string>(std::move(message))};
}

const Sequence* asListOrTuple(const Value& value) {
    const Sequence* found = asSequence(value);
    const bool fits = found != nullptr &&
                      (found->kind == SequenceKind::List || found->kind == SequenceKind::Tuple);
    return fits ? found : nullptr;
}

std::optional<int64_t> asInteger(const Value& value) {
    if (const int64_t* whole = std::get_if<int64_t>(&value)) {
        return *whole;
    }
    if (const bool* truth = std::get_if<bool>(&value)) {
        return *truth ? 1 : 0;
    }
    return std::nullopt;
}

std::string_view typeName(const Value& value) {
    constexpr std::string_view kNames[] = {"Undefined", "NoneType", "bool",       "int",
                                           "float",     "str",      "",           "dict",
                                           "Namespace", "function", "LoopContext"};
    const Sequence* sequence = asSequence(value);
    if (sequence == nullptr) {
        return kNames[value.index()];
    }
    constexpr std::string_view kSequenceNames[] = {
        "list", "tuple", "range", "dict_keys", "dict_values", "dict_items", "generator"};
    return kSequenceNames[static_cast<size_t>(sequence->kind)];
}

size_t depthOf(const Value& value) {
    if (const Sequence* sequence = asSequence(value)) {
        return sequence->depth;
    }
    if (const Dict* dict = asDict(value)) {
        return dict->depth();
    }
    if (const auto* callable = std::get_if<std::shared_ptr<const Callable>>(&value)) {
        return (*callable)->depth;
    }
    if (const auto* loop = std::get_if<std::shared_ptr<const Loop>>(&value)) {
        return (*loop)->items->depth + 1;
    }
    return 0;
}

bool isTrue(const Value& value) {
    if (is<Undefined>(value) || is<NoneType>(value)) {
        return false;
    }
    if (const Text* text = asText(value)) {
        return !text->empty();
    }
    if (const double* real = std::get_if<double>(&value)) {
        return *real != 0.0;
    }
    if (const Sequence* sequence = asSequence(value)) {
        return sequence->kind == SequenceKind::Generator || !sequence->items.empty();
    }
    if (const Dict* dict = asDict(value)) {
        return !dict->items().empty();
    }
    return asInteger(value).value_or(1) != 0;
}

bool isEqual(const Value& a, const Value& b, Meter& meter) {
    if (!meter.spend(1)) {
        return false;
    }
    if (isNumber(a) && isNumber(b)) {
        return compareNumbers(a, b) == Order::Equal;
    }
    if (a.index() != b.index()) {
        return false;
    }
    if (const Text* text = asText(a)) {
        meter.spendBytes(text->bytes().size());
        return text->bytes() == asText(b)->bytes();
    }
    if (const Sequence* sequence = asSequence(a)) {
        const Sequence* other = asSequence(b);
        const bool comparable =
            sequence->kind <= SequenceKind::Range && sequence->kind == other->kind;
        return sequence == other ||
               (comparable && equalItems(sequence->items, other->items, meter));
    }
    if (const Dict* dict = asDict(a)) {
        return dict == asDict(b) || equalDicts(*dict, *asDict(b), meter);
    }
    if (const auto* space = std::get_if<std::shared_ptr<Namespace>>(&a)) {
        return *space == std::get<std::shared_ptr<Namespace>>(b);
    }
    if (const auto* callable = std::get_if<std::shared_ptr<const Callable>>(&a)) {
        return *callable == std::get<std::shared_ptr<const Callable>>(b);
    }
    if (const auto* loop = std::get_if<std::shared_ptr<const Loop>>(&a)) {
        return (*loop)->items == std::get<std::shared_ptr<const Loop>>(b)->items;
    }
    return true;  // two undefined values, or None twice
}

bool isHashable(const Value& value, Meter& meter) {
    if (const Sequence* sequence = asSequence(value)) {
        const bool mutable_kind = sequence->kind == SequenceKind::List ||
                                  sequence->kind == SequenceKind::Keys ||
                                  sequence->kind == SequenceKind::Items;
        return !mutable_kind && meter.spend(1) &&
               std::ranges::all_of(sequence->items,
                                   [&](const Value& item) { return isHashable(item, meter); });
    }
    return !is<DictPtr>(value);
}

Order compareNumbers(const Value& a, const Value& b) {
    if (is<double>(a) || is<double>(b)) {
        return orderOf(wideNumber(a), wideNumber(b));
    }
    return orderOf(asInteger(a).value_or(0), asInteger(b).value_or(0));
}

Result<std::vector<size_t>> sortedOrder(const std::vector<Value>& keys,
                                        bool is_reverse,
                                        Meter& meter) {
    // Merges runs of doubling length: a comparison can fail, which std::stable_sort has no way to
    // say.
    std::vector<size_t> order(keys.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::vector<size_t> merged(keys.size());
    const Order moves_up = is_reverse ? Order::Greater : Order::Less;
    for (size_t run = 1; run < keys.size(); run *= 2) {
        for (size_t begin = 0; begin < keys.size(); begin += 2 * run) {
            const size_t middle = std::min(begin + run, keys.size());
            const size_t end = std::min(begin + 2 * run, keys.size());
            size_t left = begin;
            size_t right = middle;
            for (size_t i = begin; i < end; ++i) {
                bool takes_right = left == middle;
                if (left < middle && right < end) {
                    takes_right = BV_TRY(compareValues(keys[order[right]], keys[order[left]], "<",
                                                       meter)) == moves_up;
                }
                merged[i] = order[takes_right ? right++ : left++];
            }
        }
        std::swap(order, merged);
    }
    return order;
}

Result<Order> compareValues(const Value& a,
                            const Value& b,
                            std::string_view operation,
                            Meter& meter) {
    meter.spend(1);
    if (isNumber(a) && isNumber(b)) {
        return compareNumbers(a, b);
    }
    for (const Value* value : {&a, &b}) {
        if (const Undefined* undefined = std::get_if<Undefined>(value)) {
            return fail(ErrorCode::InvalidArgument, "{}", *undefined->message);
        }
    }
    if (asText(a) != nullptr && asText(b) != nullptr) {
        meter.spendBytes(std::min(asText(a)->bytes().size(), asText(b)->bytes().size()));
        return orderOf(asText(a)->bytes().compare(asText(b)->bytes()), 0);
    }
    const Sequence* left = asListOrTuple(a);
    const Sequence* right = asListOrTuple(b);
    if (left != nullptr && right != nullptr && left->kind == right->kind) {
        return compareSequences(*left, *right, operation, meter);
    }
    return fail(ErrorCode::InvalidArgument,
                "'{}' is not supported between instances of '{}' and '{}'", operation, typeName(a),
                typeName(b));
}

}  // namespace belvedere::inference::jinja
