// SPDX-License-Identifier: Apache-2.0
#pragma once

// A source file made ready for showing: its lines, and for each what the highlighter must know of
// the lines before it, so that any line can be coloured by itself. Making it reads the whole text
// and belongs on a worker thread; after that it does not change. Any thread.

#include <QString>
#include <string_view>
#include <vector>

#include "app/theme/highlighter.h"

namespace belvedere::app {

class SourceDocument {
  public:
    SourceDocument(std::string_view utf8, Language language);

    /// At least one, as an empty text has an empty line.
    [[nodiscard]] int numLines() const { return static_cast<int>(lines_.size()); }

    [[nodiscard]] const QString& text() const { return text_; }

    /// Counted from 0, without its end.
    [[nodiscard]] QStringView line(int index) const;

    /// Where the line begins in text().
    [[nodiscard]] qsizetype begin(int index) const {
        return lines_[static_cast<size_t>(index)].begin;
    }

    /// The line that holds a position of text().
    [[nodiscard]] int lineAt(qsizetype position) const;

    [[nodiscard]] std::vector<CodeSpan> spans(int index) const;

    /// Of the longest line: characters, tabs as four, wide ones as two.
    [[nodiscard]] int numColumns() const { return n_columns_; }

    /// Bytes that are no UTF-8 are shown as U+FFFD.
    [[nodiscard]] bool hasReplacements() const { return has_replacements_; }

  private:
    struct Line {
        qsizetype begin = 0;
        HighlightState state = 0;  ///< at its begin
    };

    QString text_;
    Language language_;
    std::vector<Line> lines_;
    int n_columns_ = 0;
    bool has_replacements_ = false;
};

}  // namespace belvedere::app
