// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/definitions.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace belvedere::tools {
namespace {

// Weights, in the order a person would want the places listed.
constexpr float kSure = 1.0F;
constexpr float kDeclaration = 0.8F;  // a prototype: its definition comes first where both exist
constexpr float kConstant = 0.9F;
constexpr float kEnumValue = 0.7F;
constexpr float kField = 0.6F;
constexpr float kForward = 0.1F;  // class X;
constexpr float kNamespace = 0.2F;

bool isNameStart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           static_cast<unsigned char>(c) >= 0x80;
}

bool isNameByte(char c) {
    return isNameStart(c) || (c >= '0' && c <= '9');
}

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string_view takeName(std::string_view& rest) {
    size_t n = 0;
    while (n < rest.size() && isNameByte(rest[n])) {
        ++n;
    }
    const std::string_view name =
        n > 0 && isNameStart(rest[0]) ? rest.substr(0, n) : std::string_view();
    rest.remove_prefix(name.size());
    return name;
}

void skipBlanks(std::string_view& rest) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
}

template <size_t N>
bool isOneOf(std::string_view word, const std::array<std::string_view, N>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool isCapitals(std::string_view name) {
    return name.size() > 1 &&
           std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

constexpr std::array<std::string_view, 24> kStatements = {
    "if",     "else",  "for",    "while", "do",     "switch", "case",  "return",
    "goto",   "throw", "delete", "new",   "sizeof", "catch",  "break", "assert",
    "import", "from",  "raise",  "yield", "await",  "elif",   "match", "co_return"};

/// Words before the name that a definition may carry in some language.
constexpr std::array<std::string_view, 26> kModifiers = {
    "export",    "default",  "public", "private",  "protected", "internal", "static",
    "final",     "abstract", "async",  "pub",      "unsafe",    "extern",   "inline",
    "constexpr", "virtual",  "sealed", "data",     "override",  "declare",  "readonly",
    "open",      "partial",  "friend", "explicit", "local"};

/// A keyword that the defined name follows.
struct Keyword {
    std::string_view word;
    float weight;
    bool is_type;  ///< `word name;` is only a forward declaration
};

constexpr std::array<Keyword, 24> kKeywords = {{
    {"class", kSure, true},      {"struct", kSure, true},          {"union", kSure, true},
    {"enum", kSure, true},       {"interface", kSure, true},       {"trait", kSure, true},
    {"record", kSure, true},     {"concept", kSure, false},        {"def", kSure, false},
    {"fn", kSure, false},        {"func", kSure, false},           {"fun", kSure, false},
    {"function", kSure, false},  {"macro_rules", kSure, false},    {"type", kSure, false},
    {"using", kConstant, false}, {"let", kField, false},           {"var", kField, false},
    {"val", kField, false},      {"const", kConstant, false},      {"module", kNamespace, false},
    {"mod", kNamespace, false},  {"namespace", kNamespace, false}, {"object", kSure, false},
}};

const Keyword* findKeyword(Language language, std::string_view word) {
    const bool is_c_type_word =
        language == Language::CLike &&
        (word == "const" || word == "type" || word == "let" || word == "val" || word == "object" ||
         word == "module" || word == "record" || word == "mod" || word == "def" || word == "fn");
    if (is_c_type_word ||
        (language == Language::Python && word != "class" && word != "def" && word != "type")) {
        return nullptr;
    }
    const auto* const found = std::find_if(kKeywords.begin(), kKeywords.end(),
                                           [&](const Keyword& k) { return k.word == word; });
    return found == kKeywords.end() ? nullptr : found;
}

/// After `class`: attributes, export macros and "enum class" stand before the name: the last name
/// before { : ; ( < = or end.
void addTypeName(std::string_view rest, float weight, std::vector<Definition>& definitions) {
    std::string_view name;
    while (true) {
        skipBlanks(rest);
        if (rest.starts_with("[[") || rest.starts_with("alignas(") ||
            rest.starts_with("__attribute__(")) {
            const size_t end = rest.find(rest[0] == '[' ? "]]" : ")");
            rest.remove_prefix(
                end == std::string_view::npos ? rest.size() : end + 1 + (rest[0] == '[' ? 1U : 0U));
            continue;
        }
        const std::string_view next = takeName(rest);
        if (next.empty() || next == "final" || next == "extends" || next == "implements" ||
            next == "for" || next == "where") {
            break;
        }
        name = next;
        while (rest.starts_with("::")) {  // class Outer::Inner
            rest.remove_prefix(2);
            name = takeName(rest);
        }
    }
    if (name.empty()) {
        return;
    }
    const bool is_use =
        !rest.empty() && std::string_view("*&,)>").find(rest[0]) != std::string_view::npos;
    if (!is_use) {
        definitions.push_back({name, rest.starts_with(';') ? kForward : weight});
    }
}

/// After `def`, `fn`, `func`: Go's receiver and JavaScript's star stand before the name.
void addFunctionName(std::string_view rest, float weight, std::vector<Definition>& definitions) {
    skipBlanks(rest);
    if (rest.starts_with('(') || rest.starts_with('<')) {
        const size_t end = rest.find(rest[0] == '(' ? ')' : '>');
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        skipBlanks(rest);
    }
    if (rest.starts_with('*') || rest.starts_with('!')) {
        rest.remove_prefix(1);
        skipBlanks(rest);
    }
    std::string_view name = takeName(rest);
    while ((rest.starts_with('.') || rest.starts_with("::")) && !name.empty()) {
        rest.remove_prefix(rest[0] == '.' ? 1 : 2);
        name = takeName(rest);
    }
    if (!name.empty() && !(name == "mut")) {
        definitions.push_back({name, weight});
    } else if (name == "mut") {
        addFunctionName(rest, weight, definitions);
    }
}

/// #define NAME, %define NAME
bool addMacro(std::string_view line, std::vector<Definition>& definitions) {
    if (line.empty() || (line[0] != '#' && line[0] != '%')) {
        return false;
    }
    line.remove_prefix(1);
    skipBlanks(line);
    if (!line.starts_with("define")) {
        return line.empty() ||
               line[0] != '[';  // other directives define nothing; #[attribute] is no directive
    }
    line.remove_prefix(6);
    skipBlanks(line);
    if (const std::string_view name = takeName(line); !name.empty()) {
        definitions.push_back({name, kSure});
    }
    return true;
}

/// What follows `template <...>` on its line.
std::string_view afterTemplate(std::string_view line) {
    if (!line.starts_with("template")) {
        return line;
    }
    int depth = 0;
    for (size_t at = 0; at < line.size(); ++at) {
        depth += line[at] == '<' ? 1 : (line[at] == '>' ? -1 : 0);
        if (depth == 0 && line[at] == '>') {
            return trimmed(line.substr(at + 1));
        }
    }
    return {};
}

/// "Keyword name": types, functions of most languages, JavaScript and Rust variables.
bool addAfterKeyword(Language language,
                     std::string_view line,
                     std::vector<Definition>& definitions) {
    std::string_view rest = line;
    for (int n_words = 0; n_words < 6; ++n_words) {
        skipBlanks(rest);
        if (rest.starts_with('(') && n_words > 0) {  // pub(crate)
            rest.remove_prefix(std::min(rest.find(')'), rest.size() - 1) + 1);
            skipBlanks(rest);
        }
        const std::string_view word = takeName(rest);
        if (word == "typedef") {
            continue;
        }
        if (const Keyword* keyword = findKeyword(language, word);
            keyword != nullptr && !rest.starts_with('(')) {
            if (word == "const" && language == Language::Rust && rest.starts_with(" fn")) {
                continue;
            }
            const bool is_type = keyword->is_type && rest.find(" = ") == std::string_view::npos;
            const size_t n_before = definitions.size();
            if (is_type) {
                const size_t open = rest.find('(');
                const bool is_c_function =
                    language == Language::CLike && open != std::string_view::npos &&
                    rest.find("alignas(") == std::string_view::npos &&
                    rest.find("__attribute__") == std::string_view::npos &&
                    (rest.find('{') == std::string_view::npos || rest.find('{') > open);
                if (is_c_function) {
                    return false;  // struct point *make(int x)
                }
                addTypeName(rest, keyword->weight, definitions);
            } else {
                addFunctionName(rest, keyword->weight, definitions);
            }
            return definitions.size() > n_before;
        }
        if (!isOneOf(word, kModifiers)) {
            return false;
        }
    }
    return false;
}

struct TextBeforeName {
    std::string_view name;
    std::string_view before;
    bool is_qualified = false;
};

/// The name that ends at `end` and what stands before it on the line: "int Box::size" -> size, "int
/// ".
TextBeforeName nameBefore(std::string_view line, size_t end) {
    end = line.substr(0, end).find_last_not_of(" \t") + 1;
    size_t begin = end;
    while (begin > 0 && isNameByte(line[begin - 1])) {
        --begin;
    }
    TextBeforeName found;
    if (begin == end || !isNameStart(line[begin])) {
        return found;
    }
    found.name = line.substr(begin, end - begin);
    if (begin > 0 && line[begin - 1] == '~') {
        --begin;
    }
    while (begin >= 2 && line.substr(begin - 2, 2) == "::") {
        found.is_qualified = true;
        begin -= 2;
        if (begin > 0 && line[begin - 1] == '>') {  // Box<T>::size
            begin = std::min(line.rfind('<', begin), begin);
        }
        while (begin > 0 && isNameByte(line[begin - 1])) {
            --begin;
        }
    }
    found.before = line.substr(0, begin);
    return found;
}

/// True for what can be a return type or the type of a variable: names, ::, <>, *, &, [[ ]], commas
/// within <>.
bool isTypeText(std::string_view text) {
    text = trimmed(text);
    if (text.empty()) {
        return false;
    }
    int depth = 0;
    for (const char c : text) {
        depth += c == '<' ? 1 : (c == '>' ? -1 : 0);
        const bool is_fine = isNameByte(c) ||
                             std::string_view(" \t:<>*&[]").find(c) != std::string_view::npos ||
                             ((c == ',' || c == '(' || c == ')') && depth > 0);
        if (!is_fine) {
            return false;
        }
    }
    std::string_view rest = text;
    return !isOneOf(takeName(rest), kStatements) &&
           isNameByte(text.back()) + (text.back() == '>') + (text.back() == '*') +
                   (text.back() == '&') + (text.back() == ']') >
               0;
}

/// Functions of C++, Java and the like: a type, a name, an open bracket; or a qualified name
/// (constructors).
bool addCFunction(std::string_view line,
                  std::string_view next_line,
                  std::vector<Definition>& definitions) {
    const size_t open = line.find('(');
    if (open == std::string_view::npos || open == 0) {
        return false;
    }
    const TextBeforeName found = nameBefore(line, open);
    if (found.name.empty() || isOneOf(found.name, kStatements)) {
        return false;
    }
    const char last = line.back();
    const bool has_body = last == '{' || last == '}' || trimmed(next_line).starts_with('{') ||
                          last == ':' || last == '(';
    if (found.before.empty()) {
        // A constructor in its class, a definition of `Box::Box(`, or a call. A body tells.
        const bool is_definition = (found.is_qualified || last == '{') && has_body && last != ';';
        if (is_definition) {
            definitions.push_back({found.name, found.is_qualified ? kSure : kField});
        }
        return is_definition;
    }
    if (!isTypeText(found.before) || found.name == "operator") {
        return false;
    }
    const bool is_call_like = last == ';' && !found.is_qualified && line.find(')') == open + 1 &&
                              isCapitals(found.before);
    if (!is_call_like) {
        definitions.push_back(
            {found.name, last == ';' || (last == ',' && !has_body) ? kDeclaration : kSure});
    }
    return !is_call_like;
}

/// Variables, constants and fields of C-like languages: a type and a name before = { ; or [.
void addCVariable(std::string_view line, std::vector<Definition>& definitions) {
    const size_t end = line.find_first_of("={;[", line.starts_with("[[") ? line.find("]]") : 0);
    if (end == std::string_view::npos) {
        return;
    }
    const TextBeforeName found = nameBefore(line, end);
    if (found.name.empty() || !isTypeText(found.before)) {
        return;
    }
    const auto has = [&](std::string_view word) {
        return found.before.find(word) != std::string_view::npos;
    };
    const bool is_constant =
        has("const") || has("static") || has("final") || isCapitals(found.name);
    definitions.push_back({found.name, is_constant ? kConstant : kField});
}

/// `NAME,` and `NAME = 3,` within an enumeration.
void addEnumValue(std::string_view line, std::vector<Definition>& definitions) {
    std::string_view rest = line;
    const std::string_view name = takeName(rest);
    skipBlanks(rest);
    const bool is_value =
        rest == "," ||
        (rest.starts_with("= ") && (line.back() == ',' || line.find(", //") != line.npos)) ||
        rest.starts_with(", //") || rest.starts_with(",  //");
    if (!name.empty() && is_value) {
        definitions.push_back({name, kEnumValue});
    }
}

/// `NAME = value` and `name: type = value`: Python, shell, configuration.
void addAssignment(std::string_view line, size_t indent, std::vector<Definition>& definitions) {
    constexpr size_t kMaxIndent = 4;  // module or class level; deeper ones are locals
    std::string_view rest = line;
    const std::string_view name = takeName(rest);
    if (name.empty() || indent > kMaxIndent || isOneOf(name, kStatements)) {
        return;
    }
    skipBlanks(rest);
    const bool is_annotated =
        rest.starts_with(": ") && rest.find(':', 1) == std::string_view::npos && line.back() != ':';
    const bool is_assigned = rest.starts_with('=') && !rest.starts_with("==");
    if (is_assigned || is_annotated) {
        definitions.push_back({name, indent == 0 ? kConstant : kField});
    }
}

}  // namespace

Language languageOf(std::string_view path) {
    constexpr std::array<std::pair<std::string_view, Language>, 36> kEndings = {{
        {"c", Language::CLike},      {"h", Language::CLike},      {"cc", Language::CLike},
        {"hh", Language::CLike},     {"cpp", Language::CLike},    {"hpp", Language::CLike},
        {"cxx", Language::CLike},    {"hxx", Language::CLike},    {"cu", Language::CLike},
        {"cuh", Language::CLike},    {"inl", Language::CLike},    {"ipp", Language::CLike},
        {"tcc", Language::CLike},    {"m", Language::CLike},      {"mm", Language::CLike},
        {"java", Language::CLike},   {"cs", Language::CLike},     {"tpp", Language::CLike},
        {"py", Language::Python},    {"pyi", Language::Python},   {"js", Language::Script},
        {"jsx", Language::Script},   {"mjs", Language::Script},   {"cjs", Language::Script},
        {"ts", Language::Script},    {"tsx", Language::Script},   {"kt", Language::Script},
        {"swift", Language::Script}, {"scala", Language::Script}, {"php", Language::Script},
        {"rs", Language::Rust},      {"go", Language::Go},        {"sh", Language::Shell},
        {"bash", Language::Shell},   {"rb", Language::Script},    {"lua", Language::Script},
    }};
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) {
        return Language::Other;
    }
    const auto* const found = std::find_if(kEndings.begin(), kEndings.end(), [&](const auto& e) {
        return e.first == name.substr(dot + 1);
    });
    return found == kEndings.end() ? Language::Other : found->second;
}

