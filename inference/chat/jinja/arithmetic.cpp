// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "inference/chat/jinja/format.h"
#include "inference/chat/jinja/html.h"
#include "inference/chat/jinja/operators.h"
#include "inference/chat/jinja/search.h"

namespace belvedere::inference::jinja {
namespace {

[[nodiscard]] std::string_view symbolOf(BinaryOperator operation) {
    constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**", "and", "or"};
    return kSymbols[static_cast<size_t>(operation)];
}

[[nodiscard]] tl::unexpected<Error> unsupportedTypes(BinaryOperator operation,
                                                     const Value& left,
                                                     const Value& right) {
    for (const Value* value : {&left, &right}) {
        if (const Undefined* undefined = std::get_if<Undefined>(value)) {
            return undefinedError(*undefined);
        }
    }
    return typeError("unsupported operand types for {}: '{}' and '{}'", symbolOf(operation),
                     typeName(left), typeName(right));
}

[[nodiscard]] double toDouble(const Value& value) {
    const double* real = std::get_if<double>(&value);
    return real != nullptr ? *real : static_cast<double>(asInteger(value).value_or(0));
}

[[nodiscard]] Result<Value> addTexts(Runtime& runtime, const Text& left, const Text& right) {
    const bool is_markup = left.isMarkup() || right.isMarkup();
    const Text a = is_markup ? BV_TRY(escapeHtml(runtime, left)) : left;
    const Text b = is_markup ? BV_TRY(escapeHtml(runtime, right)) : right;
    BV_TRY(runtime.reserve(a.bytes().size() + b.bytes().size()));
    TextBuilder builder(&runtime.meter);
    builder.append(a);
    builder.append(b);
    return Value(builder.finish(is_markup));
}

[[nodiscard]] Result<Value> repeatText(Runtime& runtime, const Text& text, int64_t count) {
    const size_t n = text.empty() ? 0 : static_cast<size_t>(std::max<int64_t>(count, 0));
    if (n > 0 && text.bytes().size() > runtime.limits.max_value_bytes / n) {
        return fail(ErrorCode::Corrupt, "repeating a text {} times needs too much memory", n);
    }
    BV_TRY(runtime.reserve(text.bytes().size() * n));
    runtime.meter.spend(n / 16);
    TextBuilder builder(&runtime.meter);
    for (size_t i = 0; i < n; ++i) {
        builder.append(text);
    }
    return Value(builder.finish(text.isMarkup()));
}

[[nodiscard]] Result<Value> repeatSequence(Runtime& runtime,
                                           const Sequence& sequence,
                                           int64_t count) {
    const size_t n = sequence.items.empty() ? 0 : static_cast<size_t>(std::max<int64_t>(count, 0));
    if (n > 0 && sequence.items.size() * sizeof(Value) > runtime.limits.max_value_bytes / n) {
        return fail(ErrorCode::Corrupt, "repeating a {} times needs too much memory", n);
    }
    BV_TRY(runtime.reserve(sequence.items.size() * sizeof(Value) * n));
    std::vector<Value> items;
    for (size_t i = 0; i < n; ++i) {
        items.insert(items.end(), sequence.items.begin(), sequence.items.end());
    }
    return runtime.heap.sequence(sequence.kind, std::move(items));
}

[[nodiscard]] Result<Value> concatenate(Runtime& runtime,
                                        const Sequence& left,
                                        const Sequence& right) {
    BV_TRY(runtime.reserve((left.items.size() + right.items.size()) * sizeof(Value)));
    std::vector<Value> items = left.items;
    items.insert(items.end(), right.items.begin(), right.items.end());
    return runtime.heap.sequence(left.kind, std::move(items));
}

[[nodiscard]] tl::unexpected<Error> tooLarge(BinaryOperator operation) {
    return fail(ErrorCode::Unsupported, "the result of {} does not fit in 64 bits",
                symbolOf(operation));
}

[[nodiscard]] Result<Value> integerPower(int64_t base, int64_t exponent) {
    if (exponent < 0) {
        if (base == 0) {
            return typeError("0 cannot be raised to a negative power");
        }
        return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    }
    int64_t result = 1;
    while (exponent > 0) {
        if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
            return tooLarge(BinaryOperator::Power);
        }
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
            return tooLarge(BinaryOperator::Power);
        }
    }
    return Value(result);
}

