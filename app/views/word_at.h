// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a double click selects. GUI thread.

#include <QString>
#include <QTextBoundaryFinder>
#include <algorithm>

namespace belvedere::app {

struct WordRange {
    qsizetype begin = 0;
    qsizetype end = 0;
};

/// The word, or run of blanks, around a character of the text, by Unicode's word borders.
inline WordRange wordAt(const QString& text, qsizetype offset) {
    QTextBoundaryFinder finder(QTextBoundaryFinder::Word, text);
    finder.setPosition(std::min(offset + 1, text.size()));
    const qsizetype begin = std::max<qsizetype>(0, finder.toPreviousBoundary());
    finder.setPosition(begin);
    const qsizetype end = finder.toNextBoundary();
    return {begin, end < 0 ? text.size() : end};
}

}  // namespace belvedere::app
