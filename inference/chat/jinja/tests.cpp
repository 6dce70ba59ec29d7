// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/tests.h"

#include <algorithm>
#include <array>

#include "inference/chat/jinja/filters.h"
#include "inference/chat/jinja/operators.h"
#include "inference/chat/jinja/python_text.h"
#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

[[nodiscard]] bool isBoolean(const Value& value) {
    return is<bool>(value);
}

[[nodiscard]] bool isDefined(const Value& value) {
    return !is<Undefined>(value);
}

[[nodiscard]] bool isUndefined(const Value& value) {
    return is<Undefined>(value);
}

[[nodiscard]] bool isNone(const Value& value) {
    return is<NoneType>(value);
}

[[nodiscard]] bool isTrueItself(const Value& value) {
    return is<bool>(value) && std::get<bool>(value);
}

[[nodiscard]] bool isFalseItself(const Value& value) {
    return is<bool>(value) && !std::get<bool>(value);
}

[[nodiscard]] bool isInteger(const Value& value) {
    return is<int64_t>(value);
}

[[nodiscard]] bool isFloat(const Value& value) {
    return is<double>(value);
}

[[nodiscard]] bool isString(const Value& value) {
    return asText(value) != nullptr;
}

[[nodiscard]] bool isMapping(const Value& value) {
    return asDict(value) != nullptr;
}

[[nodiscard]] bool isCallable(const Value& value) {
    return is<std::shared_ptr<const Callable>>(value) ||
           is<Undefined>(value);  // Undefined has a call method, which fails
}

[[nodiscard]] bool isIterable(const Value& value) {
    return isString(value) || isMapping(value) || asSequence(value) != nullptr ||
           is<Undefined>(value) || is<std::shared_ptr<const Loop>>(value);
}

/// Has a length and can be indexed.
[[nodiscard]] bool isSequence(const Value& value) {
    const Sequence* sequence = asSequence(value);
    const bool is_indexable = sequence != nullptr && sequence->kind <= SequenceKind::Range;
    return isString(value) || isMapping(value) || is_indexable || is<Undefined>(value);
}

[[nodiscard]] bool isEscaped(const Value& value) {
    return isString(value) && asText(value)->isMarkup();
}

template <bool (*kTest)(const Value&)>
[[nodiscard]] Result<bool> simple(Runtime&, const Value& input, const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("a test", arguments, {}, 0));
    return kTest(input);
}

template <Comparison kComparison>
[[nodiscard]] Result<bool> compare(Runtime& runtime,
                                   const Value& input,
                                   const CallArguments& arguments) {
    const auto bound = BV_TRY(bindArguments("a test that compares", arguments, {"other"}, 1));
    return applyComparison(runtime, kComparison, input, *bound[0]);
}

[[nodiscard]] Result<Value> remainder(Runtime& runtime, const Value& input, const Value& divisor) {
    return applyBinary(runtime, BinaryOperator::Modulo, input, divisor);
}

[[nodiscard]] Result<bool> isEven(Runtime& runtime,
                                  const Value& input,
                                  const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("even", arguments, {}, 0));
    return isEqual(BV_TRY(remainder(runtime, input, int64_t{2})), int64_t{0}, runtime.meter);
}

[[nodiscard]] Result<bool> isOdd(Runtime& runtime,
                                 const Value& input,
                                 const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("odd", arguments, {}, 0));
    return isEqual(BV_TRY(remainder(runtime, input, int64_t{2})), int64_t{1}, runtime.meter);
}

[[nodiscard]] Result<bool> isDivisibleBy(Runtime& runtime,
                                         const Value& input,
                                         const CallArguments& arguments) {
    const auto bound = BV_TRY(bindArguments("divisibleby", arguments, {"num"}, 1));
    return isEqual(BV_TRY(remainder(runtime, input, *bound[0])), int64_t{0}, runtime.meter);
}

