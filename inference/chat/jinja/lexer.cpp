// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "inference/chat/jinja/string_literal.h"
#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

enum class TagKind { Block, Variable };

[[nodiscard]] bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

[[nodiscard]] bool isNameStart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// One kind of newline, and without the last one, as Jinja2 does by default.
[[nodiscard]] std::string normalizeNewlines(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            out.push_back(source[i]);
            continue;
        }
        out.push_back('\n');
        if (i + 1 < source.size() && source[i + 1] == '\n') {
            ++i;
        }
    }
    if (out.ends_with('\n')) {
        out.pop_back();
    }
    return out;
}

class Lexer {
  public:
    explicit Lexer(std::string source) : text_(std::move(source)) {}

    Result<std::vector<Token>> run();

  private:
    Result<void> readTag(TagKind kind);
    Result<void> readToken();
    Result<void> readNumber();
    Result<void> readString();
    Result<void> readOperator();
    Result<void> skipComment();
    Result<bool> readRaw(std::string_view data);
    [[nodiscard]] size_t nextTag() const;
    [[nodiscard]] size_t digitsEnd(size_t from) const;
    [[nodiscard]] std::optional<size_t> rawBeginEnd() const;
    [[nodiscard]] std::string_view stripBefore(std::string_view data,
                                               char sign,
                                               bool is_variable) const;

    [[nodiscard]] std::string_view rest() const { return std::string_view(text_).substr(at_); }

    [[nodiscard]] char peek(size_t offset = 0) const {
        return at_ + offset < text_.size() ? text_[at_ + offset] : '\0';
    }

    [[nodiscard]] size_t spaceEnd(size_t from) const;

    /// Moves to `to`, counting lines.
    void advanceTo(size_t to) {
        line_ +=
            static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                        text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
        at_ = to;
    }

    void finishTag(size_t end, char sign, bool trims_newline);

    void push(TokenKind kind, std::string text = {}) {
        Token token;
        token.kind = kind;
        token.text = std::move(text);
        token.line = line_;
        tokens_.push_back(std::move(token));
    }

    void pushData(std::string_view data, int line) {
        if (!data.empty()) {
            push(TokenKind::Data, std::string(data));
            tokens_.back().line = line;
        }
    }

    template <class... Args>
    [[nodiscard]] tl::unexpected<Error> failHere(fmt::format_string<Args...> text,
                                                 Args&&... args) const {
        return fail(ErrorCode::Corrupt, "line {}: {}", line_,
                    fmt::format(text, std::forward<Args>(args)...));
    }

    std::string text_;
    size_t at_ = 0;
    int line_ = 1;
    bool at_line_start_ = true;  ///< the token before ended with a newline
    std::string brackets_;       ///< closers that are due, innermost last
    std::vector<Token> tokens_;
};

size_t Lexer::spaceEnd(size_t from) const {
    while (from < text_.size()) {
        size_t next = from;
        if (!isSpace(nextPoint(text_, next))) {
            break;
        }
        from = next;
    }
    return from;
}

/// The text before a tag, with the white space removed that the tag's sign or lstrip_blocks takes.
std::string_view Lexer::stripBefore(std::string_view data, char sign, bool is_variable) const {
    size_t end = data.size();
    size_t begin_of_space = end;
    while (begin_of_space > 0) {
        const size_t previous = previousOffset(data, begin_of_space);
        size_t probe = previous;
        if (!isSpace(nextPoint(data, probe))) {
            break;
        }
        begin_of_space = previous;
    }
    if (sign == '-') {
        return data.substr(0, begin_of_space);
    }
    if (sign == '+' || is_variable) {
        return data;
    }
    const size_t newline = data.rfind('\n');
    const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    const bool starts_line = line_begin > 0 || at_line_start_;
    return starts_line && begin_of_space <= line_begin ? data.substr(0, line_begin) : data;
}

/// Moves behind a tag's end and the white space that it takes along.
void Lexer::finishTag(size_t end, char sign, bool trims_newline) {
    if (sign == '-') {
        end = spaceEnd(end);
    } else if (sign != '+' && trims_newline && end < text_.size() && text_[end] == '\n') {
        ++end;
    }
    advanceTo(end);
    at_line_start_ = at_ > 0 && text_[at_ - 1] == '\n';
}

/// Where the tag {% raw %} that starts here ends; nullopt when it is another tag.
std::optional<size_t> Lexer::rawBeginEnd() const {
    size_t at = at_ + 2;
    if (at < text_.size() && (text_[at] == '-' || text_[at] == '+')) {
        ++at;
    }
    at = spaceEnd(at);
    if (!std::string_view(text_).substr(at).starts_with("raw")) {
        return std::nullopt;
    }
    at = spaceEnd(at + 3);
    const std::string_view end = std::string_view(text_).substr(at);
    if (end.starts_with("-%}")) {
        return spaceEnd(at + 3);
    }
    return end.starts_with("%}") ? std::optional(at + 2) : std::nullopt;
}

