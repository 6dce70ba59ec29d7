// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/words.h"

#include <algorithm>
#include <array>

namespace belvedere::tools {
namespace {

bool isLower(char c) {
    return c >= 'a' && c <= 'z';
}

bool isUpper(char c) {
    return c >= 'A' && c <= 'Z';
}

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

char toLower(char c) {
    return isUpper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Sorted, so that the words of one first letter stand together.
constexpr std::array<std::string_view, 92> kStopWords = {
    "a",     "about", "all",    "also",   "an",   "and",    "any",   "are",   "as",      "at",
    "be",    "been",  "but",    "by",     "can",  "char",   "const", "could", "defined", "did",
    "do",    "does",  "double", "each",   "else", "endif",  "float", "for",   "from",    "get",
    "had",   "has",   "have",   "how",    "i",    "if",     "ifdef", "in",    "include", "int",
    "into",  "is",    "it",     "its",    "me",   "my",     "not",   "of",    "on",      "one",
    "or",    "our",   "public", "return", "self", "should", "show",  "so",    "some",    "static",
    "std",   "such",  "tell",   "than",   "that", "the",    "their", "them",  "then",    "there",
    "these", "they",  "this",   "to",     "us",   "use",    "used",  "uses",  "using",   "void",
    "was",   "we",    "were",   "what",   "when", "where",  "which", "who",   "why",     "will",
    "with",  "you"};
static_assert(std::is_sorted(kStopWords.begin(), kStopWords.end()));

/// How many stop words begin with a letter before the n-th: every word of every file is looked up,
/// so no search over all.
constexpr std::array<size_t, 27> kStopWordsBefore = [] {
    std::array<size_t, 27> before{};
    for (const std::string_view word : kStopWords) {
        for (auto letter = static_cast<size_t>(word[0] - 'a') + 1; letter < before.size();
             ++letter) {
            ++before[letter];
        }
    }
    return before;
}();

/// Where the part of an identifier that begins at `at` ends.
size_t partEnd(std::string_view id, size_t at) {
    size_t end = at + 1;
    if (isDigit(id[at])) {
        while (end < id.size() && isDigit(id[end])) {
            ++end;
        }
        return end;
    }
    if (isUpper(id[at]) && end < id.size() && isUpper(id[end])) {
        while (end < id.size() && isUpper(id[end])) {
            ++end;
        }
        const bool is_camel =
            end < id.size() &&
            isLower(id[end]);  // the last capital begins the next part: HTTPServer
        return is_camel ? end - 1 : end;
    }
    while (end < id.size() && !isUpper(id[end]) && !isDigit(id[end]) && id[end] != '_') {
        ++end;
    }
    return end;
}

template <class Visit>
void forEachPart(std::string_view identifier, Visit visit) {
    for (size_t at = 0; at < identifier.size();) {
        if (identifier[at] == '_') {
            ++at;
            continue;
        }
        const size_t end = partEnd(identifier, at);
        visit(identifier.substr(at, end - at));
        at = end;
    }
}

void stemInPlace(std::string& word) {
    constexpr size_t kMinLength = 4;
    if (word.size() < kMinLength || !std::all_of(word.begin(), word.end(), isLower)) {
        return;
    }
    const auto drop = [&word](std::string_view ending, size_t n_min) {
        const bool ends = word.ends_with(ending) && word.size() >= ending.size() + n_min;
        if (ends) {
            word.resize(word.size() - ending.size());
        }
        return ends;
    };
    if (!word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is")) {
        drop("s", 3);
    }
    const bool is_verb_form = drop("ing", 3) || drop("ed", 3);
    if (is_verb_form && word.size() > 3 && word[word.size() - 1] == word[word.size() - 2] &&
        !word.ends_with("ss") && !word.ends_with("ll")) {
        word.pop_back();  // running -> run
    }
    drop("e", 3);
}

constexpr size_t kMaxIdentifierBytes = 100;

void appendPart(std::string_view part, std::string& words) {
    constexpr size_t kMaxPartBytes = 64;  // longer ones are data
    if (part.size() < 2 || part.size() > kMaxPartBytes) {
        return;
    }
    std::string word = lowered(part);  // within the small-string size, as nearly all are
    if (isStopWord(word)) {
        return;
    }
    stemInPlace(word);
    words += word;
    words += ' ';
}

void appendWhole(std::string_view identifier, std::string& words) {
    for (const char c : identifier.substr(identifier.find_first_not_of('_'))) {
        words += toLower(c);
    }
}

void appendIdentifier(std::string_view identifier, std::string& words) {
    size_t n_parts = 0;
    forEachPart(identifier, [&](std::string_view part) {
        ++n_parts;
        appendPart(part, words);
    });
    if (n_parts > 1 && identifier.size() <= kMaxIdentifierBytes) {
        appendWhole(identifier, words);
        words += ' ';
    }
}

}  // namespace

bool isWordByte(char c) {
    return isLower(c) || isUpper(c) || isDigit(c) || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}

std::string lowered(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), toLower);
    return lower;
}

std::vector<std::string> splitIdentifier(std::string_view identifier) {
    std::vector<std::string> parts;
    forEachPart(identifier, [&](std::string_view part) { parts.push_back(lowered(part)); });
    return parts;
}

std::string stem(std::string word) {
    stemInPlace(word);
    return word;
}

std::string wholeWord(std::string_view identifier) {
    size_t n_parts = 0;
    forEachPart(identifier, [&](std::string_view) { ++n_parts; });
    std::string word;
    if (n_parts > 1 && identifier.size() <= kMaxIdentifierBytes) {
        appendWhole(identifier, word);
    } else if (n_parts == 1) {
        forEachPart(identifier, [&](std::string_view part) { appendPart(part, word); });
        word.resize(word.size() - (word.empty() ? 0 : 1));  // the blank
    }
    return word;
}

void appendWords(std::string_view text, std::string& words) {
    for (size_t at = 0; at < text.size();) {
        if (!isWordByte(text[at])) {
            ++at;
            continue;
        }
        size_t end = at + 1;
        while (end < text.size() && isWordByte(text[end])) {
            ++end;
        }
        appendIdentifier(text.substr(at, end - at), words);
        at = end;
    }
}

bool isStopWord(std::string_view word) {
    if (word.empty() || !isLower(word[0])) {
        return false;
    }
    const auto letter = static_cast<size_t>(word[0] - 'a');
    for (size_t i = kStopWordsBefore[letter]; i < kStopWordsBefore[letter + 1]; ++i) {
        if (kStopWords[i] == word) {
            return true;
        }
    }
    return false;
}

}  // namespace belvedere::tools