/// Python rounds the quotient down and gives the remainder the sign of the divisor.
[[nodiscard]] Result<Value> integerDivision(BinaryOperator operation, int64_t a, int64_t b) {
    if (b == 0) {
        return typeError("division by zero");
    }
    if (operation == BinaryOperator::Divide) {
        return Value(
            static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    }
    if (b == -1) {  // the one divisor whose quotient can overflow
        if (operation == BinaryOperator::Modulo) {
            return Value(int64_t{0});
        }
        int64_t negated = 0;
        return __builtin_sub_overflow(int64_t{0}, a, &negated) ? Result<Value>(tooLarge(operation))
                                                               : Value(negated);
    }
    const bool rounds = a % b != 0 && (a % b < 0) != (b < 0);
    if (operation == BinaryOperator::FloorDivide) {
        return Value(a / b - (rounds ? 1 : 0));
    }
    return Value(a % b + (rounds ? b : 0));
}

[[nodiscard]] Result<Value> applyToIntegers(BinaryOperator operation, int64_t a, int64_t b) {
    int64_t result = 0;
    bool overflows = false;
    switch (operation) {
        case BinaryOperator::Add:
            overflows = __builtin_add_overflow(a, b, &result);
            break;
        case BinaryOperator::Subtract:
            overflows = __builtin_sub_overflow(a, b, &result);
            break;
        case BinaryOperator::Multiply:
            overflows = __builtin_mul_overflow(a, b, &result);
            break;
        case BinaryOperator::Power:
            return integerPower(a, b);
        default:
            return integerDivision(operation, a, b);
    }
    if (overflows) {
        return tooLarge(operation);
    }
    return Value(result);
}

[[nodiscard]] Result<Value> applyToDoubles(BinaryOperator operation, double a, double b) {
    switch (operation) {
        case BinaryOperator::Add:
            return Value(a + b);
        case BinaryOperator::Subtract:
            return Value(a - b);
        case BinaryOperator::Multiply:
            return Value(a * b);
        case BinaryOperator::Power: {
            const double power = std::pow(a, b);
            if (std::isnan(power) && !std::isnan(a) && !std::isnan(b)) {
                return fail(ErrorCode::Unsupported, "{} ** {} is a complex number", a, b);
            }
            if ((a == 0.0 && b < 0.0) ||
                (std::isinf(power) && std::isfinite(a) && std::isfinite(b))) {
                return typeError("{} ** {} has no finite value", a, b);
            }
            return Value(power);
        }
        default:
            break;
    }
    if (b == 0.0) {
        return typeError("division by zero");
    }
    if (operation == BinaryOperator::Divide) {
        return Value(a / b);
    }
    double remainder = std::fmod(a, b);
    double quotient = (a - remainder) / b;
    if (remainder != 0.0 && (remainder < 0.0) != (b < 0.0)) {
        remainder += b;
        quotient -= 1.0;
    } else if (remainder == 0.0) {
        remainder = std::copysign(0.0, b);
    }
    if (operation == BinaryOperator::Modulo) {
        return Value(remainder);
    }
    double floored = quotient == 0.0 ? std::copysign(0.0, a / b) : std::floor(quotient);
    if (quotient - floored > 0.5) {
        floored += 1.0;
    }
    return Value(floored);
}

}  // namespace

