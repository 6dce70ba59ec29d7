// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "inference/chat/jinja/parser.h"

namespace belvedere::inference::jinja {
namespace {

constexpr int kMaxNesting = 60;  // of statements; those of real templates stay under 12

[[nodiscard]] std::string quoted(const Token& token) {
    switch (token.kind) {
        case TokenKind::End:
            return "the end of the template";
        case TokenKind::BlockEnd:
            return "'%}'";
        case TokenKind::VariableEnd:
            return "'}}'";
        case TokenKind::Data:
        case TokenKind::BlockBegin:
        case TokenKind::VariableBegin:
            return "text";
        case TokenKind::Integer:
            return fmt::format("{}", token.integer);
        case TokenKind::Float:
            return fmt::format("{}", token.real);
        default:
            return "'" + token.text + "'";
    }
}

[[nodiscard]] std::string joined(const std::vector<std::string_view>& tags) {
    std::string out;
    for (const std::string_view tag : tags) {
        out += out.empty() ? "" : " or ";
        out += tag;
    }
    return out;
}

template <class Node>
void append(Body& body, int line, Node node) {
    auto statement = std::make_unique<Statement>();
    statement->line = line;
    statement->node = std::move(node);
    body.push_back(std::move(statement));
}

}  // namespace

Parser::Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
    for (const char* name :
         {"loop", "caller", "varargs", "kwargs"}) {  // as SpecialNames numbers them
        (void)intern(name);
    }
}

Result<Program> Parser::parse() {
    Program program;
    program.body = BV_TRY(parseBody({}));
    constexpr size_t kMaxNames = 10'000;  // scopes are searched from front to back
    if (names_.size() > kMaxNames) {
        return fail(ErrorCode::Corrupt, "the template has {} names, at most {}", names_.size(),
                    kMaxNames);
    }
    program.names = std::move(names_);
    return program;
}

bool Parser::isOperator(std::string_view text) const {
    return current().kind == TokenKind::Operator && current().text == text;
}

bool Parser::isName(std::string_view text) const {
    return current().kind == TokenKind::Name && current().text == text;
}

bool Parser::skipOperator(std::string_view text) {
    const bool found = isOperator(text);
    if (found) {
        advance();
    }
    return found;
}

bool Parser::skipName(std::string_view text) {
    const bool found = isName(text);
    if (found) {
        advance();
    }
    return found;
}

Result<void> Parser::expectOperator(std::string_view text) {
    if (!skipOperator(text)) {
        return unexpected(fmt::format("'{}'", text));
    }
    return {};
}

Result<void> Parser::expectName(std::string_view text) {
    if (!skipName(text)) {
        return unexpected(fmt::format("'{}'", text));
    }
    return {};
}

Result<void> Parser::expectKind(TokenKind kind, std::string_view what) {
    if (current().kind != kind) {
        return unexpected(what);
    }
    advance();
    return {};
}

Result<std::string> Parser::takeName(std::string_view what) {
    if (current().kind != TokenKind::Name) {
        return unexpected(what);
    }
    std::string name = current().text;
    advance();
    return name;
}

int Parser::intern(const std::string& name) {
    const auto [entry, is_new] = name_ids_.emplace(name, static_cast<int>(names_.size()));
    if (is_new) {
        names_.push_back(name);
    }
    return entry->second;
}

tl::unexpected<Error> Parser::unexpected(std::string_view wanted) const {
    return fail(ErrorCode::Corrupt, "line {}: expected {}, found {}", current().line, wanted,
                quoted(current()));
}

tl::unexpected<Error> Parser::unsupported(int line, const std::string& what) const {
    return fail(ErrorCode::Unsupported, "line {}: {} is not supported", line, what);
}

/// Statements up to a tag whose name is in end_tags (left as the current token), or to the end when
/// there are none.
Result<Body> Parser::parseBody(std::vector<std::string_view> end_tags) {
    if (depth_ >= kMaxNesting) {
        return fail(ErrorCode::Corrupt, "line {}: statements nest deeper than {}", current().line,
                    kMaxNesting);
    }
    ++depth_;
    Body body;
    while (current().kind != TokenKind::End) {
        if (current().kind == TokenKind::Data) {
            append(body, current().line,
                   DataStatement{*asText(Heap(nullptr).text(current().text, kTemplateOrigin))});
            advance();
            continue;
        }
        if (current().kind == TokenKind::VariableBegin) {
            BV_TRY(parsePrint(body));
            continue;
        }
        BV_TRY(expectKind(TokenKind::BlockBegin, "a tag"));
        const bool is_end =
            current().kind == TokenKind::Name && std::ranges::count(end_tags, current().text) > 0;
        if (is_end) {
            --depth_;
            return body;
        }
        BV_TRY(parseStatement(body));
    }
    if (!end_tags.empty()) {
        return unexpected(joined(end_tags));
    }
    --depth_;
    return body;
}

