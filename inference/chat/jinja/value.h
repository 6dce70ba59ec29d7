// SPDX-License-Identifier: Apache-2.0
#pragma once

// The values of a template: Python's, as far as templates can see them. Immutable except namespaces
// and generators, so no cycle can form without a namespace; the interpreter empties all of them at
// its end. One rendering, one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "inference/chat/jinja/text.h"
#include "kernels/base/result.h"

namespace belvedere::inference::jinja {

struct Sequence;
class Dict;
struct Namespace;
struct Callable;
struct Loop;

struct NoneType {};

/// Jinja's default Undefined: empty text, false and an empty sequence; anything else is the error
/// `message`.
struct Undefined {
    std::shared_ptr<const std::string> message;
};

using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;

using Value = std::variant<Undefined,
                           NoneType,
                           bool,
                           int64_t,
                           double,
                           Text,
                           SequencePtr,
                           DictPtr,
                           std::shared_ptr<Namespace>,
                           std::shared_ptr<const Callable>,
                           std::shared_ptr<const Loop>>;

enum class SequenceKind { List, Tuple, Range, Keys, Values, Items, Generator };

struct Sequence {
    SequenceKind kind = SequenceKind::List;
    std::vector<Value> items;
    std::string repr;              ///< of a Range: "range(0, 3)"
    mutable bool used_up = false;  ///< of a Generator: it yields its items only once
    size_t depth = 0;
    MemoryCharge charge;
};

/// Insertion order, Python's key equality (1 == 1.0 == True).
class Dict {
  public:
    using Item = std::pair<Value, Value>;

    Dict(Meter* meter, std::vector<Item> items);

    [[nodiscard]] const std::vector<Item>& items() const { return items_; }

    /// nullptr when there is no such key.
    [[nodiscard]] const Value* find(std::string_view key) const;
    [[nodiscard]] const Value* find(const Value& key, Meter& meter) const;

    [[nodiscard]] size_t depth() const { return depth_; }

  private:
    std::vector<Item> items_;  // no two keys are equal
    std::unordered_map<std::string_view, size_t>
        by_text_;  // of the text keys; filled only for large dicts
    size_t depth_ = 0;
    MemoryCharge charge_;
};

struct Namespace {
    std::vector<std::pair<std::string, Value>> attributes;
    MemoryCharge charge;

    [[nodiscard]] Value* find(std::string_view name);
};

struct MacroStatement;
class Scope;

enum class BuiltinFunction { Range, Dict, Namespace, RaiseException, StrftimeNow };

/// A macro with the scope that it was defined in (which the interpreter empties at its end).
struct MacroFunction {
    const MacroStatement* macro = nullptr;
    std::shared_ptr<Scope> scope;
};

struct BoundMethod {
    Value receiver;
    std::string name;
};

struct Callable {
    std::variant<BuiltinFunction, MacroFunction, BoundMethod> target;
    size_t depth = 0;
    MemoryCharge charge;
};

/// The special variable `loop`, frozen at one turn of a for loop.
struct Loop {
    SequencePtr items;
    size_t index0 = 0;
    size_t loop_depth = 1;  ///< 1 for the outermost
};

/// Makes values and counts their memory.
class Heap {
  public:
    explicit Heap(Meter* meter) : meter_(meter) {}

    [[nodiscard]] Meter* meter() const { return meter_; }

    [[nodiscard]] Value text(std::string_view bytes, Origin origin) const;

    [[nodiscard]] Value list(std::vector<Value> items) const {
        return sequence(SequenceKind::List, std::move(items));
    }

    [[nodiscard]] Value tuple(std::vector<Value> items) const {
        return sequence(SequenceKind::Tuple, std::move(items));
    }

    [[nodiscard]] Value sequence(SequenceKind kind,
                                 std::vector<Value> items,
                                 std::string repr = {}) const;
    [[nodiscard]] Value dict(std::vector<Dict::Item> items) const;
    [[nodiscard]] Value callable(decltype(Callable::target) target) const;
    [[nodiscard]] Value undefined(std::string message) const;

  private:
    Meter* meter_;
};

template <class T>
[[nodiscard]] bool is(const Value& value) {
    return std::holds_alternative<T>(value);
}

[[nodiscard]] inline bool isNumber(const Value& value) {
    return is<bool>(value) || is<int64_t>(value) || is<double>(value);
}

[[nodiscard]] inline const Text* asText(const Value& value) {
    return std::get_if<Text>(&value);
}

[[nodiscard]] inline const Sequence* asSequence(const Value& value) {
    const SequencePtr* found = std::get_if<SequencePtr>(&value);
    return found == nullptr ? nullptr : found->get();
}

[[nodiscard]] inline const Dict* asDict(const Value& value) {
    const DictPtr* found = std::get_if<DictPtr>(&value);
    return found == nullptr ? nullptr : found->get();
}

/// A list or a tuple: what Python can add, order and index.
[[nodiscard]] const Sequence* asListOrTuple(const Value& value);

/// The whole number of an int or a bool.
[[nodiscard]] std::optional<int64_t> asInteger(const Value& value);

/// Python's name of the type: "str", "NoneType", "dict_items", ...
[[nodiscard]] std::string_view typeName(const Value& value);

/// How deep containers nest: 0 for a scalar.
[[nodiscard]] size_t depthOf(const Value& value);

/// bool(value)
[[nodiscard]] bool isTrue(const Value& value);

/// value == other; never an error. Meaningless once the meter is exhausted.
[[nodiscard]] bool isEqual(const Value& a, const Value& b, Meter& meter);

/// Whether Python can hash it, so that it can be a key.
[[nodiscard]] bool isHashable(const Value& value, Meter& meter);

enum class Order { Less, Equal, Greater, Unordered };

/// Order of two values for <, sort, min and max. Unordered: a NaN.
/// Errors: InvalidArgument when Python cannot compare the types; `operation` is named in it ("<").
[[nodiscard]] Result<Order> compareValues(const Value& a,
                                          const Value& b,
                                          std::string_view operation,
                                          Meter& meter);

/// The order in which `keys` stand sorted, equal ones as they were (also in reverse), as Python's
/// sorted(). Errors: InvalidArgument when two of them cannot be compared. Meaningless once the
/// meter is exhausted.
[[nodiscard]] Result<std::vector<size_t>> sortedOrder(const std::vector<Value>& keys,
                                                      bool is_reverse,
                                                      Meter& meter);

/// Order of an int and a float without loss.
[[nodiscard]] Order compareNumbers(const Value& a, const Value& b);

}  // namespace belvedere::inference::jinja