/// {% raw %}...{% endraw %} becomes data. False: the tag here is another one.
Result<bool> Lexer::readRaw(std::string_view data) {
    const std::optional<size_t> body = rawBeginEnd();
    if (!body.has_value()) {
        return false;
    }
    pushData(stripBefore(data, peek(2), false), line_);
    advanceTo(*body);
    at_line_start_ = text_[at_ - 1] == '\n';
    for (size_t open = text_.find("{%", at_); open != std::string::npos;
         open = text_.find("{%", open + 1)) {
        size_t at = open + 2;
        const char sign = at < text_.size() ? text_[at] : '\0';
        at = spaceEnd(sign == '-' || sign == '+' ? at + 1 : at);
        if (!std::string_view(text_).substr(at).starts_with("endraw")) {
            continue;
        }
        at = spaceEnd(at + 6);
        const char end_sign = at < text_.size() ? text_[at] : '\0';
        const size_t close = end_sign == '-' || end_sign == '+' ? at + 1 : at;
        if (!std::string_view(text_).substr(close).starts_with("%}")) {
            continue;
        }
        pushData(stripBefore(std::string_view(text_).substr(at_, open - at_), sign, false), line_);
        finishTag(close + 2, end_sign, true);
        return true;
    }
    return failHere("a raw block has no end");
}

Result<void> Lexer::skipComment() {
    const size_t close = text_.find("#}", at_);
    if (close == std::string::npos) {
        return failHere("a comment has no end");
    }
    const char sign = close > at_ ? text_[close - 1] : '\0';
    finishTag(close + 2, sign, true);
    return {};
}

/// Where the next {%, {{ or {# stands; the end of the text when there is none.
size_t Lexer::nextTag() const {
    for (size_t open = text_.find('{', at_); open != std::string::npos;
         open = text_.find('{', open + 1)) {
        if (open + 1 < text_.size() &&
            std::string_view("%{#").find(text_[open + 1]) != std::string_view::npos) {
            return open;
        }
    }
    return text_.size();
}

Result<std::vector<Token>> Lexer::run() {
    while (at_ < text_.size()) {
        const size_t end = nextTag();
        const std::string_view data = std::string_view(text_).substr(at_, end - at_);
        if (end == text_.size()) {
            pushData(data, line_);
            break;
        }
        const int data_line = line_;  // of the text before the tag
        advanceTo(end);
        const char opener = peek(1);
        if (opener == '%' && BV_TRY(readRaw(data))) {
            continue;
        }
        const char sign = peek(2);
        const std::string_view kept = stripBefore(data, sign, opener == '{');
        pushData(kept, data_line);
        at_ += sign == '-' || sign == '+' ? 3 : 2;
        if (opener == '#') {
            BV_TRY(skipComment());
        } else {
            BV_TRY(readTag(opener == '%' ? TagKind::Block : TagKind::Variable));
        }
    }
    push(TokenKind::End);
    return std::move(tokens_);
}

Result<void> Lexer::readTag(TagKind kind) {
    const bool is_block = kind == TagKind::Block;
    const std::string_view closer = is_block ? "%}" : "}}";
    push(is_block ? TokenKind::BlockBegin : TokenKind::VariableBegin);
    while (true) {
        advanceTo(spaceEnd(at_));
        if (at_ >= text_.size()) {
            return failHere("the template ends inside a tag");
        }
        const char sign = peek() == '-' || (is_block && peek() == '+') ? peek() : '\0';
        const size_t sign_length = sign == '\0' ? 0 : 1;
        if (brackets_.empty() && rest().substr(sign_length).starts_with(closer)) {
            push(is_block ? TokenKind::BlockEnd : TokenKind::VariableEnd);
            finishTag(at_ + sign_length + closer.size(), sign, is_block);
            return {};
        }
        BV_TRY(readToken());
    }
}

Result<void> Lexer::readToken() {
    const char c = peek();
    if (isDigit(c)) {
        return readNumber();
    }
    if (isNameStart(c)) {
        size_t end = at_;
        while (end < text_.size() && (isNameStart(text_[end]) || isDigit(text_[end]))) {
            ++end;
        }
        push(TokenKind::Name, text_.substr(at_, end - at_));
        at_ = end;
        return {};
    }
    if (c == '"' || c == '\'') {
        return readString();
    }
    return readOperator();
}

