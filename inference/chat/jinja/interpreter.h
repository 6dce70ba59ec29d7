// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a compiled template once. One rendering, one thread.
//
// Words: a *scope* is a set of variables; reading looks outwards, assigning stays inside. A loop's
// turn, a macro call, a `with`, a captured block are scopes; `if` is none. An *output* is the text
// being written: the prompt, or a capture. Invariants: (1) `line_` is that of the innermost
// statement or call that has begun, so an error names its place; (2) scopes that a macro captured
// and all namespaces live until the end, and are emptied then, so no cycle of pointers survives.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "inference/chat/jinja/ast.h"
#include "inference/chat/jinja/runtime.h"
#include "inference/chat/template.h"

namespace belvedere::inference::jinja {

class Scope {
  public:
    explicit Scope(std::shared_ptr<Scope> outer)
        : outer_(std::move(outer)), depth_(outer_ == nullptr ? 0 : outer_->depth_ + 1) {}

    /// Adds the work of the search to n_searched.
    [[nodiscard]] const Value* find(int name, size_t& n_searched) const;
    void set(int name, Value value);

    void clear() { variables_.clear(); }

    [[nodiscard]] size_t depth() const { return depth_; }

  private:
    std::shared_ptr<Scope> outer_;
    size_t depth_;
    std::vector<std::pair<int, Value>> variables_;  // few: a search beats a table
};

class Interpreter {
  public:
    Interpreter(const Program& program, const TemplateLimits& limits, const RenderOptions& options);
    ~Interpreter();
    Interpreter(const Interpreter&) = delete;
    Interpreter& operator=(const Interpreter&) = delete;

    /// Errors: as ChatTemplate::render; the message starts with the line.
    [[nodiscard]] Result<RenderedText> run(const nlohmann::ordered_json& variables);

  private:
    enum class Flow { Next, Break, Continue };

    /// Evaluated arguments and what a call block adds to them.
    struct PreparedCall {
        CallArguments arguments;
        std::optional<Value> caller;
    };

    // interpreter.cpp
    Result<void> setVariables(const nlohmann::ordered_json& variables);
    void setFunctions();

    // statements.cpp
    Result<Flow> execute(const Body& body);
    Result<Flow> execute(const Statement& statement);
    Result<Flow> execute(const DataStatement& statement);
    Result<Flow> execute(const PrintStatement& statement);
    Result<Flow> execute(const IfStatement& statement);
    Result<Flow> execute(const ForStatement& statement);
    Result<Flow> execute(const SetStatement& statement);
    Result<Flow> execute(const SetBlockStatement& statement);
    Result<Flow> execute(const WithStatement& statement);
    Result<Flow> execute(const MacroStatement& statement);
    Result<Flow> execute(const CallStatement& statement);
    Result<Flow> execute(const FilterStatement& statement);
    Result<Flow> execute(const ScopeStatement& statement);
    Result<Flow> execute(const BreakStatement& statement);
    Result<Flow> execute(const ContinueStatement& statement);
    Result<SequencePtr> filteredItems(const ForStatement& statement, const Value& iterable);
    Result<void> assign(const Target& target, const Value& value);
    Result<void> write(const Value& value);
    [[nodiscard]] const Value* findVariable(int name);
    Result<Flow> capture(const Body& body, Value& text);

    // expressions.cpp
    Result<Value> evaluate(const Expression& expression);
    Result<Value> evaluate(const Literal& node);
    Result<Value> evaluate(const NameReference& node);
    Result<Value> evaluate(const ListDisplay& node);
    Result<Value> evaluate(const DictDisplay& node);
    Result<Value> evaluate(const UnaryOperation& node);
    Result<Value> evaluate(const BinaryOperation& node);
    Result<Value> evaluate(const Concatenation& node);
    Result<Value> evaluate(const ComparisonChain& node);
    Result<Value> evaluate(const Conditional& node);
    Result<Value> evaluate(const AttributeAccess& node);
    Result<Value> evaluate(const ItemAccess& node);
    Result<Value> evaluate(const SliceAccess& node);
    Result<Value> evaluate(const CallExpression& node);
    Result<Value> evaluate(const FilterExpression& node);
    Result<Value> evaluate(const TestExpression& node);
    Result<CallArguments> evaluateArguments(const ArgumentList& list);

    // calls.cpp
    Result<Value> call(const Value& callee, PreparedCall call);
    Result<Value> callMacro(const MacroFunction& function, PreparedCall call);
    Result<void> bindMacroArguments(const MacroStatement& macro, PreparedCall call);
    Result<Value> callBuiltin(BuiltinFunction function, const CallArguments& arguments);
    Result<Value> makeRange(const CallArguments& arguments);
    Result<Value> makeDict(const CallArguments& arguments);
    Result<Value> makeNamespace(const CallArguments& arguments);
    Value makeMacro(const MacroStatement& macro);

    const Program& program_;
    const RenderOptions& options_;
    Runtime runtime_;
    std::shared_ptr<Scope> scope_;  // the innermost
    std::vector<std::shared_ptr<Scope>> captured_scopes_;
    std::vector<std::shared_ptr<Namespace>> namespaces_;
    std::unique_ptr<TextBuilder> output_;
    Value captured_text_;  // input of a filter expression without one
    size_t depth_ = 0;
    size_t loop_depth_ = 0;
    int line_ = 0;
};

}  // namespace belvedere::inference::jinja