void findDefinitions(Language language,
                     std::string_view line,
                     std::string_view next_line,
                     std::vector<Definition>& definitions) {
    constexpr size_t kMaxLineBytes = 400;
    const size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
    line = trimmed(line);
    const bool is_comment =
        line.starts_with("//") || line.starts_with("/*") || line.starts_with('*');
    if (line.empty() || line.size() > kMaxLineBytes || is_comment || language == Language::Other) {
        return;
    }
    if (language == Language::CLike) {
        if (const size_t comment = line.find(" //"); comment != std::string_view::npos) {
            line = trimmed(line.substr(0, comment));
        }
        if (addMacro(line, definitions)) {
            return;
        }
        line = afterTemplate(line);
        if (line.empty()) {
            return;
        }
    }
    if (addAfterKeyword(language, line, definitions)) {
        return;
    }
    switch (language) {
        case Language::CLike:
            if (!addCFunction(line, next_line, definitions)) {
                const size_t n_before = definitions.size();
                addCVariable(line, definitions);
                if (definitions.size() == n_before) {
                    addEnumValue(line, definitions);
                }
            }
            return;
        case Language::Script:
            if (line.back() == '{') {
                addCFunction(line, next_line, definitions);  // methods: name(args) {
            }
            return;
        case Language::Python:
        case Language::Shell:
            addAssignment(line, indent, definitions);
            return;
        case Language::Rust:
        case Language::Go:
        case Language::Other:
            return;
    }
}

}  // namespace belvedere::tools
