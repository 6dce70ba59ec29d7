// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "inference/chat/jinja/clock.h"
#include "inference/chat/jinja/interpreter.h"
#include "inference/chat/jinja/methods.h"
#include "inference/chat/jinja/python_text.h"
#include "kernels/base/check.h"

namespace belvedere::inference::jinja {
namespace {

constexpr size_t kCapturedScopeBytes =
    256;  // an estimate of what a scope costs that a macro keeps alive

}  // namespace

Value Interpreter::makeMacro(const MacroStatement& macro) {
    if (captured_scopes_.empty() || captured_scopes_.back() != scope_) {
        captured_scopes_.push_back(scope_);
        runtime_.meter.add(kCapturedScopeBytes);
    }
    return runtime_.heap.callable(MacroFunction{&macro, scope_});
}

Result<Value> Interpreter::call(const Value& callee, PreparedCall call) {
    if (const Undefined* undefined = std::get_if<Undefined>(&callee)) {
        return undefinedError(*undefined);
    }
    const auto* callable = std::get_if<std::shared_ptr<const Callable>>(&callee);
    if (callable == nullptr) {
        return typeError("'{}' object is not callable", typeName(callee));
    }
    const auto& target = (*callable)->target;
    if (const auto* macro = std::get_if<MacroFunction>(&target)) {
        return callMacro(*macro, std::move(call));
    }
    if (call.caller.has_value()) {
        return typeError("a call block needs a macro");
    }
    if (const auto* bound = std::get_if<BoundMethod>(&target)) {
        return callMethod(runtime_, bound->receiver, bound->name, call.arguments);
    }
    return callBuiltin(std::get<BuiltinFunction>(target), call.arguments);
}

/// Sets the parameters in the present scope, which is that of the call.
Result<void> Interpreter::bindMacroArguments(const MacroStatement& macro, PreparedCall call) {
    CallArguments& given = call.arguments;
    std::vector<Value> extra;
    if (given.positional.size() > macro.parameters.size()) {
        const auto first_extra =
            given.positional.begin() + static_cast<std::ptrdiff_t>(macro.parameters.size());
        extra.assign(first_extra, given.positional.end());
        given.positional.erase(first_extra, given.positional.end());
    }
    if (!extra.empty() && !macro.uses_varargs) {
        return typeError("macro '{}' takes not more than {} arguments", macro.name,
                         macro.parameters.size());
    }
    for (size_t i = 0; i < macro.parameters.size(); ++i) {
        const MacroStatement::Parameter& parameter = macro.parameters[i];
        const std::string& name = program_.names[static_cast<size_t>(parameter.name)];
        const auto named =
            std::ranges::find(given.named, name, &std::pair<std::string, Value>::first);
        if (i < given.positional.size()) {
            if (named != given.named.end()) {
                return typeError("macro '{}' got two values for argument '{}'", macro.name, name);
            }
            scope_->set(parameter.name, given.positional[i]);
        } else if (named != given.named.end()) {
            scope_->set(parameter.name, std::move(named->second));
            given.named.erase(named);
        } else if (parameter.fallback != nullptr) {
            scope_->set(parameter.name, BV_TRY(evaluate(*parameter.fallback)));
        } else {
            scope_->set(parameter.name, runtime_.heap.undefined(
                                            fmt::format("parameter '{}' was not provided", name)));
        }
    }
    const SpecialNames special;
    if (macro.uses_caller) {
        const auto named =
            std::ranges::find(given.named, "caller", &std::pair<std::string, Value>::first);
        if (named != given.named.end()) {
            call.caller = std::move(named->second);
            given.named.erase(named);
        }
        scope_->set(special.caller, call.caller.has_value()
                                        ? *call.caller
                                        : runtime_.heap.undefined("no caller is defined"));
    } else if (call.caller.has_value()) {
        return typeError("macro '{}' was called by a call block but has no use for its caller",
                         macro.name);
    }
    if (macro.uses_varargs) {
        scope_->set(special.varargs, runtime_.heap.tuple(std::move(extra)));
    }
    if (!given.named.empty() && !macro.uses_kwargs) {
        return typeError("macro '{}' takes no keyword argument '{}'", macro.name,
                         given.named.front().first);
    }
    if (macro.uses_kwargs) {
        std::vector<Dict::Item> items;
        for (auto& [name, value] : given.named) {
            items.emplace_back(runtime_.heap.text(name, kTemplateOrigin), std::move(value));
        }
        scope_->set(special.kwargs, runtime_.heap.dict(std::move(items)));
    }
    return {};
}

Result<Value> Interpreter::callMacro(const MacroFunction& function, PreparedCall call) {
    if (function.scope->depth() >= runtime_.limits.max_depth) {
        return fail(ErrorCode::Corrupt, "the template nests macros deeper than {}",
                    runtime_.limits.max_depth);
    }
    runtime_.meter.spend(8);  // for the scope and the output
    auto outer_scope = std::exchange(scope_, std::make_shared<Scope>(function.scope));
    auto outer_output = std::exchange(output_, std::make_unique<TextBuilder>(&runtime_.meter));
    const size_t outer_loops = std::exchange(loop_depth_, 0);
    BV_TRY(
        bindMacroArguments(*function.macro, std::move(call)));  // after an error the rendering ends
    (void)BV_TRY(execute(function.macro->body));
    Value text = output_->finish();
    scope_ = std::move(outer_scope);
    output_ = std::move(outer_output);
    loop_depth_ = outer_loops;
    return text;
}

Result<Value> Interpreter::makeRange(const CallArguments& arguments) {
    constexpr size_t kMaxRange = 100'000;  // the limit of Jinja2's sandbox
    if (!arguments.named.empty() || arguments.positional.empty() ||
        arguments.positional.size() > 3) {
        return typeError("range takes one to three arguments without names");
    }
    int64_t bounds[3] = {0, 0, 1};
    const size_t n = arguments.positional.size();
    for (size_t i = 0; i < n; ++i) {
        bounds[n == 1 ? 1 : i] =
            BV_TRY(requireInteger(arguments.positional[i], "each argument of range"));
    }
    const auto [begin, end, step] = std::tuple(bounds[0], bounds[1], bounds[2]);
    if (step == 0) {
        return typeError("the step of range must not be zero");
    }
    std::vector<Value> items;
    for (int64_t i = begin; step > 0 ? i < end : i > end;) {
        if (items.size() == kMaxRange) {
            return typeError("a range has more than {} items", kMaxRange);
        }
        items.emplace_back(i);
        if (__builtin_add_overflow(i, step, &i)) {
            break;
        }
    }
    runtime_.meter.spend(items.size() / 2);
    std::string repr = step == 1 ? fmt::format("range({}, {})", begin, end)
                                 : fmt::format("range({}, {}, {})", begin, end, step);
    return runtime_.heap.sequence(SequenceKind::Range, std::move(items), std::move(repr));
}

Result<Value> Interpreter::makeDict(const CallArguments& arguments) {
    std::vector<Dict::Item> items;
    if (!arguments.positional.empty()) {
        const Dict* first = asDict(arguments.positional.front());
        if (first == nullptr || arguments.positional.size() > 1) {
            return fail(ErrorCode::Unsupported,
                        "dict() is supported with one mapping and named arguments only");
        }
        items = first->items();
        runtime_.meter.spend(items.size());
    }
    for (const auto& [name, value] : arguments.named) {
        const std::string& wanted =
            name;  // clang 19 and g++ 12 disagree about capturing a structured binding
        const auto same = std::ranges::find_if(items, [&wanted](const Dict::Item& item) {
            const Text* key = asText(item.first);
            return key != nullptr && key->bytes() == wanted;
        });
        if (same != items.end()) {
            same->second = value;
        } else {
            items.emplace_back(runtime_.heap.text(name, kTemplateOrigin), value);
        }
    }
    return runtime_.heap.dict(std::move(items));
}

Result<Value> Interpreter::makeNamespace(const CallArguments& arguments) {
    runtime_.meter.spend(4);
    const Value dict = BV_TRY(makeDict(arguments));
    auto space = std::make_shared<Namespace>();
    for (const auto& [key, value] : asDict(dict)->items()) {
        space->attributes.emplace_back(BV_TRY(requireText(key, "each name of a namespace")).bytes(),
                                       value);
    }
    const size_t n_bytes =
        sizeof(Namespace) + space->attributes.size() * sizeof(std::pair<std::string, Value>);
    runtime_.meter.add(n_bytes);  // until the end of the rendering, as it lives that long
    namespaces_.push_back(space);
    return Value(std::move(space));
}

Result<Value> Interpreter::callBuiltin(BuiltinFunction function, const CallArguments& arguments) {
    switch (function) {
        case BuiltinFunction::Range:
            return makeRange(arguments);
        case BuiltinFunction::Dict:
            return makeDict(arguments);
        case BuiltinFunction::Namespace:
            return makeNamespace(arguments);
        case BuiltinFunction::RaiseException: {
            const auto bound = BV_TRY(bindArguments("raise_exception", arguments, {"message"}, 1));
            const Text message = BV_TRY(toText(runtime_, *bound[0]));
            return fail(ErrorCode::InvalidArgument, "the template refuses the messages: {}",
                        message.bytes());
        }
        case BuiltinFunction::StrftimeNow: {
            const auto bound = BV_TRY(bindArguments("strftime_now", arguments, {"format"}, 1));
            const Text format = BV_TRY(requireText(*bound[0], "the format of strftime_now"));
            return runtime_.heap.text(BV_TRY(formatTime(runtime_.now, format.bytes())),
                                      kValueOrigin);
        }
    }
    BV_UNREACHABLE();
}

}  // namespace belvedere::inference::jinja
