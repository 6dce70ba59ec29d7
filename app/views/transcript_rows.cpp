// SPDX-License-Identifier: Apache-2.0
#include "app/views/transcript_rows.h"

#include <algorithm>
#include <iterator>

namespace belvedere::app {

namespace {

constexpr qreal kPixelsPerCharacter = 7;

}  // namespace

void TranscriptRows::setModel(const TranscriptModel* model) {
    model_ = model;
    rows_.clear();
    tops_ = {0};
    if (model != nullptr && model->rowCount() > 0) {
        insertRows(0, model->rowCount() - 1);
    }
}

void TranscriptRows::invalidate(qreal width) {
    width_ = width;
    tops_ = {0};
    for (int row = 0; row < count(); ++row) {
        Row& changed = rows_[static_cast<size_t>(row)];
        changed.layout.reset();
        changed.is_stale = true;
        changed.height = estimate(row);
    }
}

void TranscriptRows::insertRows(int first, int last) {
    std::vector<Row> added(static_cast<size_t>(last - first + 1));
    rows_.insert(rows_.begin() + first, std::make_move_iterator(added.begin()),
                 std::make_move_iterator(added.end()));
    tops_.resize(std::min(tops_.size(), static_cast<size_t>(first) + 1));
    for (int row = first; row <= last; ++row) {
        rows_[static_cast<size_t>(row)].height = estimate(row);
    }
}

void TranscriptRows::changeRows(int first, int last) {
    for (int row = first; row <= last && row < count(); ++row) {
        rows_[static_cast<size_t>(row)].is_stale = true;
    }
}

const RowLayout& TranscriptRows::layout(int row) {
    Row& entry = rows_[static_cast<size_t>(row)];
    if (!entry.layout || entry.is_stale) {
        RowLayout* previous = entry.layout ? &*entry.layout : nullptr;
        RowLayout made = makeRow(model_->item(row), width_, theme_, previous);
        entry.layout = std::move(made);
        entry.is_stale = false;
        if (entry.layout->height != entry.height) {
            entry.height = entry.layout->height;
            tops_.resize(std::min(tops_.size(), static_cast<size_t>(row) + 1));
        }
    }
    return *entry.layout;
}

qreal TranscriptRows::top(int row) const {
    while (tops_.size() <= static_cast<size_t>(row)) {
        tops_.push_back(tops_.back() + rows_[tops_.size() - 1].height);
    }
    return tops_[static_cast<size_t>(row)];
}

int TranscriptRows::rowAt(qreal y) const {
    if (rows_.empty()) {
        return -1;
    }
    if (y >= totalHeight()) {
        return count() - 1;
    }
    // totalHeight() has made every top known.
    const auto above = std::upper_bound(tops_.begin(), tops_.end(), y);
    return std::clamp(static_cast<int>(above - tops_.begin()) - 1, 0, count() - 1);
}

qreal TranscriptRows::estimate(int row) const {
    using Kind = TranscriptItem::Kind;
    const TranscriptItem& item = model_->item(row);
    const qreal gap = theme_.sizes().row_gap;
    const auto textHeight = [this](size_t n_characters) {
        const qreal n_lines =
            1 + static_cast<qreal>(n_characters) * kPixelsPerCharacter / std::max(width_, 100.0);
        return n_lines * theme_.lineHeight(Text::Body);
    };
    switch (item.kind) {
        case Kind::User:
            return textHeight(static_cast<size_t>(item.text.size())) + 30 + gap;
        case Kind::Answer:
            return textHeight(item.markdown.source().size()) + gap;
        case Kind::ToolCall:
        case Kind::Plan:
            return 36 + gap;
        case Kind::Error:
            return 110 + gap;
        case Kind::Context:
        case Kind::Thinking:
        case Kind::Notice:
        case Kind::End:
            break;
    }
    return 24 + gap;
}

}  // namespace belvedere::app
