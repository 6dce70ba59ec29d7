// SPDX-License-Identifier: Apache-2.0
#include "app/theme/markdown_builder.h"

#include <QTextDocumentFragment>
#include <utility>

#include "app/bridge/text.h"

namespace belvedere::app {

namespace {

// Noncharacters: never part of interchanged text. A key is kKeyMark and three hexadecimal digits
// from kKeyDigit on.
constexpr char16_t kKeyMark = 0xFDD0;
constexpr char16_t kKeyDigit = 0xFDE0;
constexpr int kKeyLength = 4;
constexpr int kMaxCitations = 4096;
constexpr qsizetype kMaxCitationLength = 300;

QString citationKey(qsizetype index) {
    QString key(QChar{kKeyMark});
    for (const int shift : {8, 4, 0}) {
        key += QChar(static_cast<char16_t>(kKeyDigit + ((index >> shift) & 15)));
    }
    return key;
}

qsizetype citationIndex(QStringView key) {
    qsizetype index = 0;
    for (int i = 1; i < kKeyLength; ++i) {
        index = index * 16 + (key[i].unicode() - kKeyDigit) % 16;
    }
    return index;
}

QString decodeEntity(std::string_view entity) {
    const QString text = qstring(entity);
    return QTextDocumentFragment::fromHtml(text).toPlainText();
}

QString attribute(const MD_ATTRIBUTE& value) {
    return qstring({value.text, value.size});
}

}  // namespace

std::string MarkdownBuilder::hideCitations(std::string_view utf8_text) {
    std::string result;
    result.reserve(utf8_text.size());
    size_t done = 0;
    for (size_t begin = utf8_text.find('['); begin != std::string_view::npos;
         begin = utf8_text.find('[', begin + 1)) {
        const size_t end = utf8_text.find_first_of("]\n[", begin + 1);
        if (end == std::string_view::npos) {
            break;
        }
        if (utf8_text[end] != ']' || citations_.size() >= kMaxCitations ||
            end - begin > static_cast<size_t>(kMaxCitationLength)) {
            continue;
        }
        const QString inside = qstring(utf8_text.substr(begin + 1, end - begin - 1));
        CitationTarget target;
        if (!parseCitation(inside, target)) {
            continue;
        }
        result += utf8_text.substr(done, begin - done);
        result += utf8(citationKey(citations_.size()));
        citations_ += inside;
        done = end + 1;
        begin = end;
    }
    result += utf8_text.substr(done);
    return result;
}

void MarkdownBuilder::open(MarkdownBlock::Kind kind) {
    MarkdownBlock block;
    block.kind = kind;
    block.indent = static_cast<int>(lists_.size());
    block.quote = quote_;
    block.is_tight =
        !lists_.empty() && lists_.back().is_tight && !blocks_.empty() && blocks_.back().indent > 0;
    block.marker = std::exchange(marker_, {});
    blocks_.push_back(std::move(block));
    is_open_ = true;
}

void MarkdownBuilder::close() {
    if (!is_open_) {
        return;
    }
    is_open_ = false;
    MarkdownBlock& block = blocks_.back();
    if (block.kind == MarkdownBlock::Kind::Code && block.text.endsWith(QLatin1Char('\n'))) {
        block.text.chop(1);
    }
    showCitations(block.text, block.spans, citations_, block.kind == MarkdownBlock::Kind::Code);
    for (auto& row : block.rows) {
        for (TableCell& cell : row) {
            showCitations(cell.text, cell.spans, citations_, false);
        }
    }
}

void MarkdownBuilder::showCitations(QString& text,
                                    std::vector<TextSpan>& spans,
                                    const QStringList& citations,
                                    bool is_code) {
    for (qsizetype at = text.indexOf(QChar{kKeyMark}); at >= 0;
         at = text.indexOf(QChar{kKeyMark}, at)) {
        const qsizetype index =
            at + kKeyLength <= text.size() ? citationIndex(QStringView(text).mid(at)) : -1;
        if (index < 0 || index >= citations.size()) {
            ++at;
            continue;
        }
        const QString target = citations.at(index);
        const QString shown = is_code ? QLatin1Char('[') + target + QLatin1Char(']') : target;
        const int change = static_cast<int>(shown.size()) - kKeyLength;
        const int position = static_cast<int>(at);
        text.replace(at, kKeyLength, shown);
        for (TextSpan& span : spans) {
            span.begin += span.begin > position ? change : 0;
            span.end += span.end > position ? change : 0;
        }
        if (!is_code) {
            spans.push_back(
                {position, position + static_cast<int>(shown.size()), TextSpan::Citation, target});
        }
        at += shown.size();
    }
}

void MarkdownBuilder::enterBlock(MD_BLOCKTYPE type, const void* detail) {
    switch (type) {
        case MD_BLOCK_QUOTE:
            close();
            ++quote_;
            break;
        case MD_BLOCK_UL:
            close();
            lists_.push_back(
                {false, static_cast<const MD_BLOCK_UL_DETAIL*>(detail)->is_tight != 0, 1});
            break;
        case MD_BLOCK_OL: {
            close();
            const auto* list = static_cast<const MD_BLOCK_OL_DETAIL*>(detail);
            lists_.push_back({true, list->is_tight != 0, list->start});
            break;
        }
        case MD_BLOCK_LI: {
            const auto* item = static_cast<const MD_BLOCK_LI_DETAIL*>(detail);
            if (item->is_task != 0) {
                marker_ = QString(QChar(item->task_mark == ' ' ? 0x2610 : 0x2611));
            } else if (lists_.back().is_ordered) {
                marker_ = QString::number(lists_.back().next++) + QLatin1Char('.');
            } else {
                marker_ = QString(QChar(0x2022));
            }
            break;
        }
        case MD_BLOCK_P:
            open(MarkdownBlock::Kind::Paragraph);
            break;
        case MD_BLOCK_H:
            open(MarkdownBlock::Kind::Heading);
            blocks_.back().level =
                static_cast<int>(static_cast<const MD_BLOCK_H_DETAIL*>(detail)->level);
            break;
        case MD_BLOCK_CODE:
            open(MarkdownBlock::Kind::Code);
            blocks_.back().language =
                attribute(static_cast<const MD_BLOCK_CODE_DETAIL*>(detail)->lang);
            break;
        case MD_BLOCK_HR:
            open(MarkdownBlock::Kind::Rule);
            break;
        case MD_BLOCK_TABLE:
            open(MarkdownBlock::Kind::Table);
            break;
        case MD_BLOCK_TR:
            blocks_.back().rows.emplace_back();
            break;
        case MD_BLOCK_TH:
        case MD_BLOCK_TD: {
            TableCell cell;
            const auto align = static_cast<const MD_BLOCK_TD_DETAIL*>(detail)->align;
            cell.alignment = align == MD_ALIGN_RIGHT    ? Qt::AlignRight
                             : align == MD_ALIGN_CENTER ? Qt::AlignHCenter
                                                        : Qt::AlignLeft;
            blocks_.back().rows.back().push_back(std::move(cell));
            in_cell_ = true;
            break;
        }
        default:
            break;
    }
}

void MarkdownBuilder::leaveBlock(MD_BLOCKTYPE type) {
    switch (type) {
        case MD_BLOCK_QUOTE:
            close();
            --quote_;
            break;
        case MD_BLOCK_UL:
        case MD_BLOCK_OL:
            close();
            lists_.pop_back();
            break;
        case MD_BLOCK_LI:
            if (!marker_.isEmpty()) {
                open(MarkdownBlock::Kind::Paragraph);  // an item without text
            }
            close();
            break;
        case MD_BLOCK_P:
        case MD_BLOCK_H:
        case MD_BLOCK_CODE:
        case MD_BLOCK_HR:
        case MD_BLOCK_TABLE:
            close();
            break;
        case MD_BLOCK_TH:
        case MD_BLOCK_TD:
            in_cell_ = false;
            break;
        default:
            break;
    }
}

void MarkdownBuilder::enterSpan(MD_SPANTYPE type, const void* detail) {
    TextSpan span;
    switch (type) {
        case MD_SPAN_EM:
            span.style = TextSpan::Italic;
            break;
        case MD_SPAN_STRONG:
            span.style = TextSpan::Bold;
            break;
        case MD_SPAN_CODE:
            span.style = TextSpan::Code;
            break;
        case MD_SPAN_DEL:
            span.style = TextSpan::Strike;
            break;
        case MD_SPAN_A:
            span.style = TextSpan::Link;
            span.target = attribute(static_cast<const MD_SPAN_A_DETAIL*>(detail)->href);
            break;
        default:
            break;
    }
    append({});  // a tight list item opens its paragraph with its first span
    const QString& text = in_cell_ ? blocks_.back().rows.back().back().text : blocks_.back().text;
    span.begin = static_cast<int>(text.size());
    open_spans_.push_back(std::move(span));
}

void MarkdownBuilder::leaveSpan(MD_SPANTYPE /*type*/) {
    TextSpan span = std::move(open_spans_.back());
    open_spans_.pop_back();
    MarkdownBlock& block = blocks_.back();
    const QString& text = in_cell_ ? block.rows.back().back().text : block.text;
    span.end = static_cast<int>(text.size());
    if (span.end > span.begin && span.style != TextSpan::Plain) {
        (in_cell_ ? block.rows.back().back().spans : block.spans).push_back(std::move(span));
    }
}

void MarkdownBuilder::append(const QString& text) {
    if (in_cell_) {
        blocks_.back().rows.back().back().text += text;
        return;
    }
    if (!is_open_) {
        open(MarkdownBlock::Kind::Paragraph);
    }
    blocks_.back().text += text;
}

void MarkdownBuilder::addText(MD_TEXTTYPE type, std::string_view text) {
    switch (type) {
        case MD_TEXT_NULLCHAR:
            append(QString(QChar(QChar::ReplacementCharacter)));
            break;
        case MD_TEXT_BR:
            append(QString(QChar(QChar::LineSeparator)));
            break;
        case MD_TEXT_SOFTBR:
            append(QStringLiteral(" "));
            break;
        case MD_TEXT_ENTITY:
            append(decodeEntity(text));
            break;
        default:
            append(qstring(text));
            break;
    }
}

std::vector<MarkdownBlock> MarkdownBuilder::takeBlocks() {
    return std::move(blocks_);
}

std::vector<MarkdownBlock> parseMarkdown(std::string_view text) {
    MarkdownBuilder builder;
    const std::string hidden = builder.hideCitations(text);
    MD_PARSER parser{};
    parser.flags = MD_FLAG_NOHTML | MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS |
                   MD_FLAG_PERMISSIVEURLAUTOLINKS;
    parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* data) {
        static_cast<MarkdownBuilder*>(data)->enterBlock(type, detail);
        return 0;
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void* /*detail*/, void* data) {
        static_cast<MarkdownBuilder*>(data)->leaveBlock(type);
        return 0;
    };
    parser.enter_span = [](MD_SPANTYPE type, void* detail, void* data) {
        static_cast<MarkdownBuilder*>(data)->enterSpan(type, detail);
        return 0;
    };
    parser.leave_span = [](MD_SPANTYPE type, void* /*detail*/, void* data) {
        static_cast<MarkdownBuilder*>(data)->leaveSpan(type);
        return 0;
    };
    parser.text = [](MD_TEXTTYPE type, const MD_CHAR* bytes, MD_SIZE size, void* data) {
        static_cast<MarkdownBuilder*>(data)->addText(type, {bytes, size});
        return 0;
    };
    md_parse(hidden.data(), static_cast<MD_SIZE>(hidden.size()), &parser, &builder);
    return builder.takeBlocks();
}

}  // namespace belvedere::app