/// End of a run of digits in which single underscores may separate.
size_t Lexer::digitsEnd(size_t from) const {
    const auto digitAt = [this](size_t i) { return i < text_.size() && isDigit(text_[i]); };
    while (digitAt(from) ||
           (from < text_.size() && text_[from] == '_' && digitAt(from - 1) && digitAt(from + 1))) {
        ++from;
    }
    return from;
}

Result<void> Lexer::readNumber() {
    const bool may_be_float = at_ == 0 || text_[at_ - 1] != '.';
    const size_t whole_end = digitsEnd(at_);
    size_t end = whole_end;
    if (may_be_float) {
        const size_t fraction_end =
            end < text_.size() && text_[end] == '.' ? digitsEnd(end + 1) : end;
        end = fraction_end > end + 1 ? fraction_end : end;
        if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
            const bool has_sign =
                end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-');
            const size_t digits = end + (has_sign ? size_t{2} : size_t{1});
            const size_t exponent_end =
                digits < text_.size() && isDigit(text_[digits]) ? digitsEnd(digits) : digits;
            end = exponent_end > digits ? exponent_end : end;
        }
    }
    std::string digits = text_.substr(at_, end - at_);
    std::erase(digits, '_');
    push(end == whole_end ? TokenKind::Integer : TokenKind::Float);
    Token& token = tokens_.back();
    std::from_chars_result parsed{};
    if (token.kind == TokenKind::Float) {
        parsed = std::from_chars(digits.data(), digits.data() + digits.size(), token.real);
    } else if (digits.size() > 1 && digits.front() == '0' &&
               digits.find_first_not_of('0') != std::string::npos) {
        return failHere("a number starts with 0: {}", digits);
    } else {
        parsed = std::from_chars(digits.data(), digits.data() + digits.size(), token.integer);
    }
    if (parsed.ec != std::errc() || (end < text_.size() && (isNameStart(text_[end])))) {
        return fail(ErrorCode::Unsupported, "line {}: number {}: not a decimal number of 64 bits",
                    line_, digits);
    }
    at_ = end;
    return {};
}

Result<void> Lexer::readString() {
    const char quote = peek();
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) {
        end += text_[end] == '\\' ? size_t{2} : size_t{1};
    }
    if (end >= text_.size()) {
        return failHere("a string has no closing {}", quote);
    }
    Result<std::string> decoded =
        decodeStringLiteral(std::string_view(text_).substr(at_ + 1, end - at_ - 1));
    if (!decoded.has_value()) {
        return failWithContext(std::move(decoded).error(), fmt::format("line {}", line_));
    }
    push(TokenKind::String, std::move(*decoded));
    advanceTo(end + 1);
    return {};
}

Result<void> Lexer::readOperator() {
    constexpr std::array<std::string_view, 6> kPairs = {"//", "**", "==", "!=", ">=", "<="};
    const auto* pair =
        std::ranges::find_if(kPairs, [this](std::string_view p) { return rest().starts_with(p); });
    const size_t length = pair == kPairs.end() ? 1 : 2;
    const std::string text(rest().substr(0, length));
    if (length == 1 &&
        std::string_view("+-/*%~[](){}><=.:|,;").find(text[0]) == std::string_view::npos) {
        size_t next = at_;
        (void)nextPoint(text_, next);
        return fail(static_cast<unsigned char>(text[0]) < 0x80 ? ErrorCode::Corrupt
                                                               : ErrorCode::Unsupported,
                    "line {}: unexpected character '{}' in a tag", line_,
                    text_.substr(at_, next - at_));
    }
    constexpr std::string_view kOpeners = "([{";
    constexpr std::string_view kClosers = ")]}";
    if (const size_t opener = kOpeners.find(text[0]); opener != std::string_view::npos) {
        brackets_.push_back(kClosers[opener]);
    } else if (kClosers.find(text[0]) != std::string_view::npos) {
        if (brackets_.empty() || brackets_.back() != text[0]) {
            return failHere("unexpected '{}'", text);
        }
        brackets_.pop_back();
    }
    push(TokenKind::Operator, text);
    at_ += length;
    return {};
}

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
    constexpr size_t kMaxSourceBytes = 4U << 20;  // the largest template in use has 17 kB
    if (source.size() > kMaxSourceBytes) {
        return fail(ErrorCode::Corrupt, "{} bytes of template, at most {}", source.size(),
                    kMaxSourceBytes);
    }
    if (const std::optional<size_t> bad = findInvalidUtf8(source)) {
        return fail(ErrorCode::Corrupt, "byte {} of the template is not valid UTF-8", *bad);
    }
    return Lexer(normalizeNewlines(source)).run();
}

}  // namespace belvedere::inference::jinja