/// The rest of an opening tag, then its body up to a tag of end_tags.
Result<Body> Parser::parseBlock(std::vector<std::string_view> end_tags) {
    (void)skipOperator(":");
    BV_TRY(expectKind(TokenKind::BlockEnd, "'%}'"));
    return parseBody(std::move(end_tags));
}

Result<void> Parser::parsePrint(Body& body) {
    const int line = current().line;
    advance();
    append(body, line, PrintStatement{BV_TRY(parseTuple(true, false))});
    return expectKind(TokenKind::VariableEnd, "'}}'");
}

Result<void> Parser::parseStatement(Body& body) {
    const int line = current().line;
    const std::string tag = BV_TRY(takeName("a tag name"));
    if (tag == "for") {
        BV_TRY(parseFor(body, line));
    } else if (tag == "if") {
        BV_TRY(parseIf(body, line));
    } else if (tag == "set") {
        BV_TRY(parseSet(body, line));
    } else if (tag == "with") {
        BV_TRY(parseWith(body, line));
    } else if (tag == "macro") {
        BV_TRY(parseMacro(body, line));
    } else if (tag == "call") {
        BV_TRY(parseCallBlock(body, line));
    } else if (tag == "filter") {
        BV_TRY(parseFilterBlock(body, line));
    } else if (tag == "generation") {
        BV_TRY(parseGeneration(body, line));
    } else if (tag == "print") {
        BV_TRY(parsePrintTag(body, line));
    } else if (tag == "break" || tag == "continue") {
        BV_TRY(parseLoopControl(body, line, tag == "break"));
    } else {
        return unsupported(line, "tag " + tag);
    }
    return expectKind(TokenKind::BlockEnd, "'%}'");
}

Result<void> Parser::parseFor(Body& body, int line) {
    ForStatement statement;
    statement.target = BV_TRY(parseTarget(false));
    BV_TRY(expectName("in"));
    statement.iterable = BV_TRY(parseTuple(false, false));
    if (skipName("if")) {
        statement.filter = BV_TRY(parseExpression());
    }
    if (isName("recursive")) {
        return unsupported(line, "a recursive for loop");
    }
    ++loop_depth_;
    statement.body = BV_TRY(parseBlock({"endfor", "else"}));
    --loop_depth_;
    if (skipName("else")) {
        statement.otherwise = BV_TRY(parseBlock({"endfor"}));
    }
    advance();
    append(body, line, std::move(statement));
    return {};
}

Result<void> Parser::parseIf(Body& body, int line) {
    IfStatement statement;
    do {
        ExpressionPtr test = BV_TRY(parseTuple(false, false));
        Body branch = BV_TRY(parseBlock({"elif", "else", "endif"}));
        statement.branches.emplace_back(std::move(test), std::move(branch));
    } while (skipName("elif"));
    if (skipName("else")) {
        statement.otherwise = BV_TRY(parseBlock({"endif"}));
    }
    advance();
    append(body, line, std::move(statement));
    return {};
}

Result<void> Parser::parseSet(Body& body, int line) {
    Target target = BV_TRY(parseTarget(true));
    if (skipOperator("=")) {
        SetStatement statement;
        statement.target = std::move(target);
        statement.value = BV_TRY(parseTuple(true, false));
        append(body, line, std::move(statement));
        return {};
    }
    SetBlockStatement statement;
    statement.target = std::move(target);
    while (isOperator("|")) {
        statement.filter = BV_TRY(parseFilter(std::move(statement.filter)));
    }
    statement.body = BV_TRY(parseBlock({"endset"}));
    advance();
    append(body, line, std::move(statement));
    return {};
}

Result<void> Parser::parseWith(Body& body, int line) {
    WithStatement statement;
    while (current().kind != TokenKind::BlockEnd) {
        if (!statement.assignments.empty()) {
            BV_TRY(expectOperator(","));
        }
        Target target = BV_TRY(parseTarget(false));
        BV_TRY(expectOperator("="));
        statement.assignments.emplace_back(std::move(target), BV_TRY(parseExpression()));
    }
    statement.body = BV_TRY(parseBlock({"endwith"}));
    advance();
    append(body, line, std::move(statement));
    return {};
}

Result<void> Parser::parseParameters(MacroStatement& macro) {
    BV_TRY(expectOperator("("));
    while (!isOperator(")")) {
        if (!macro.parameters.empty()) {
            BV_TRY(expectOperator(","));
        }
        MacroStatement::Parameter parameter;
        parameter.name = intern(BV_TRY(takeName("a parameter name")));
        if (skipOperator("=")) {
            parameter.fallback = BV_TRY(parseExpression());
        } else if (!macro.parameters.empty() && macro.parameters.back().fallback != nullptr) {
            return unexpected("a default for the parameter");
        }
        macro.parameters.push_back(std::move(parameter));
    }
    advance();
    return {};
}

