// SPDX-License-Identifier: Apache-2.0
#include "app/views/transcript_selection.h"

#include <algorithm>
#include <limits>

#include "app/views/word_at.h"

namespace belvedere::app {

namespace {

constexpr int kEnd = std::numeric_limits<int>::max();

}  // namespace

void TranscriptSelection::selectAll(int n_rows) {
    anchor_ = {};
    end_ = {n_rows - 1, kEnd, kEnd};
}

void TranscriptSelection::selectWord(TranscriptPosition position, const RowLayout& layout) {
    if (layout.blocks.empty()) {
        return;
    }
    const QString& text = layout.blocks[static_cast<size_t>(position.block)].plainText();
    const WordRange word = wordAt(text, position.offset);
    anchor_ = {position.row, position.block, static_cast<int>(word.begin)};
    end_ = {position.row, position.block, static_cast<int>(word.end)};
}

RowSelection TranscriptSelection::inRow(int row) const {
    const auto [begin, end] = std::minmax(anchor_, end_);
    if (begin == end || row < begin.row || row > end.row) {
        return {};
    }
    RowSelection selection;
    if (row == begin.row) {
        selection.first_block = begin.block;
        selection.begin = begin.offset;
    }
    selection.last_block = row == end.row ? end.block : kEnd;
    selection.end = row == end.row ? end.offset : kEnd;
    return selection;
}

QString TranscriptSelection::text(TranscriptRows& rows) const {
    const auto [begin, end] = std::minmax(anchor_, end_);
    QStringList parts;
    for (int row = begin.row; begin != end && row <= end.row && row < rows.count(); ++row) {
        const RowLayout& layout = rows.layout(row);
        const RowSelection selection = inRow(row);
        QStringList blocks;
        for (size_t i = 0; i < layout.blocks.size(); ++i) {
            const int index = static_cast<int>(i);
            if (index < selection.first_block || index > selection.last_block) {
                continue;
            }
            const int size = static_cast<int>(layout.blocks[i].plainText().size());
            const int from = index == selection.first_block ? std::min(selection.begin, size) : 0;
            const int to = index == selection.last_block ? std::min(selection.end, size) : size;
            blocks += layout.blocks[i].copyText(from, std::max(from, to));
        }
        if (!blocks.isEmpty()) {
            parts += blocks.join(QLatin1Char('\n'));
        }
    }
    return parts.join(QStringLiteral("\n\n"));
}

}  // namespace belvedere::app
