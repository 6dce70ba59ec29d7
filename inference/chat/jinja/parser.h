// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tokens to a Program, by recursive descent. Any thread.
// Source: Jinja2 3.1 documentation, "Template Designer" (expressions, statements); precedence as in
// its own parser.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "inference/chat/jinja/ast.h"
#include "inference/chat/jinja/lexer.h"
#include "kernels/base/result.h"

namespace belvedere::inference::jinja {

/// Errors: Corrupt for a syntax error or a template that nests too deep; Unsupported for a
/// statement, filter, test or form of call that is not implemented. The message starts with the
/// line.
[[nodiscard]] Result<Program> parseTemplate(std::string_view source);

class Parser {
  public:
    explicit Parser(std::vector<Token> tokens);

    [[nodiscard]] Result<Program> parse();

  private:
    // statement_parser.cpp
    Result<Body> parseBody(std::vector<std::string_view> end_tags);
    Result<Body> parseBlock(std::vector<std::string_view> end_tags);
    Result<void> parseStatement(Body& body);
    Result<void> parsePrint(Body& body);
    Result<void> parseFor(Body& body, int line);
    Result<void> parseIf(Body& body, int line);
    Result<void> parseSet(Body& body, int line);
    Result<void> parseWith(Body& body, int line);
    Result<void> parseMacro(Body& body, int line);
    Result<void> parseCallBlock(Body& body, int line);
    Result<void> parseFilterBlock(Body& body, int line);
    Result<void> parseGeneration(Body& body, int line);
    Result<void> parsePrintTag(Body& body, int line);
    Result<void> parseLoopControl(Body& body, int line, bool is_break);
    Result<void> parseParameters(MacroStatement& macro);
    Result<void> parseMacroBody(MacroStatement& macro, std::string_view end_tag);
    Result<Target> parseTarget(bool may_be_namespace);
    Result<Target> parseSingleTarget(bool may_be_namespace);

    // expression_parser.cpp
    Result<ExpressionPtr> parseExpression();
    Result<ExpressionPtr> parseTuple(bool with_conditional, bool in_parentheses);
    Result<ExpressionPtr> parseConditional();
    Result<ExpressionPtr> parseOr();
    Result<ExpressionPtr> parseAnd();
    Result<ExpressionPtr> parseNot();
    Result<ExpressionPtr> parseComparison();
    Result<ExpressionPtr> parseSum();
    Result<ExpressionPtr> parseConcatenation();
    Result<ExpressionPtr> parseProduct();
    Result<ExpressionPtr> parsePower();
    Result<ExpressionPtr> parseUnary(bool with_filters);
    Result<ExpressionPtr> parsePrimary();
    Result<ExpressionPtr> parseName();
    Result<ExpressionPtr> parseListDisplay();
    Result<ExpressionPtr> parseDictDisplay();
    Result<ExpressionPtr> parsePostfix(ExpressionPtr object);
    Result<ExpressionPtr> parseFilters(ExpressionPtr input);
    Result<ExpressionPtr> parseFilter(ExpressionPtr input);
    Result<ExpressionPtr> parseTest(ExpressionPtr input);
    Result<ExpressionPtr> parseAttribute(ExpressionPtr object);
    Result<ExpressionPtr> parseSubscript(ExpressionPtr object);
    Result<ExpressionPtr> parseCall(ExpressionPtr callee);
    Result<ArgumentList> parseArguments();
    [[nodiscard]] bool isTupleEnd() const;
    [[nodiscard]] bool startsTestArgument() const;

    /// The node as an expression; `children` are those that it is made of, taken before they move.
    template <class Node>
    Result<ExpressionPtr> make(int line, Node node, int children_height);

    // tokens
    [[nodiscard]] const Token& current() const { return tokens_[at_]; }

    [[nodiscard]] const Token& ahead() const {
        return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
    }

    void advance() { at_ = std::min(at_ + 1, tokens_.size() - 1); }

    [[nodiscard]] bool isOperator(std::string_view text) const;
    [[nodiscard]] bool isName(std::string_view text) const;
    bool skipOperator(std::string_view text);
    bool skipName(std::string_view text);
    Result<void> expectOperator(std::string_view text);
    Result<void> expectName(std::string_view text);
    Result<void> expectKind(TokenKind kind, std::string_view what);
    Result<std::string> takeName(std::string_view what);
    int intern(const std::string& name);
    [[nodiscard]] tl::unexpected<Error> unexpected(std::string_view wanted) const;
    [[nodiscard]] tl::unexpected<Error> unsupported(int line, const std::string& what) const;

    std::vector<Token> tokens_;
    size_t at_ = 0;
    int depth_ = 0;
    int loop_depth_ = 0;  ///< for loops around, inside the present macro
    std::map<std::string, int, std::less<>> name_ids_;
    std::vector<std::string> names_;
    bool uses_caller_ = false;  ///< by the macro that is being parsed
    bool uses_varargs_ = false;
    bool uses_kwargs_ = false;
};

}  // namespace belvedere::inference::jinja
