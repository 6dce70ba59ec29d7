// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the rows of a transcript stand: a row is laid out when somebody looks at it, until then its
// height is an estimate. So a session of ten thousand rows opens at once. GUI thread only.

#include <QPointer>
#include <optional>
#include <vector>

#include "app/models/transcript_model.h"
#include "app/views/row_layout.h"

namespace belvedere::app {

class TranscriptRows {
  public:
    explicit TranscriptRows(const Theme& theme) : theme_(theme) {}

    /// Forgets everything; nullptr: no rows.
    void setModel(const TranscriptModel* model);
    /// Another width, fonts or colours: everything is laid out anew when it is looked at.
    void invalidate(qreal width);
    void insertRows(int first, int last);

    [[nodiscard]] qreal width() const { return width_; }

    /// Rows [first, last] say something else; what is laid out of them serves the next layout.
    void changeRows(int first, int last);

    [[nodiscard]] int count() const { return static_cast<int>(rows_.size()); }

    /// Its height is none that was estimated, though it may have changed since.
    [[nodiscard]] bool isLaidOut(int row) const { return at(row).layout.has_value(); }

    /// Lays the row out where it is not.
    const RowLayout& layout(int row);

    [[nodiscard]] qreal top(int row) const;

    [[nodiscard]] qreal height(int row) const { return at(row).height; }

    [[nodiscard]] qreal totalHeight() const { return top(count()); }

    /// The row at height y, the last one below all; -1 without rows.
    [[nodiscard]] int rowAt(qreal y) const;

  private:
    struct Row {
        Row() = default;
        Row(Row&&) = default;
        Row& operator=(Row&&) = default;

        std::optional<RowLayout> layout;
        qreal height = 0;
        bool is_stale = true;
    };

    [[nodiscard]] const Row& at(int row) const { return rows_[static_cast<size_t>(row)]; }

    [[nodiscard]] qreal estimate(int row) const;

    const Theme& theme_;
    QPointer<const TranscriptModel> model_;
    qreal width_ = 0;
    std::vector<Row> rows_;
    mutable std::vector<qreal> tops_ = {0};  ///< of the leading rows whose tops are known
};

}  // namespace belvedere::app
