// SPDX-License-Identifier: Apache-2.0
#include "app/theme/markdown.h"

#include <algorithm>

#include "app/bridge/text.h"
#include "app/theme/markdown_builder.h"

namespace belvedere::app {

namespace {

bool isBlank(std::string_view line) {
    return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

/// Length of the run of ` or ~ that opens or closes a fence, 0 where the line has none. Any
/// indentation: inside a list.
size_t fenceLength(std::string_view line, char& fence_char) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos || (line[begin] != '`' && line[begin] != '~')) {
        return 0;
    }
    fence_char = line[begin];
    const size_t end = line.find_first_not_of(fence_char, begin);
    const size_t length = (end == std::string_view::npos ? line.size() : end) - begin;
    // A back-tick after the run makes it inline code.
    const bool is_inline = fence_char == '`' && end != std::string_view::npos &&
                           line.find('`', end) != std::string_view::npos;
    return length >= 3 && !is_inline ? length : 0;
}

}  // namespace

bool parseCitation(QStringView text, CitationTarget& target) {
    const qsizetype colon = text.lastIndexOf(QLatin1Char(':'));
    if (colon <= 0) {
        return false;
    }
    const QStringView path = text.left(colon);
    const QStringView lines = text.mid(colon + 1);
    const qsizetype dash = lines.indexOf(QLatin1Char('-'));
    const QStringView first = dash < 0 ? lines : lines.left(dash);
    const QStringView last = dash < 0 ? lines : lines.mid(dash + 1);
    const auto is_number = [](QStringView digits) {
        return !digits.isEmpty() && digits.size() <= 9 &&
               std::all_of(digits.begin(), digits.end(),
                           [](QChar c) { return c >= QLatin1Char('0') && c <= QLatin1Char('9'); });
    };
    if (!is_number(first) || !is_number(last) || path.contains(QLatin1Char('[')) ||
        path.contains(QLatin1Char('\n')) || path.contains(QLatin1String("//"))) {
        return false;
    }
    target = {path.toString(), first.toULongLong(), last.toULongLong()};
    return target.first_line >= 1 && target.last_line >= target.first_line;
}

void MarkdownDocument::append(std::string_view utf8) {
    source_ += utf8;
    advanceStable();
    blocks_.resize(n_stable_);
    std::vector<MarkdownBlock> tail = parseMarkdown(std::string_view(source_).substr(stable_end_));
    std::move(tail.begin(), tail.end(), std::back_inserter(blocks_));
}

void MarkdownDocument::advanceStable() {
    size_t boundary = stable_end_;
    // Only whole lines: what a half-written line becomes is not known yet.
    for (size_t end = source_.find('\n', scan_); end != std::string::npos;
         end = source_.find('\n', scan_)) {
        const std::string_view line(source_.data() + scan_, end - scan_);
        if (fence_length_ == 0 && after_blank_ && !isBlank(line) && line[0] != ' ' &&
            line[0] != '\t') {
            boundary = scan_;
        }
        char fence_char = 0;
        const size_t length = fenceLength(line, fence_char);
        if (fence_length_ == 0) {
            fence_length_ = length;
            fence_char_ = fence_char;
        } else if (fence_char == fence_char_ && length >= fence_length_) {
            fence_length_ = 0;
        }
        after_blank_ = isBlank(line);
        scan_ = end + 1;
    }
    if (boundary > stable_end_) {
        blocks_.resize(n_stable_);
        const std::string_view settled(source_.data() + stable_end_, boundary - stable_end_);
        std::vector<MarkdownBlock> parsed = parseMarkdown(settled);
        std::move(parsed.begin(), parsed.end(), std::back_inserter(blocks_));
        n_stable_ = blocks_.size();
        stable_end_ = boundary;
    }
}

}  // namespace belvedere::app
