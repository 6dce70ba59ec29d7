// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/interpreter.h"
#include "inference/chat/jinja/python_text.h"

namespace belvedere::inference::jinja {
namespace {

/// Opens a scope inside the present one for as long as it lives.
class ScopeGuard {
  public:
    explicit ScopeGuard(std::shared_ptr<Scope>& scope) : scope_(scope), outer_(scope) {
        scope_ = std::make_shared<Scope>(outer_);
    }

    ~ScopeGuard() { scope_ = outer_; }

    ScopeGuard(const ScopeGuard&) = delete;
    ScopeGuard& operator=(const ScopeGuard&) = delete;

  private:
    std::shared_ptr<Scope>& scope_;
    std::shared_ptr<Scope> outer_;
};

}  // namespace

Result<Interpreter::Flow> Interpreter::execute(const Body& body) {
    for (const auto& statement : body) {
        const Flow flow = BV_TRY(execute(*statement));
        if (flow != Flow::Next) {
            return flow;
        }
    }
    return Flow::Next;
}

Result<Interpreter::Flow> Interpreter::execute(const Statement& statement) {
    line_ = statement.line;
    runtime_.meter.spend(1);
    BV_TRY(runtime_.check());
    if (depth_ >= runtime_.limits.max_depth) {
        return fail(ErrorCode::Corrupt, "the template nests calls deeper than {}",
                    runtime_.limits.max_depth);
    }
    ++depth_;
    Result<Flow> flow =
        std::visit([this](const auto& node) { return execute(node); }, statement.node);
    --depth_;
    return flow;
}

Result<Interpreter::Flow> Interpreter::execute(const DataStatement& statement) {
    BV_TRY(write(statement.text));
    return Flow::Next;
}

Result<Interpreter::Flow> Interpreter::execute(const PrintStatement& statement) {
    BV_TRY(write(BV_TRY(evaluate(*statement.value))));
    return Flow::Next;
}

Result<Interpreter::Flow> Interpreter::execute(const IfStatement& statement) {
    for (const auto& [test, body] : statement.branches) {
        if (isTrue(BV_TRY(evaluate(*test)))) {
            return execute(body);
        }
    }
    return execute(statement.otherwise);
}

/// The items of a for loop that pass its `if`.
Result<SequencePtr> Interpreter::filteredItems(const ForStatement& statement,
                                               const Value& iterable) {
    SequencePtr items = BV_TRY(iterateShared(runtime_, iterable));
    if (statement.filter == nullptr) {
        return items;
    }
    std::vector<Value> kept;
    for (const Value& item : items->items) {
        const ScopeGuard guard(scope_);
        BV_TRY(assign(statement.target, item));
        if (isTrue(BV_TRY(evaluate(*statement.filter)))) {
            kept.push_back(item);
        }
    }
    return std::get<SequencePtr>(runtime_.heap.list(std::move(kept)));
}

Result<Interpreter::Flow> Interpreter::execute(const ForStatement& statement) {
    const Value iterable = BV_TRY(evaluate(*statement.iterable));
    const SequencePtr items = BV_TRY(filteredItems(statement, iterable));
    if (items->items.empty()) {
        const ScopeGuard guard(scope_);
        return execute(statement.otherwise);
    }
    ++loop_depth_;
    for (size_t i = 0; i < items->items.size(); ++i) {
        runtime_.meter.spend(4);  // for the scope and the loop variable
        BV_TRY(runtime_.check());
        const ScopeGuard guard(scope_);
        scope_->set(SpecialNames().loop, std::make_shared<const Loop>(Loop{items, i, loop_depth_}));
        BV_TRY(assign(statement.target, items->items[i]));
        if (BV_TRY(execute(statement.body)) == Flow::Break) {
            break;
        }
    }
    --loop_depth_;
    return Flow::Next;
}

Result<Interpreter::Flow> Interpreter::execute(const SetStatement& statement) {
    BV_TRY(assign(statement.target, BV_TRY(evaluate(*statement.value))));
    return Flow::Next;
}

/// Runs the body in a scope and an output of its own.
Result<Interpreter::Flow> Interpreter::capture(const Body& body, Value& text) {
    const ScopeGuard guard(scope_);
    auto outer = std::exchange(output_, std::make_unique<TextBuilder>(&runtime_.meter));
    const Flow flow = BV_TRY(execute(body));  // after an error nobody writes any more
    text = output_->finish();
    output_ = std::move(outer);
    return flow;
}

Result<Interpreter::Flow> Interpreter::execute(const SetBlockStatement& statement) {
    Value text;
    const Flow flow = BV_TRY(capture(statement.body, text));
    if (flow != Flow::Next) {
        return flow;
    }
    if (statement.filter != nullptr) {
        captured_text_ = std::move(text);
        text = BV_TRY(evaluate(*statement.filter));
    }
    BV_TRY(assign(statement.target, text));
    return Flow::Next;
}

Result<Interpreter::Flow> Interpreter::execute(const WithStatement& statement) {
    std::vector<Value> values;
    for (const auto& [target, value] : statement.assignments) {
        values.push_back(BV_TRY(evaluate(*value)));
    }
    const ScopeGuard guard(scope_);
    for (size_t i = 0; i < values.size(); ++i) {
        BV_TRY(assign(statement.assignments[i].first, values[i]));
    }
    return execute(statement.body);
}

Result<Interpreter::Flow> Interpreter::execute(const MacroStatement& statement) {
    scope_->set(statement.name_id, makeMacro(statement));
    return Flow::Next;
}

Result<Interpreter::Flow> Interpreter::execute(const CallStatement& statement) {
    const auto& expression = std::get<CallExpression>(statement.call->node);
    const Value callee = BV_TRY(evaluate(*expression.callee));
    PreparedCall prepared;
    prepared.arguments = BV_TRY(evaluateArguments(expression.arguments));
    prepared.caller = makeMacro(statement.caller);
    BV_TRY(write(BV_TRY(call(callee, std::move(prepared)))));
    return Flow::Next;
}

Result<Interpreter::Flow> Interpreter::execute(const FilterStatement& statement) {
    Value text;
    const Flow flow = BV_TRY(capture(statement.body, text));
    if (flow != Flow::Next) {
        return flow;
    }
    captured_text_ = std::move(text);
    BV_TRY(write(BV_TRY(evaluate(*statement.filter))));
    return Flow::Next;
}

Result<Interpreter::Flow> Interpreter::execute(const ScopeStatement& statement) {
    const ScopeGuard guard(scope_);
    return execute(statement.body);
}

Result<Interpreter::Flow> Interpreter::execute(const BreakStatement&) {
    return Flow::Break;
}

Result<Interpreter::Flow> Interpreter::execute(const ContinueStatement&) {
    return Flow::Continue;
}

Result<void> Interpreter::assign(const Target& target, const Value& value) {
    if (const int* name = std::get_if<int>(&target.node)) {
        scope_->set(*name, value);
        return {};
    }
    if (const auto* attribute = std::get_if<Target::NamespaceAttribute>(&target.node)) {
        const Value* found = findVariable(attribute->name);
        const auto* space =
            found == nullptr ? nullptr : std::get_if<std::shared_ptr<Namespace>>(found);
        if (space == nullptr) {
            return typeError("cannot assign attribute '{}': '{}' is no namespace",
                             attribute->attribute,
                             program_.names[static_cast<size_t>(attribute->name)]);
        }
        if (Value* old = (*space)->find(attribute->attribute)) {
            *old = value;
        } else {
            (*space)->attributes.emplace_back(attribute->attribute, value);
            (*space)->charge.grow(sizeof((*space)->attributes.back()) +
                                  attribute->attribute.size());
        }
        return {};
    }
    const auto& targets = std::get<std::vector<Target>>(target.node);
    const SequencePtr items = BV_TRY(iterateShared(runtime_, value));
    if (items->items.size() != targets.size()) {
        return typeError("{} values cannot be assigned to {} names", items->items.size(),
                         targets.size());
    }
    for (size_t i = 0; i < targets.size(); ++i) {
        BV_TRY(assign(targets[i], items->items[i]));
    }
    return {};
}

Result<void> Interpreter::write(const Value& value) {
    const Text text = BV_TRY(toText(runtime_, value));
    if (text.bytes().size() > runtime_.limits.max_output_bytes - output_->size()) {
        return fail(ErrorCode::Corrupt, "the template writes more than {} bytes",
                    runtime_.limits.max_output_bytes);
    }
    runtime_.meter.spendBytes(text.bytes().size());
    output_->append(text);
    return {};
}

}  // namespace belvedere::inference::jinja
