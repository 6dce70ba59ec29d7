// SPDX-License-Identifier: Apache-2.0
#pragma once

// Light syntax colouring, a line at a time: comments, strings, numbers, keywords, types, calls,
// preprocessor. It reads tokens, not grammar, and never fails: unknown languages get strings,
// numbers and comments. Any thread.

#include <QString>
#include <vector>

#include "app/theme/theme.h"

namespace belvedere::app {

struct CodeSpan {
    int begin = 0;
    int length = 0;
    Colour colour = Colour::Text;

    bool operator==(const CodeSpan&) const = default;
};

enum class Language { Plain, C, Python, Shell, Script, Data, Diff };

/// From the word after a fence ("cpp", "py") or from a file's name ("src/a.cpp").
[[nodiscard]] Language languageOfFence(const QString& word);
[[nodiscard]] Language languageOfPath(const QString& path);

/// What is still open at the end of a line: 0 nothing, else a comment or a long string.
using HighlightState = int;

/// Colours of one line; `state` is that of the line before and becomes this line's.
[[nodiscard]] std::vector<CodeSpan> highlightLine(QStringView line,
                                                  Language language,
                                                  HighlightState& state);

}  // namespace belvedere::app
