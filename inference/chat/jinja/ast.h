// SPDX-License-Identifier: Apache-2.0
#pragma once

// A compiled template: expressions and statements as trees of plain structs. Never changed after
// parsing; any thread. Names are numbers into Program::names, so that scopes compare no text.

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "inference/chat/jinja/value.h"

namespace belvedere::inference::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Runtime;
struct CallArguments;
using FilterFunction = Result<Value> (*)(Runtime&, const Value& input, const CallArguments&);
using TestFunction = Result<bool> (*)(Runtime&, const Value& input, const CallArguments&);

struct Literal {
    Value value;
};

struct NameReference {
    int name = 0;
};

struct ListDisplay {
    std::vector<ExpressionPtr> items;
    bool is_tuple = false;
};

struct DictDisplay {
    std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
};

enum class UnaryOperator { Not, Minus, Plus };

struct UnaryOperation {
    UnaryOperator operation = UnaryOperator::Not;
    ExpressionPtr operand;
};

enum class BinaryOperator { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power, And, Or };

struct BinaryOperation {
    BinaryOperator operation = BinaryOperator::Add;
    ExpressionPtr left;
    ExpressionPtr right;
};

/// a ~ b ~ c
struct Concatenation {
    std::vector<ExpressionPtr> parts;
};

enum class Comparison { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, In, NotIn };

/// a < b < c: each neighbouring pair.
struct ComparisonChain {
    ExpressionPtr first;
    std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};

struct Conditional {
    ExpressionPtr test;
    ExpressionPtr then;
    ExpressionPtr otherwise;  ///< null: undefined
};

struct AttributeAccess {
    ExpressionPtr object;
    std::string name;
};

struct ItemAccess {
    ExpressionPtr object;
    ExpressionPtr index;
};

struct SliceAccess {
    ExpressionPtr object;
    ExpressionPtr begin;  ///< each may be null
    ExpressionPtr end;
    ExpressionPtr step;
};

struct ArgumentList {
    std::vector<ExpressionPtr> positional;
    std::vector<std::pair<std::string, ExpressionPtr>> named;
};

struct CallExpression {
    ExpressionPtr callee;
    ArgumentList arguments;
};

struct FilterExpression {
    ExpressionPtr input;  ///< null: the text that the statement around it captured
    FilterFunction filter = nullptr;
    ArgumentList arguments;
};

struct TestExpression {
    ExpressionPtr input;
    TestFunction test = nullptr;
    ArgumentList arguments;
};

struct Expression {
    int line = 0;
    int height =
        1;  ///< of the tree; the parser bounds it, as the tree is walked and freed recursively
    std::variant<Literal,
                 NameReference,
                 ListDisplay,
                 DictDisplay,
                 UnaryOperation,
                 BinaryOperation,
                 Concatenation,
                 ComparisonChain,
                 Conditional,
                 AttributeAccess,
                 ItemAccess,
                 SliceAccess,
                 CallExpression,
                 FilterExpression,
                 TestExpression>
        node;
};

struct Statement;
using Body = std::vector<std::unique_ptr<Statement>>;

/// What can stand left of an assignment.
struct Target {
    struct NamespaceAttribute {
        int name = 0;
        std::string attribute;
    };

    std::variant<int, NamespaceAttribute, std::vector<Target>> node;
};

struct DataStatement {
    Text text;
};

struct PrintStatement {
    ExpressionPtr value;
};

struct IfStatement {
    std::vector<std::pair<ExpressionPtr, Body>> branches;
    Body otherwise;
};

struct ForStatement {
    Target target;
    ExpressionPtr iterable;
    ExpressionPtr filter;  ///< null: every item
    Body body;
    Body otherwise;
};

struct SetStatement {
    Target target;
    ExpressionPtr value;
};

/// {% set x | filter %}...{% endset %}
struct SetBlockStatement {
    Target target;
    ExpressionPtr filter;  ///< null: none
    Body body;
};

struct WithStatement {
    std::vector<std::pair<Target, ExpressionPtr>> assignments;
    Body body;
};

struct MacroStatement {
    struct Parameter {
        int name = 0;
        ExpressionPtr fallback;  ///< null: none
    };

    std::string name;
    int name_id = -1;  ///< -1: the body of a call block
    std::vector<Parameter> parameters;
    bool uses_caller = false;
    bool uses_varargs = false;
    bool uses_kwargs = false;
    Body body;
};

struct CallStatement {
    ExpressionPtr call;  ///< holds a CallExpression
    MacroStatement caller;
};

struct FilterStatement {
    ExpressionPtr filter;
    Body body;
};

/// {% generation %}: marks what a model wrote; here only a scope.
struct ScopeStatement {
    Body body;
};

struct BreakStatement {};

struct ContinueStatement {};

struct Statement {
    int line = 0;
    std::variant<DataStatement,
                 PrintStatement,
                 IfStatement,
                 ForStatement,
                 SetStatement,
                 SetBlockStatement,
                 WithStatement,
                 MacroStatement,
                 CallStatement,
                 FilterStatement,
                 ScopeStatement,
                 BreakStatement,
                 ContinueStatement>
        node;
};

/// Numbers of the names that the language itself gives a meaning.
struct SpecialNames {
    int loop = 0;
    int caller = 1;
    int varargs = 2;
    int kwargs = 3;
};

struct Program {
    std::vector<std::string> names;
    Body body;
};

}  // namespace belvedere::inference::jinja
