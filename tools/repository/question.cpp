// SPDX-License-Identifier: Apache-2.0
// What a question asks for: its words, and the names in it that may be defined somewhere.

#include <algorithm>
#include <array>

#include "tools/repository/ranking.h"
#include "tools/repository/words.h"

namespace belvedere::tools {
namespace {

struct Token {
    std::string_view text;
    char before = ' ';
    char after = ' ';
    bool is_first = false;  ///< of a sentence: its capital says nothing
};

std::vector<Token> tokensOf(std::string_view text) {
    std::vector<Token> tokens;
    bool is_first = true;
    for (size_t at = 0; at < text.size();) {
        if (!isWordByte(text[at])) {
            is_first = is_first || text[at] == '?' || text[at] == '!' ||
                       (text[at] == '.' && at + 1 < text.size() && text[at + 1] == ' ');
            ++at;
            continue;
        }
        size_t end = at;
        while (end < text.size() && isWordByte(text[end])) {
            ++end;
        }
        tokens.push_back({text.substr(at, end - at), at > 0 ? text[at - 1] : ' ',
                          end < text.size() ? text[end] : ' ', is_first});
        is_first = false;
        at = end;
    }
    return tokens;
}

bool hasFormOfName(const Token& token) {
    const std::string_view text = token.text;
    const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const bool has_inner_capital = std::any_of(text.begin() + 1, text.end(), is_upper);
    const bool has_digit = !is_digit(text[0]) && std::any_of(text.begin(), text.end(), is_digit);
    const bool is_quoted =
        token.before == '`' || token.before == '"' || token.before == '\'' || token.after == '`';
    const bool is_member = token.before == ':' || (token.before == '.' && token.after != ' ');
    return text.find('_') != std::string_view::npos || has_inner_capital || has_digit ||
           is_quoted || is_member || token.after == '(' || token.after == ':' ||
           (is_upper(text[0]) && !token.is_first && text.size() > 1);
}

/// "page_size", "pageSize", "`size`", "size()": digits alone do not count ("utf8" is also UTF-8).
bool hasFormOfCode(const Token& token) {
    const std::string_view text = token.text;
    const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
    const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
    bool has_hump = false;
    for (size_t i = 1; i < text.size(); ++i) {
        has_hump = has_hump || (is_lower(text[i - 1]) && is_upper(text[i]));
    }
    return has_hump || text.find('_') != std::string_view::npos || token.after == '(' ||
           (token.before == '`' && token.after == '`');
}

template <size_t N>
bool isOneOf(const std::string& word, const std::array<std::string_view, N>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// "function open", "where is open defined": a plain word in the place of a name.
bool hasPlaceOfName(const std::vector<Token>& tokens, size_t i) {
    constexpr std::array<std::string_view, 14> kBefore = {
        "function", "method", "class",  "struct", "constant", "macro",     "variable",
        "enum",     "field",  "member", "type",   "module",   "namespace", "parameter"};
    constexpr std::array<std::string_view, 4> kAfter = {"defined", "declared", "implemented",
                                                        "constructed"};
    constexpr std::array<std::string_view, 8> kTakes = {"take",   "takes",   "return", "returns",
                                                        "accept", "accepts", "hold",   "holds"};
    const std::string before = i > 0 ? lowered(tokens[i - 1].text) : "";
    const std::string after = i + 1 < tokens.size() ? lowered(tokens[i + 1].text) : "";
    const std::string word = lowered(tokens[i].text);
    const bool is_filler = isOneOf(word, kBefore) || word == "does" || word == "is" ||
                           word == "the" || word == "it" || word == "this";
    return !is_filler &&
           (isOneOf(before, kBefore) || isOneOf(after, kAfter) || isOneOf(after, kTakes));
}

}  // namespace

Question readQuestion(std::string_view text) {
    constexpr std::array<std::string_view, 8> kOverview = {
        "project", "repository", "repo", "codebase", "program", "readme", "overview", "package"};
    Question question;
    const std::vector<Token> tokens = tokensOf(text);
    bool has_sure_name = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
        const std::string lower = lowered(tokens[i].text);
        question.is_about_tests = question.is_about_tests || lower.starts_with("test");
        question.is_overview = question.is_overview || isOneOf(lower, kOverview);
        const bool is_sure = hasFormOfName(tokens[i]) || hasPlaceOfName(tokens, i);
        if (is_sure || !isStopWord(lower)) {
            question.names.push_back(
                {std::string(tokens[i].text), is_sure, hasFormOfCode(tokens[i])});
        }
        has_sure_name = has_sure_name || is_sure;
    }
    question.is_overview = question.is_overview && !has_sure_name;
    std::string words;
    appendWords(text, words);
    for (size_t at = 0; at < words.size();) {
        const size_t end = words.find(' ', at);
        question.words.push_back(words.substr(at, end - at));
        at = end + 1;
    }
    std::sort(question.words.begin(), question.words.end());
    question.words.erase(std::unique(question.words.begin(), question.words.end()),
                         question.words.end());
    return question;
}

}  // namespace belvedere::tools