/// The body is a world of its own: no loop control of a loop outside, and its own use of caller,
/// varargs and kwargs.
Result<void> Parser::parseMacroBody(MacroStatement& macro, std::string_view end_tag) {
    const int outer_loops = std::exchange(loop_depth_, 0);
    const bool outer_caller = std::exchange(uses_caller_, false);
    const bool outer_varargs = std::exchange(uses_varargs_, false);
    const bool outer_kwargs = std::exchange(uses_kwargs_, false);
    macro.body = BV_TRY(parseBlock({end_tag}));
    advance();
    loop_depth_ = outer_loops;
    macro.uses_caller = std::exchange(uses_caller_, outer_caller);
    macro.uses_varargs = std::exchange(uses_varargs_, outer_varargs);
    macro.uses_kwargs = std::exchange(uses_kwargs_, outer_kwargs);
    return {};
}

Result<void> Parser::parseMacro(Body& body, int line) {
    MacroStatement macro;
    macro.name = BV_TRY(takeName("a macro name"));
    macro.name_id = intern(macro.name);
    BV_TRY(parseParameters(macro));
    BV_TRY(parseMacroBody(macro, "endmacro"));
    append(body, line, std::move(macro));
    return {};
}

Result<void> Parser::parseCallBlock(Body& body, int line) {
    CallStatement statement;
    if (isOperator("(")) {
        BV_TRY(parseParameters(statement.caller));
    }
    statement.call = BV_TRY(parseExpression());
    if (!std::holds_alternative<CallExpression>(statement.call->node)) {
        return unexpected("a call");
    }
    statement.caller.name = "caller";
    BV_TRY(parseMacroBody(statement.caller, "endcall"));
    append(body, line, std::move(statement));
    return {};
}

Result<void> Parser::parseFilterBlock(Body& body, int line) {
    FilterStatement statement;
    do {
        statement.filter = BV_TRY(parseFilter(std::move(statement.filter)));
    } while (isOperator("|"));
    statement.body = BV_TRY(parseBlock({"endfilter"}));
    advance();
    append(body, line, std::move(statement));
    return {};
}

Result<void> Parser::parseGeneration(Body& body, int line) {
    const int outer_loops = std::exchange(loop_depth_, 0);
    ScopeStatement statement{BV_TRY(parseBlock({"endgeneration"}))};
    loop_depth_ = outer_loops;
    advance();
    append(body, line, std::move(statement));
    return {};
}

Result<void> Parser::parsePrintTag(Body& body, int line) {
    do {
        append(body, line, PrintStatement{BV_TRY(parseExpression())});
    } while (skipOperator(","));
    return {};
}

Result<void> Parser::parseLoopControl(Body& body, int line, bool is_break) {
    if (loop_depth_ == 0) {
        return fail(ErrorCode::Corrupt, "line {}: '{}' outside a loop", line,
                    is_break ? "break" : "continue");
    }
    if (is_break) {
        append(body, line, BreakStatement{});
    } else {
        append(body, line, ContinueStatement{});
    }
    return {};
}

Result<Target> Parser::parseSingleTarget(bool may_be_namespace) {
    if (skipOperator("(")) {
        if (depth_ >= kMaxNesting) {
            return fail(ErrorCode::Corrupt, "line {}: targets nest deeper than {}", current().line,
                        kMaxNesting);
        }
        ++depth_;
        Target inner = BV_TRY(parseTarget(false));
        --depth_;
        BV_TRY(expectOperator(")"));
        return inner;
    }
    const int line = current().line;
    const std::string name = BV_TRY(takeName("a name to assign to"));
    constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
    if (std::ranges::count(kConstants, name) > 0) {
        return fail(ErrorCode::Corrupt, "line {}: cannot assign to {}", line, name);
    }
    if (may_be_namespace && skipOperator(".")) {
        return Target{
            Target::NamespaceAttribute{intern(name), BV_TRY(takeName("an attribute name"))}};
    }
    return Target{intern(name)};
}

Result<Target> Parser::parseTarget(bool may_be_namespace) {
    std::vector<Target> targets;
    targets.push_back(BV_TRY(parseSingleTarget(may_be_namespace)));
    bool has_comma = false;
    while (skipOperator(",")) {
        has_comma = true;
        if (isName("in") || isOperator("=") || isOperator(")") ||
            current().kind == TokenKind::BlockEnd) {
            break;
        }
        targets.push_back(BV_TRY(parseSingleTarget(may_be_namespace)));
    }
    if (!has_comma) {
        return std::move(targets.front());
    }
    return Target{std::move(targets)};
}

Result<Program> parseTemplate(std::string_view source) {
    return Parser(BV_TRY(tokenize(source))).parse();
}

}  // namespace belvedere::inference::jinja
