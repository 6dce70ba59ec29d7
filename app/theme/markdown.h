// SPDX-License-Identifier: Apache-2.0
#pragma once

// Markdown to blocks of styled text, for text that grows: append() parses only what may still
// change. The dialect is CommonMark 0.30 with GFM tables, strike-through, task lists and bare
// links; HTML is shown as the text it is. Citations
// `[path:first-last]` become spans of their own. Any thread; one document at a time.
//
// How it stays incremental: a line at column 0 after a blank line outside a fence begins a new
// top-level block whatever follows, so everything before it is parsed once and kept.

#include <QString>
#include <QStringList>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace belvedere::app {

struct TextSpan {
    enum Style : unsigned {
        Plain = 0,
        Bold = 1,
        Italic = 2,
        Code = 4,
        Strike = 8,
        Link = 16,
        Citation = 32
    };

    int begin = 0;  ///< UTF-16 units of the block's text
    int end = 0;
    unsigned style = Plain;
    QString target;  ///< Link: address; Citation: "path:first-last"

    bool operator==(const TextSpan&) const = default;
};

struct TableCell {
    QString text;
    std::vector<TextSpan> spans;
    Qt::Alignment alignment = Qt::AlignLeft;

    bool operator==(const TableCell&) const = default;
};

struct MarkdownBlock {
    enum class Kind { Paragraph, Heading, Code, Rule, Table };
    Kind kind = Kind::Paragraph;
    int level = 0;          ///< Heading: 1 to 6
    int indent = 0;         ///< depth of lists around it
    int quote = 0;          ///< depth of quotes around it
    bool is_tight = false;  ///< follows its list neighbour without a gap
    QString marker;         ///< of a list item: "•", "2.", "☐", "☑"
    QString text;
    std::vector<TextSpan> spans;
    QString language;                          ///< Code
    std::vector<std::vector<TableCell>> rows;  ///< Table: the first row is the head

    bool operator==(const MarkdownBlock&) const = default;
};

/// A citation as text: "src/a.cpp:1-32".
struct CitationTarget {
    QString path;
    size_t first_line = 0;
    size_t last_line = 0;
};

/// False where the text is no citation.
[[nodiscard]] bool parseCitation(QStringView text, CitationTarget& target);

[[nodiscard]] std::vector<MarkdownBlock> parseMarkdown(std::string_view utf8);

class MarkdownDocument {
  public:
    void append(std::string_view utf8);

    [[nodiscard]] const std::vector<MarkdownBlock>& blocks() const { return blocks_; }

    /// Leading blocks that no later append() changes.
    [[nodiscard]] size_t numStable() const { return n_stable_; }

    [[nodiscard]] const std::string& source() const { return source_; }

  private:
    void advanceStable();

    std::string source_;
    std::vector<MarkdownBlock> blocks_;
    size_t n_stable_ = 0;
    size_t stable_end_ = 0;  ///< bytes of source_ that made the stable blocks
    // The line scanner: where it stands, and whether in a fence or after a blank line.
    size_t scan_ = 0;
    char fence_char_ = 0;
    size_t fence_length_ = 0;
    bool after_blank_ = false;
};

}  // namespace belvedere::app