Result<Value> applyBinary(Runtime& runtime,
                          BinaryOperator operation,
                          const Value& left,
                          const Value& right) {
    const std::optional<int64_t> a = asInteger(left);
    const std::optional<int64_t> b = asInteger(right);
    if (a.has_value() && b.has_value()) {
        return applyToIntegers(operation, *a, *b);
    }
    if ((a.has_value() || is<double>(left)) && (b.has_value() || is<double>(right))) {
        return applyToDoubles(operation, toDouble(left), toDouble(right));
    }
    const Text* left_text = asText(left);
    const Text* right_text = asText(right);
    const Sequence* left_items = asListOrTuple(left);
    const Sequence* right_items = asListOrTuple(right);
    if (operation == BinaryOperator::Add) {
        if (left_text != nullptr && right_text != nullptr) {
            return addTexts(runtime, *left_text, *right_text);
        }
        if (left_items != nullptr && right_items != nullptr &&
            left_items->kind == right_items->kind) {
            return concatenate(runtime, *left_items, *right_items);
        }
    }
    if (operation == BinaryOperator::Multiply) {
        if (left_text != nullptr && b.has_value()) {
            return repeatText(runtime, *left_text, *b);
        }
        if (right_text != nullptr && a.has_value()) {
            return repeatText(runtime, *right_text, *a);
        }
        if (left_items != nullptr && b.has_value()) {
            return repeatSequence(runtime, *left_items, *b);
        }
        if (right_items != nullptr && a.has_value()) {
            return repeatSequence(runtime, *right_items, *a);
        }
    }
    if (operation == BinaryOperator::Modulo && left_text != nullptr && !is<Undefined>(right)) {
        return formatPercent(runtime, *left_text, right);
    }
    return unsupportedTypes(operation, left, right);
}

Result<Value> negate(const Value& value, bool is_minus) {
    if (const std::optional<int64_t> integer = asInteger(value)) {
        return is_minus ? applyToIntegers(BinaryOperator::Subtract, 0, *integer) : Value(*integer);
    }
    if (const double* real = std::get_if<double>(&value)) {
        return Value(is_minus ? -*real : *real);
    }
    if (const Undefined* undefined = std::get_if<Undefined>(&value)) {
        return undefinedError(*undefined);
    }
    return typeError("bad operand type for unary {}: '{}'", is_minus ? "-" : "+", typeName(value));
}

Result<bool> contains(Runtime& runtime, const Value& container, const Value& item) {
    if (const Text* text = asText(container)) {
        const Text* part = asText(item);
        if (part == nullptr) {
            return typeError("'in <string>' requires a str on its left, not {}", typeName(item));
        }
        runtime.meter.spendBytes(searchCost(text->bytes(), part->bytes()));
        return findBytes(text->bytes(), part->bytes()) != std::string_view::npos;
    }
    if (const Dict* dict = asDict(container)) {
        if (!isHashable(item, runtime.meter)) {
            return typeError("a {} cannot be a key", typeName(item));
        }
        return dict->find(item, runtime.meter) != nullptr;
    }
    if (is<SequencePtr>(container)) {
        const SequencePtr items = BV_TRY(iterateShared(runtime, container));
        return std::ranges::any_of(
            items->items, [&](const Value& each) { return isEqual(each, item, runtime.meter); });
    }
    if (is<Undefined>(container)) {
        return false;
    }
    return typeError("argument of type '{}' is not iterable", typeName(container));
}

Result<bool> applyComparison(Runtime& runtime,
                             Comparison comparison,
                             const Value& left,
                             const Value& right) {
    constexpr std::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">="};
    switch (comparison) {
        case Comparison::Equal:
            return isEqual(left, right, runtime.meter);
        case Comparison::NotEqual:
            return !isEqual(left, right, runtime.meter);
        case Comparison::In:
            return contains(runtime, right, left);
        case Comparison::NotIn:
            return !BV_TRY(contains(runtime, right, left));
        default:
            break;
    }
    const Order order = BV_TRY(
        compareValues(left, right, kSymbols[static_cast<size_t>(comparison)], runtime.meter));
    switch (comparison) {
        case Comparison::Less:
            return order == Order::Less;
        case Comparison::LessEqual:
            return order == Order::Less || order == Order::Equal;
        case Comparison::Greater:
            return order == Order::Greater;
        default:
            return order == Order::Greater || order == Order::Equal;
    }
}

}  // namespace belvedere::inference::jinja
