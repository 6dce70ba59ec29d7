// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns md4c's callbacks into MarkdownBlocks; used by parseMarkdown() only. md4c tells of nested
// blocks (list > item > paragraph); we want a flat list in which each block knows its depth. A
// citation is hidden from md4c behind characters it takes for letters, so that `__init__.py` in a
// path stays itself.

#include <string>
#include <string_view>
#include <vector>

#include <md4c.h>

#include "app/theme/markdown.h"

namespace belvedere::app {

class MarkdownBuilder {
  public:
    /// The text with every citation replaced by its key.
    std::string hideCitations(std::string_view utf8);

    void enterBlock(MD_BLOCKTYPE type, const void* detail);
    void leaveBlock(MD_BLOCKTYPE type);
    void enterSpan(MD_SPANTYPE type, const void* detail);
    void leaveSpan(MD_SPANTYPE type);
    void addText(MD_TEXTTYPE type, std::string_view text);

    std::vector<MarkdownBlock> takeBlocks();

  private:
    struct List {
        bool is_ordered = false;
        bool is_tight = false;
        unsigned next = 1;
    };

    void open(MarkdownBlock::Kind kind);
    void close();
    void append(const QString& text);
    /// Puts citations back: as spans in prose, as their text in code.
    static void showCitations(QString& text,
                              std::vector<TextSpan>& spans,
                              const QStringList& citations,
                              bool is_code);

    std::vector<MarkdownBlock> blocks_;
    std::vector<List> lists_;
    std::vector<TextSpan> open_spans_;
    QStringList citations_;
    QString marker_;  ///< of the list item that has no block yet
    int quote_ = 0;
    bool is_open_ = false;
    bool in_cell_ = false;
};

}  // namespace belvedere::app
