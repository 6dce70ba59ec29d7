// SPDX-License-Identifier: Apache-2.0
#include "app/theme/highlighter.h"

#include <QFileInfo>
#include <QSet>

namespace belvedere::app {

namespace {

enum State : HighlightState { kNone = 0, kBlockComment = 1, kTripleDouble = 2, kTripleSingle = 3 };

QSet<QString> words(const char* text) {
    QSet<QString> set;
    for (const QString& word : QString::fromLatin1(text).split(QLatin1Char(' '))) {
        set.insert(word);
    }
    return set;
}

const QSet<QString>& keywords(Language language) {
    static const QSet<QString> c = words(
        "alignas auto bool break case catch char class const const_cast constexpr consteval "
        "constinit continue "
        "co_await co_return co_yield concept decltype default delete do double dynamic_cast else "
        "enum explicit "
        "export extern false final float for friend goto if inline int long mutable namespace new "
        "noexcept "
        "nullptr operator override private protected public register reinterpret_cast requires "
        "return short "
        "signed sizeof static static_assert static_cast struct switch template this thread_local "
        "throw true try "
        "typedef typename union unsigned using virtual void volatile while size_t uint8_t uint16_t "
        "uint32_t "
        "uint64_t int8_t int16_t int32_t int64_t");
    static const QSet<QString> python = words(
        "and as assert async await break class continue def del elif else except False finally for "
        "from global "
        "if import in is lambda None nonlocal not or pass raise return True try while with yield "
        "match case self");
    static const QSet<QString> shell = words(
        "if then else elif fi for in do done while until case esac function return local export "
        "readonly set "
        "unset shift exit trap source echo cd");
    static const QSet<QString> script = words(
        "abstract any as async await bool boolean break case catch chan class const continue crate "
        "debugger "
        "default defer delete do else enum export extends extern false final finally fn for from "
        "func function "
        "go goto if impl implements import in interface let loop map match mod move mut new nil "
        "null number "
        "package private protected pub public range readonly ref return select self static str "
        "string struct "
        "super switch this throw trait true try type typeof undefined unsafe use var void where "
        "while yield val "
        "fun object override int float double long byte char");
    static const QSet<QString> data = words("true false null yes no on off");
    static const QSet<QString> none;
    switch (language) {
        case Language::C:
            return c;
        case Language::Python:
            return python;
        case Language::Shell:
            return shell;
        case Language::Script:
            return script;
        case Language::Data:
            return data;
        default:
            return none;
    }
}

bool isWordChar(QChar c) {
    return c.isLetterOrNumber() || c == QLatin1Char('_');
}

/// Index after `end` in the line, or its size where it does not occur.
int after(QStringView line, QLatin1String end, int from, bool& found) {
    const auto at = line.indexOf(end, from);
    found = at >= 0;
    return static_cast<int>(found ? at + end.size() : line.size());
}

int endOfString(QStringView line, int begin) {
    const QChar quote = line[begin];
    int i = begin + 1;
    while (i < line.size() && line[i] != quote) {
        i += line[i] == QLatin1Char('\\') ? 2 : 1;
    }
    return std::min(static_cast<int>(line.size()), i + 1);
}

/// Continues or begins what may span lines. True where it took something at `i`.
bool takeLongToken(QStringView line,
                   Language language,
                   int& i,
                   HighlightState& state,
                   std::vector<CodeSpan>& spans) {
    const QStringView rest = line.mid(i);
    const bool is_open = state != kNone;
    if (!is_open) {
        if ((language == Language::C || language == Language::Script) &&
            rest.startsWith(QLatin1String("/*"))) {
            state = kBlockComment;
        } else if (language == Language::Python && rest.startsWith(QLatin1String("\"\"\""))) {
            state = kTripleDouble;
        } else if (language == Language::Python && rest.startsWith(QLatin1String("'''"))) {
            state = kTripleSingle;
        } else {
            return false;
        }
    }
    const QLatin1String end = state == kBlockComment   ? QLatin1String("*/")
                              : state == kTripleDouble ? QLatin1String("\"\"\"")
                                                       : QLatin1String("'''");
    bool is_closed = false;
    const int stop = after(line, end, i + (is_open ? 0 : static_cast<int>(end.size())), is_closed);
    spans.push_back({i, stop - i, state == kBlockComment ? Colour::Comment : Colour::String});
    i = stop;
    if (is_closed) {
        state = kNone;
    }
    return true;
}

bool startsLineComment(QStringView rest, Language language, bool at_word_start) {
    switch (language) {
        case Language::C:
        case Language::Script:
            return rest.startsWith(QLatin1String("//"));
        case Language::Python:
            return rest.startsWith(QLatin1Char('#'));
        case Language::Shell:
        case Language::Data:
            return at_word_start && rest.startsWith(QLatin1Char('#'));
        default:
            return false;
    }
}

std::vector<CodeSpan> highlightDiff(QStringView line) {
    const int n = static_cast<int>(line.size());
    if (line.startsWith(QLatin1String("@@")) || line.startsWith(QLatin1String("diff ")) ||
        line.startsWith(QLatin1String("+++")) || line.startsWith(QLatin1String("---"))) {
        return {{0, n, Colour::TextMuted}};
    }
    if (line.startsWith(QLatin1Char('+'))) {
        return {{0, n, Colour::Positive}};
    }
    if (line.startsWith(QLatin1Char('-'))) {
        return {{0, n, Colour::Danger}};
    }
    return {};
}

CodeSpan word(QStringView line, int begin, int end, Language language) {
    const QString text = line.mid(begin, end - begin).toString();
    Colour colour = Colour::Text;
    if (keywords(language).contains(text)) {
        colour = Colour::Keyword;
    } else if (language != Language::Data && end < line.size() && line[end] == QLatin1Char('(')) {
        colour = Colour::Function;
    } else if (text.size() > 1 && text[0].isUpper() &&
               std::any_of(text.begin(), text.end(), [](QChar c) { return c.isLower(); })) {
        colour = Colour::Type;
    }
    return {begin, end - begin, colour};
}

}  // namespace

std::vector<CodeSpan> highlightLine(QStringView line, Language language, HighlightState& state) {
    if (language == Language::Diff) {
        return highlightDiff(line);
    }
    std::vector<CodeSpan> spans;
    if (language == Language::Plain) {
        return spans;
    }
    const int n = static_cast<int>(line.size());
    if (state == kNone && language == Language::C && line.trimmed().startsWith(QLatin1Char('#'))) {
        return {{0, n, Colour::Preprocessor}};
    }
    for (int i = 0; i < n;) {
        if (takeLongToken(line, language, i, state, spans)) {
            continue;
        }
        const QChar c = line[i];
        if (startsLineComment(line.mid(i), language, i == 0 || line[i - 1].isSpace())) {
            spans.push_back({i, n - i, Colour::Comment});
            return spans;
        }
        if (c == QLatin1Char('"') || c == QLatin1Char('`') ||
            (c == QLatin1Char('\'') && (i == 0 || !line[i - 1].isDigit()))) {
            const int end = endOfString(line, i);
            spans.push_back({i, end - i, Colour::String});
            i = end;
        } else if (c.isDigit()) {
            int end = i + 1;
            while (end < n && (isWordChar(line[end]) || line[end] == QLatin1Char('.') ||
                               line[end] == QLatin1Char('\''))) {
                ++end;
            }
            spans.push_back({i, end - i, Colour::Number});
            i = end;
        } else if (isWordChar(c)) {
            int end = i + 1;
            while (end < n && isWordChar(line[end])) {
                ++end;
            }
            const CodeSpan span = word(line, i, end, language);
            if (span.colour != Colour::Text) {
                spans.push_back(span);
            }
            i = end;
        } else if (language == Language::Python && c == QLatin1Char('@')) {
            spans.push_back({i, 1, Colour::Preprocessor});
            ++i;
        } else {
            ++i;
        }
    }
    return spans;
}

Language languageOfFence(const QString& fence) {
    const QString w = fence.toLower();
    const auto is = [&w](std::initializer_list<const char*> names) {
        return std::any_of(names.begin(), names.end(),
                           [&w](const char* name) { return w == QLatin1String(name); });
    };
    if (is({"c", "h", "cc", "cpp", "cxx", "c++", "hpp", "hh", "cu", "cuh", "objc", "ino"})) {
        return Language::C;
    }
    if (is({"py", "python", "pyi", "python3", "pyx"})) {
        return Language::Python;
    }
    if (is({"sh", "bash", "zsh", "shell", "console", "cmake", "make", "makefile", "dockerfile",
            "tcl"})) {
        return Language::Shell;
    }
    if (is({"js",   "ts",   "jsx", "tsx",   "javascript", "typescript", "java",  "go",
            "rs",   "rust", "kt",  "swift", "cs",         "csharp",     "scala", "php",
            "dart", "zig",  "css", "scss",  "proto",      "vue",        "mjs"})) {
        return Language::Script;
    }
    if (is({"json", "yaml", "yml", "toml", "ini", "cfg", "conf", "qss"})) {
        return Language::Data;
    }
    if (is({"diff", "patch"})) {
        return Language::Diff;
    }
    return Language::Plain;
}

Language languageOfPath(const QString& path) {
    const QFileInfo file(path);
    const QString name = file.fileName();
    if (name == QLatin1String("CMakeLists.txt") || name == QLatin1String("Makefile") ||
        name == QLatin1String("Dockerfile")) {
        return Language::Shell;
    }
    return languageOfFence(file.suffix());
}

}  // namespace belvedere::app
