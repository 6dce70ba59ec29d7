// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is selected of the transcript: from one character to another, over rows and blocks. GUI
// thread only.

#include <QString>
#include <compare>

#include "app/views/row_painter.h"
#include "app/views/transcript_rows.h"

namespace belvedere::app {

/// A character of the conversation.
struct TranscriptPosition {
    int row = 0;
    int block = 0;
    int offset = 0;

    auto operator<=>(const TranscriptPosition&) const = default;
};

class TranscriptSelection {
  public:
    [[nodiscard]] bool isEmpty() const { return anchor_ == end_; }

    void clear() { anchor_ = end_ = {}; }

    void begin(TranscriptPosition position) { anchor_ = end_ = position; }

    void extendTo(TranscriptPosition position) { end_ = position; }

    /// Of n_rows > 0 rows.
    void selectAll(int n_rows);
    /// The word at a position of this row.
    void selectWord(TranscriptPosition position, const RowLayout& layout);

    [[nodiscard]] RowSelection inRow(int row) const;
    /// Rows apart by an empty line. Lays out the rows it covers.
    [[nodiscard]] QString text(TranscriptRows& rows) const;

  private:
    TranscriptPosition anchor_;
    TranscriptPosition end_;
};

}  // namespace belvedere::app
