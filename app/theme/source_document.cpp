// SPDX-License-Identifier: Apache-2.0
#include "app/theme/source_document.h"

#include <algorithm>

#include "app/bridge/text.h"

namespace belvedere::app {

namespace {

constexpr int kTabColumns = 4;
constexpr char16_t kFirstWide = 0x1100;  // Hangul Jamo: below it nothing is East Asian Wide

int columnsOf(QStringView line) {
    int n_columns = 0;
    for (const QChar c : line) {
        n_columns += c == QLatin1Char('\t') ? kTabColumns : c.unicode() < kFirstWide ? 1 : 2;
    }
    return n_columns;
}

}  // namespace

SourceDocument::SourceDocument(std::string_view utf8, Language language)
    : text_(qstring(utf8)), language_(language) {
    has_replacements_ = text_.contains(QChar(QChar::ReplacementCharacter));
    HighlightState state = 0;
    for (qsizetype begin = 0;;) {
        lines_.push_back({begin, state});
        const qsizetype end = text_.indexOf(QLatin1Char('\n'), begin);
        const QStringView line =
            QStringView(text_).mid(begin, (end < 0 ? text_.size() : end) - begin);
        n_columns_ = std::max(n_columns_, columnsOf(line));
        static_cast<void>(highlightLine(line, language_, state));
        if (end < 0) {
            break;
        }
        begin = end + 1;
    }
}

QStringView SourceDocument::line(int index) const {
    const qsizetype from = begin(index);
    const qsizetype end = index + 1 < numLines() ? begin(index + 1) - 1 : text_.size();
    const QStringView line = QStringView(text_).mid(from, end - from);
    return line.endsWith(QLatin1Char('\r')) ? line.chopped(1) : line;
}

int SourceDocument::lineAt(qsizetype position) const {
    const auto after =
        std::upper_bound(lines_.begin(), lines_.end(), position,
                         [](qsizetype wanted, const Line& line) { return wanted < line.begin; });
    return std::max(0, static_cast<int>(after - lines_.begin()) - 1);
}

std::vector<CodeSpan> SourceDocument::spans(int index) const {
    HighlightState state = lines_[static_cast<size_t>(index)].state;
    return highlightLine(line(index), language_, state);
}

}  // namespace belvedere::app
