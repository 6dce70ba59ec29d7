// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "inference/chat/jinja/filters.h"
#include "inference/chat/jinja/parser.h"
#include "inference/chat/jinja/tests.h"

namespace belvedere::inference::jinja {
namespace {

constexpr int kMaxHeight = 150;  // of an expression; those of real templates stay under 20

[[nodiscard]] int heightOf(const ExpressionPtr& expression) {
    return expression == nullptr ? 0 : expression->height;
}

[[nodiscard]] int heightOf(const ArgumentList& arguments) {
    int height = 0;
    for (const ExpressionPtr& argument : arguments.positional) {
        height = std::max(height, argument->height);
    }
    for (const auto& [name, argument] : arguments.named) {
        height = std::max(height, argument->height);
    }
    return height;
}

template <class... Children>
[[nodiscard]] int highest(const Children&... children) {
    return std::max({0, heightOf(children)...});
}

}  // namespace

template <class Node>
Result<ExpressionPtr> Parser::make(int line, Node node, int children_height) {
    if (children_height >= kMaxHeight) {
        return fail(ErrorCode::Corrupt, "line {}: an expression nests deeper than {}", line,
                    kMaxHeight);
    }
    auto expression = std::make_unique<Expression>();
    expression->line = line;
    expression->height = children_height + 1;
    expression->node = std::move(node);
    return expression;
}

Result<ExpressionPtr> Parser::parseExpression() {
    if (depth_ >= kMaxHeight) {
        return fail(ErrorCode::Corrupt, "line {}: an expression nests deeper than {}",
                    current().line, kMaxHeight);
    }
    ++depth_;
    Result<ExpressionPtr> expression = parseConditional();
    --depth_;
    return expression;
}

Result<ExpressionPtr> Parser::parseConditional() {
    const int line = current().line;
    ExpressionPtr value = BV_TRY(parseOr());
    while (skipName("if")) {
        ExpressionPtr test = BV_TRY(parseOr());
        ExpressionPtr otherwise;
        if (skipName("else")) {
            otherwise = BV_TRY(parseExpression());
        }
        const int height = highest(value, test, otherwise);
        value = BV_TRY(make(
            line, Conditional{std::move(test), std::move(value), std::move(otherwise)}, height));
    }
    return value;
}

Result<ExpressionPtr> Parser::parseOr() {
    const int line = current().line;
    ExpressionPtr left = BV_TRY(parseAnd());
    while (skipName("or")) {
        ExpressionPtr right = BV_TRY(parseAnd());
        const int height = highest(left, right);
        left = BV_TRY(make(
            line, BinaryOperation{BinaryOperator::Or, std::move(left), std::move(right)}, height));
    }
    return left;
}

Result<ExpressionPtr> Parser::parseAnd() {
    const int line = current().line;
    ExpressionPtr left = BV_TRY(parseNot());
    while (skipName("and")) {
        ExpressionPtr right = BV_TRY(parseNot());
        const int height = highest(left, right);
        left = BV_TRY(make(
            line, BinaryOperation{BinaryOperator::And, std::move(left), std::move(right)}, height));
    }
    return left;
}

Result<ExpressionPtr> Parser::parseNot() {
    const int line = current().line;
    int n_not = 0;
    while (skipName("not")) {
        ++n_not;
    }
    ExpressionPtr operand = BV_TRY(parseComparison());
    for (; n_not > 0; --n_not) {
        const int height = highest(operand);
        operand =
            BV_TRY(make(line, UnaryOperation{UnaryOperator::Not, std::move(operand)}, height));
    }
    return operand;
}

Result<ExpressionPtr> Parser::parseComparison() {
    static constexpr std::pair<std::string_view, Comparison> kOperators[] = {
        {"==", Comparison::Equal},  {"!=", Comparison::NotEqual},
        {"<", Comparison::Less},    {"<=", Comparison::LessEqual},
        {">", Comparison::Greater}, {">=", Comparison::GreaterEqual},
    };
    const int line = current().line;
    ComparisonChain chain;
    chain.first = BV_TRY(parseSum());
    int height = highest(chain.first);
    while (true) {
        std::optional<Comparison> comparison;
        for (const auto& [text, meaning] : kOperators) {
            if (isOperator(text)) {
                comparison = meaning;
            }
        }
        if (isName("in")) {
            comparison = Comparison::In;
        } else if (isName("not") && ahead().kind == TokenKind::Name && ahead().text == "in") {
            comparison = Comparison::NotIn;
            advance();
        }
        if (!comparison.has_value()) {
            break;
        }
        advance();
        ExpressionPtr right = BV_TRY(parseSum());
        height = std::max(height, right->height);
        chain.rest.emplace_back(*comparison, std::move(right));
    }
    if (chain.rest.empty()) {
        return std::move(chain.first);
    }
    return make(line, std::move(chain), height);
}

Result<ExpressionPtr> Parser::parseSum() {
    const int line = current().line;
    ExpressionPtr left = BV_TRY(parseConcatenation());
    while (isOperator("+") || isOperator("-")) {
        const BinaryOperator operation =
            isOperator("+") ? BinaryOperator::Add : BinaryOperator::Subtract;
        advance();
        ExpressionPtr right = BV_TRY(parseConcatenation());
        const int height = highest(left, right);
        left = BV_TRY(
            make(line, BinaryOperation{operation, std::move(left), std::move(right)}, height));
    }
    return left;
}

Result<ExpressionPtr> Parser::parseConcatenation() {
    const int line = current().line;
    Concatenation concatenation;
    concatenation.parts.push_back(BV_TRY(parseProduct()));
    int height = highest(concatenation.parts.back());
    while (skipOperator("~")) {
        concatenation.parts.push_back(BV_TRY(parseProduct()));
        height = std::max(height, concatenation.parts.back()->height);
    }
    if (concatenation.parts.size() == 1) {
        return std::move(concatenation.parts.front());
    }
    return make(line, std::move(concatenation), height);
}

Result<ExpressionPtr> Parser::parseProduct() {
    static constexpr std::pair<std::string_view, BinaryOperator> kOperators[] = {
        {"*", BinaryOperator::Multiply},
        {"/", BinaryOperator::Divide},
        {"//", BinaryOperator::FloorDivide},
        {"%", BinaryOperator::Modulo},
    };
    const int line = current().line;
    ExpressionPtr left = BV_TRY(parsePower());
    while (true) {
        const auto* found = std::ranges::find_if(
            kOperators, [this](const auto& entry) { return isOperator(entry.first); });
        if (found == std::end(kOperators)) {
            return left;
        }
        advance();
        ExpressionPtr right = BV_TRY(parsePower());
        const int height = highest(left, right);
        left = BV_TRY(
            make(line, BinaryOperation{found->second, std::move(left), std::move(right)}, height));
    }
}

Result<ExpressionPtr> Parser::parsePower() {
    const int line = current().line;
    ExpressionPtr left = BV_TRY(parseUnary(true));
    while (skipOperator("**")) {
        ExpressionPtr right = BV_TRY(parseUnary(true));
        const int height = highest(left, right);
        left = BV_TRY(
            make(line, BinaryOperation{BinaryOperator::Power, std::move(left), std::move(right)},
                 height));
    }
    return left;
}

Result<ExpressionPtr> Parser::parseUnary(bool with_filters) {
    const int line = current().line;
    ExpressionPtr expression;
    if (isOperator("-") || isOperator("+")) {
        if (depth_ >= kMaxHeight) {
            return fail(ErrorCode::Corrupt, "line {}: an expression nests deeper than {}", line,
                        kMaxHeight);
        }
        const UnaryOperator operation =
            isOperator("-") ? UnaryOperator::Minus : UnaryOperator::Plus;
        advance();
        ++depth_;
        Result<ExpressionPtr> operand = parseUnary(false);
        --depth_;
        ExpressionPtr value = BV_TRY(std::move(operand));
        const int height = highest(value);
        expression = BV_TRY(make(line, UnaryOperation{operation, std::move(value)}, height));
    } else {
        expression = BV_TRY(parsePrimary());
    }
    expression = BV_TRY(parsePostfix(std::move(expression)));
    return with_filters ? parseFilters(std::move(expression)) : std::move(expression);
}

Result<ExpressionPtr> Parser::parseName() {
    const int line = current().line;
    const std::string name = current().text;
    advance();
    if (name == "true" || name == "True" || name == "false" || name == "False") {
        return make(line, Literal{name == "true" || name == "True"}, 0);
    }
    if (name == "none" || name == "None") {
        return make(line, Literal{NoneType{}}, 0);
    }
    if ((name == "cycler" || name == "joiner" || name == "lipsum") && isOperator("(")) {
        return unsupported(line, "function " + name);
    }
    uses_caller_ = uses_caller_ || name == "caller";
    uses_varargs_ = uses_varargs_ || name == "varargs";
    uses_kwargs_ = uses_kwargs_ || name == "kwargs";
    return make(line, NameReference{intern(name)}, 0);
}

Result<ExpressionPtr> Parser::parsePrimary() {
    const int line = current().line;
    switch (current().kind) {
        case TokenKind::Name:
            return parseName();
        case TokenKind::String: {
            std::string text;
            while (current().kind == TokenKind::String) {  // neighbouring strings are one
                text += current().text;
                advance();
            }
            return make(line, Literal{Heap(nullptr).text(text, kTemplateOrigin)}, 0);
        }
        case TokenKind::Integer: {
            const int64_t integer = current().integer;
            advance();
            return make(line, Literal{integer}, 0);
        }
        case TokenKind::Float: {
            const double real = current().real;
            advance();
            return make(line, Literal{real}, 0);
        }
        default:
            break;
    }
    if (skipOperator("(")) {
        ExpressionPtr inner = BV_TRY(parseTuple(true, true));
        BV_TRY(expectOperator(")"));
        return inner;
    }
    if (isOperator("[")) {
        return parseListDisplay();
    }
    if (isOperator("{")) {
        return parseDictDisplay();
    }
    return unexpected("an expression");
}

bool Parser::isTupleEnd() const {
    return current().kind == TokenKind::VariableEnd || current().kind == TokenKind::BlockEnd ||
           isOperator(")");
}

/// One expression, or several with commas between as a tuple.
Result<ExpressionPtr> Parser::parseTuple(bool with_conditional, bool in_parentheses) {
    const int line = current().line;
    ListDisplay tuple;
    tuple.is_tuple = true;
    int height = 0;
    bool has_comma = false;
    while (!isTupleEnd()) {
        if (with_conditional) {
            tuple.items.push_back(BV_TRY(parseExpression()));
        } else {
            tuple.items.push_back(BV_TRY(parseOr()));
        }
        height = std::max(height, tuple.items.back()->height);
        if (!skipOperator(",")) {
            break;
        }
        has_comma = true;
    }
    if (!has_comma && !tuple.items.empty()) {
        return std::move(tuple.items.front());
    }
    if (tuple.items.empty() && !in_parentheses) {
        return unexpected("an expression");
    }
    return make(line, std::move(tuple), height);
}

Result<ExpressionPtr> Parser::parseListDisplay() {
    const int line = current().line;
    advance();
    ListDisplay list;
    int height = 0;
    while (!isOperator("]")) {
        list.items.push_back(BV_TRY(parseExpression()));
        height = std::max(height, list.items.back()->height);
        if (!skipOperator(",")) {
            break;
        }
    }
    BV_TRY(expectOperator("]"));
    return make(line, std::move(list), height);
}

Result<ExpressionPtr> Parser::parseDictDisplay() {
    const int line = current().line;
    advance();
    DictDisplay dict;
    int height = 0;
    while (!isOperator("}")) {
        ExpressionPtr key = BV_TRY(parseExpression());
        BV_TRY(expectOperator(":"));
        ExpressionPtr value = BV_TRY(parseExpression());
        height = std::max({height, key->height, value->height});
        dict.items.emplace_back(std::move(key), std::move(value));
        if (!skipOperator(",")) {
            break;
        }
    }
    BV_TRY(expectOperator("}"));
    return make(line, std::move(dict), height);
}

Result<ExpressionPtr> Parser::parsePostfix(ExpressionPtr object) {
    while (true) {
        if (isOperator(".")) {
            object = BV_TRY(parseAttribute(std::move(object)));
        } else if (isOperator("[")) {
            object = BV_TRY(parseSubscript(std::move(object)));
        } else if (isOperator("(")) {
            object = BV_TRY(parseCall(std::move(object)));
        } else {
            return object;
        }
    }
}

Result<ExpressionPtr> Parser::parseFilters(ExpressionPtr input) {
    while (true) {
        if (isOperator("|")) {
            input = BV_TRY(parseFilter(std::move(input)));
        } else if (isName("is")) {
            input = BV_TRY(parseTest(std::move(input)));
        } else if (isOperator("(")) {
            input = BV_TRY(parseCall(std::move(input)));
        } else {
            return input;
        }
    }
}

Result<ExpressionPtr> Parser::parseAttribute(ExpressionPtr object) {
    const int line = current().line;
    advance();
    const int height = highest(object);
    if (current().kind == TokenKind::Integer) {
        ExpressionPtr index = BV_TRY(make(line, Literal{current().integer}, 0));
        advance();
        return make(line, ItemAccess{std::move(object), std::move(index)}, height);
    }
    std::string name = BV_TRY(takeName("an attribute name"));
    return make(line, AttributeAccess{std::move(object), std::move(name)}, height);
}

Result<ExpressionPtr> Parser::parseSubscript(ExpressionPtr object) {
    const int line = current().line;
    advance();
    ExpressionPtr parts[3];
    int n_colons = 0;
    while (!isOperator("]")) {
        if (n_colons < 2 && skipOperator(":")) {
            ++n_colons;
        } else if (isOperator(",")) {
            return unsupported(line, "an index with a comma");
        } else if (parts[n_colons] != nullptr) {
            return unexpected("']'");
        } else {
            parts[n_colons] = BV_TRY(parseExpression());
        }
    }
    advance();
    const int height = highest(object, parts[0], parts[1], parts[2]);
    if (n_colons > 0) {
        return make(line,
                    SliceAccess{std::move(object), std::move(parts[0]), std::move(parts[1]),
                                std::move(parts[2])},
                    height);
    }
    if (parts[0] == nullptr) {
        return unexpected("an index");
    }
    return make(line, ItemAccess{std::move(object), std::move(parts[0])}, height);
}

Result<ArgumentList> Parser::parseArguments() {
    ArgumentList arguments;
    BV_TRY(expectOperator("("));
    while (!isOperator(")")) {
        if (isOperator("*") || isOperator("**")) {
            return unsupported(current().line, "a call with " + current().text + "arguments");
        }
        if (current().kind == TokenKind::Name && ahead().kind == TokenKind::Operator &&
            ahead().text == "=") {
            std::string name = current().text;
            advance();
            advance();
            arguments.named.emplace_back(std::move(name), BV_TRY(parseExpression()));
        } else if (!arguments.named.empty()) {
            return unexpected("a named argument");
        } else {
            arguments.positional.push_back(BV_TRY(parseExpression()));
        }
        if (!skipOperator(",")) {
            break;
        }
    }
    BV_TRY(expectOperator(")"));
    return arguments;
}

Result<ExpressionPtr> Parser::parseCall(ExpressionPtr callee) {
    const int line = current().line;
    ArgumentList arguments = BV_TRY(parseArguments());
    const int height = highest(callee, arguments);
    return make(line, CallExpression{std::move(callee), std::move(arguments)}, height);
}

/// | name(arguments); a null input stands for captured text.
Result<ExpressionPtr> Parser::parseFilter(ExpressionPtr input) {
    (void)skipOperator("|");
    const int line = current().line;
    const std::string name = BV_TRY(takeName("a filter name"));
    const FilterFunction filter = findFilter(name);
    if (filter == nullptr) {
        return unsupported(line, "filter " + name);
    }
    ArgumentList arguments;
    if (isOperator("(")) {
        arguments = BV_TRY(parseArguments());
    }
    const int height = highest(input, arguments);
    return make(line, FilterExpression{std::move(input), filter, std::move(arguments)}, height);
}

bool Parser::startsTestArgument() const {
    switch (current().kind) {
        case TokenKind::Name:
            return !isName("else") && !isName("or") && !isName("and");
        case TokenKind::String:
        case TokenKind::Integer:
        case TokenKind::Float:
            return true;
        default:
            return isOperator("[") || isOperator("{");
    }
}

Result<ExpressionPtr> Parser::parseTest(ExpressionPtr input) {
    const int line = current().line;
    advance();
    const bool is_negated = skipName("not");
    const std::string name = BV_TRY(takeName("a test name"));
    const TestFunction test = findTest(name);
    if (test == nullptr) {
        return unsupported(line, "test " + name);
    }
    ArgumentList arguments;
    if (isOperator("(")) {
        arguments = BV_TRY(parseArguments());
    } else if (startsTestArgument()) {
        if (isName("is")) {
            return unexpected("one test only");
        }
        ExpressionPtr argument = BV_TRY(parsePrimary());
        arguments.positional.push_back(BV_TRY(parsePostfix(std::move(argument))));
    }
    const int height = highest(input, arguments);
    ExpressionPtr result =
        BV_TRY(make(line, TestExpression{std::move(input), test, std::move(arguments)}, height));
    if (!is_negated) {
        return result;
    }
    return make(line, UnaryOperation{UnaryOperator::Not, std::move(result)}, height + 1);
}

}  // namespace belvedere::inference::jinja
