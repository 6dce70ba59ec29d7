// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "inference/chat/jinja/interpreter.h"
#include "inference/chat/jinja/methods.h"
#include "inference/chat/jinja/operators.h"
#include "inference/chat/jinja/python_text.h"

namespace belvedere::inference::jinja {

Result<Value> Interpreter::evaluate(const Expression& expression) {
    runtime_.meter.spend(1);
    BV_TRY(runtime_.check());
    if (depth_ >= runtime_.limits.max_depth) {
        return fail(ErrorCode::Corrupt, "the template nests calls deeper than {}",
                    runtime_.limits.max_depth);
    }
    ++depth_;
    line_ = expression.line;
    Result<Value> value =
        std::visit([this](const auto& node) { return evaluate(node); }, expression.node);
    --depth_;
    if (value.has_value() && depthOf(*value) > runtime_.limits.max_depth) {
        return fail(ErrorCode::Corrupt, "the template nests values deeper than {}",
                    runtime_.limits.max_depth);
    }
    BV_TRY(runtime_.check());  // a result that was cut short must not be used
    return value;
}

Result<Value> Interpreter::evaluate(const Literal& node) {
    return node.value;
}

Result<Value> Interpreter::evaluate(const NameReference& node) {
    if (const Value* found = findVariable(node.name)) {
        return *found;
    }
    return runtime_.heap.undefined(
        fmt::format("'{}' is undefined", program_.names[static_cast<size_t>(node.name)]));
}

Result<Value> Interpreter::evaluate(const ListDisplay& node) {
    std::vector<Value> items;
    items.reserve(node.items.size());
    for (const ExpressionPtr& item : node.items) {
        items.push_back(BV_TRY(evaluate(*item)));
    }
    return node.is_tuple ? runtime_.heap.tuple(std::move(items))
                         : runtime_.heap.list(std::move(items));
}

Result<Value> Interpreter::evaluate(const DictDisplay& node) {
    std::vector<Dict::Item> items;
    for (const auto& [key_node, value_node] : node.items) {
        Value key = BV_TRY(evaluate(*key_node));
        Value value = BV_TRY(evaluate(*value_node));
        if (!isHashable(key, runtime_.meter)) {
            return typeError("unhashable type: '{}'", typeName(key));
        }
        const auto same = std::ranges::find_if(items, [&](const Dict::Item& item) {
            return isEqual(item.first, key, runtime_.meter);
        });
        if (same != items.end()) {
            same->second = std::move(value);
        } else {
            items.emplace_back(std::move(key), std::move(value));
        }
    }
    return runtime_.heap.dict(std::move(items));
}

Result<Value> Interpreter::evaluate(const UnaryOperation& node) {
    const Value operand = BV_TRY(evaluate(*node.operand));
    if (node.operation == UnaryOperator::Not) {
        return Value(!isTrue(operand));
    }
    return negate(operand, node.operation == UnaryOperator::Minus);
}

Result<Value> Interpreter::evaluate(const BinaryOperation& node) {
    Value left = BV_TRY(evaluate(*node.left));
    if (node.operation == BinaryOperator::And || node.operation == BinaryOperator::Or) {
        const bool decides = isTrue(left) == (node.operation == BinaryOperator::Or);
        return decides ? std::move(left) : evaluate(*node.right);
    }
    const Value right = BV_TRY(evaluate(*node.right));
    return applyBinary(runtime_, node.operation, left, right);
}

Result<Value> Interpreter::evaluate(const Concatenation& node) {
    std::vector<Text> parts;
    parts.reserve(node.parts.size());
    for (const ExpressionPtr& part : node.parts) {
        parts.push_back(BV_TRY(toText(runtime_, BV_TRY(evaluate(*part)))));
    }
    return Value(BV_TRY(joinTexts(runtime_, Text(), parts)));
}

Result<Value> Interpreter::evaluate(const ComparisonChain& node) {
    Value left = BV_TRY(evaluate(*node.first));
    for (const auto& [comparison, right_node] : node.rest) {
        Value right = BV_TRY(evaluate(*right_node));
        if (!BV_TRY(applyComparison(runtime_, comparison, left, right))) {
            return Value(false);
        }
        left = std::move(right);
    }
    return Value(true);
}

Result<Value> Interpreter::evaluate(const Conditional& node) {
    if (isTrue(BV_TRY(evaluate(*node.test)))) {
        return evaluate(*node.then);
    }
    if (node.otherwise == nullptr) {
        return runtime_.heap.undefined("an inline if without else was false");
    }
    return evaluate(*node.otherwise);
}

Result<Value> Interpreter::evaluate(const AttributeAccess& node) {
    return attributeOf(runtime_, BV_TRY(evaluate(*node.object)), node.name);
}

Result<Value> Interpreter::evaluate(const ItemAccess& node) {
    const Value object = BV_TRY(evaluate(*node.object));
    return itemOf(runtime_, object, BV_TRY(evaluate(*node.index)));
}

Result<Value> Interpreter::evaluate(const SliceAccess& node) {
    const Value object = BV_TRY(evaluate(*node.object));
    const ExpressionPtr* parts[] = {&node.begin, &node.end, &node.step};
    std::optional<Value> bounds[3];
    for (size_t i = 0; i < 3; ++i) {
        if (*parts[i] != nullptr) {
            bounds[i] = BV_TRY(evaluate(**parts[i]));
        }
    }
    const auto pointer = [](const std::optional<Value>& bound) {
        return bound.has_value() ? &*bound : nullptr;
    };
    return sliceOf(runtime_, object, pointer(bounds[0]), pointer(bounds[1]), pointer(bounds[2]));
}

Result<CallArguments> Interpreter::evaluateArguments(const ArgumentList& list) {
    CallArguments arguments;
    arguments.positional.reserve(list.positional.size());
    for (const ExpressionPtr& argument : list.positional) {
        arguments.positional.push_back(BV_TRY(evaluate(*argument)));
    }
    for (const auto& [name, argument] : list.named) {
        arguments.named.emplace_back(name, BV_TRY(evaluate(*argument)));
    }
    return arguments;
}

Result<Value> Interpreter::evaluate(const CallExpression& node) {
    const int line = line_;
    const Value callee = BV_TRY(evaluate(*node.callee));
    PreparedCall prepared;
    prepared.arguments = BV_TRY(evaluateArguments(node.arguments));
    line_ = line;
    Value result = BV_TRY(call(callee, std::move(prepared)));
    line_ = line;
    return result;
}

Result<Value> Interpreter::evaluate(const FilterExpression& node) {
    const int line = line_;
    const Value input = node.input == nullptr ? captured_text_ : BV_TRY(evaluate(*node.input));
    const CallArguments arguments = BV_TRY(evaluateArguments(node.arguments));
    line_ = line;
    return node.filter(runtime_, input, arguments);
}

Result<Value> Interpreter::evaluate(const TestExpression& node) {
    const Value input = BV_TRY(evaluate(*node.input));
    const CallArguments arguments = BV_TRY(evaluateArguments(node.arguments));
    return Value(BV_TRY(node.test(runtime_, input, arguments)));
}

}  // namespace belvedere::inference::jinja