/// Whether the text has cased letters and none that the change would alter.
template <std::string (*kChange)(std::string_view)>
[[nodiscard]] Result<bool> hasCase(Runtime& runtime,
                                   const Value& input,
                                   const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("lower and upper", arguments, {}, 0));
    const Text text = BV_TRY(toText(runtime, input));
    runtime.meter.spendBytes(text.bytes().size() * 4);
    bool has_cased = false;
    for (size_t at = 0; at < text.bytes().size();) {
        has_cased = isCased(nextPoint(text.bytes(), at)) || has_cased;
    }
    return has_cased && kChange(text.bytes()) == text.bytes();
}

/// Python's identity, as far as it is certain: of None, booleans and shared containers.
[[nodiscard]] Result<bool> isSameAs(Runtime&, const Value& input, const CallArguments& arguments) {
    const auto bound = BV_TRY(bindArguments("sameas", arguments, {"other"}, 1));
    const Value& other = *bound[0];
    if (input.index() != other.index()) {
        return false;
    }
    if (is<NoneType>(input)) {
        return true;
    }
    if (is<bool>(input)) {
        return std::get<bool>(input) == std::get<bool>(other);
    }
    if (is<SequencePtr>(input)) {
        return std::get<SequencePtr>(input) == std::get<SequencePtr>(other);
    }
    if (is<DictPtr>(input)) {
        return std::get<DictPtr>(input) == std::get<DictPtr>(other);
    }
    return fail(ErrorCode::Unsupported, "the test sameas is not supported for {}", typeName(input));
}

template <bool kOfFilters>
[[nodiscard]] Result<bool> isKnown(Runtime&, const Value& input, const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("filter and test", arguments, {}, 0));
    const Text* name = asText(input);
    return name != nullptr &&
           (kOfFilters ? findFilter(name->bytes()) != nullptr : findTest(name->bytes()) != nullptr);
}

constexpr std::array<std::pair<std::string_view, TestFunction>, 39> kTests = {{
    {"!=", compare<Comparison::NotEqual>},
    {"<", compare<Comparison::Less>},
    {"<=", compare<Comparison::LessEqual>},
    {"==", compare<Comparison::Equal>},
    {">", compare<Comparison::Greater>},
    {">=", compare<Comparison::GreaterEqual>},
    {"boolean", simple<isBoolean>},
    {"callable", simple<isCallable>},
    {"defined", simple<isDefined>},
    {"divisibleby", isDivisibleBy},
    {"eq", compare<Comparison::Equal>},
    {"equalto", compare<Comparison::Equal>},
    {"escaped", simple<isEscaped>},
    {"even", isEven},
    {"false", simple<isFalseItself>},
    {"filter", isKnown<true>},
    {"float", simple<isFloat>},
    {"ge", compare<Comparison::GreaterEqual>},
    {"greaterthan", compare<Comparison::Greater>},
    {"gt", compare<Comparison::Greater>},
    {"in", compare<Comparison::In>},
    {"integer", simple<isInteger>},
    {"iterable", simple<isIterable>},
    {"le", compare<Comparison::LessEqual>},
    {"lessthan", compare<Comparison::Less>},
    {"lower", hasCase<toLower>},
    {"lt", compare<Comparison::Less>},
    {"mapping", simple<isMapping>},
    {"ne", compare<Comparison::NotEqual>},
    {"none", simple<isNone>},
    {"number", simple<isNumber>},
    {"odd", isOdd},
    {"sameas", isSameAs},
    {"sequence", simple<isSequence>},
    {"string", simple<isString>},
    {"test", isKnown<false>},
    {"true", simple<isTrueItself>},
    {"undefined", simple<isUndefined>},
    {"upper", hasCase<toUpper>},
}};

}  // namespace

TestFunction findTest(std::string_view name) {
    const auto found =
        std::ranges::find(kTests, name, &std::pair<std::string_view, TestFunction>::first);
    return found == kTests.end() ? nullptr : found->second;
}

}  // namespace belvedere::inference::jinja
