// SPDX-License-Identifier: Apache-2.0
#include "app/views/row_layout.h"

#include <QCoreApplication>
#include <QFontMetricsF>
#include <algorithm>
#include <cmath>

#include "app/bridge/text.h"
#include "app/models/transcript_text.h"

namespace belvedere::app {

namespace {

constexpr qreal kHeaderHeight = 36;  // of a card
constexpr int kMaxOutputLines = 400;

QString tr(const char* text) {
    return QCoreApplication::translate("Transcript", text);
}

MarkdownBlock textBlock(const QString& text) {
    MarkdownBlock block;
    block.text = text;
    block.text.replace(QLatin1Char('\n'), QChar(QChar::LineSeparator));
    return block;
}

MarkdownBlock codeBlock(const QString& text) {
    MarkdownBlock block;
    block.kind = MarkdownBlock::Kind::Code;
    block.text = text;
    return block;
}

qreal gapBefore(const MarkdownBlock& block, const Theme& theme) {
    const qreal gap = theme.sizes().block_gap;
    if (block.kind == MarkdownBlock::Kind::Heading) {
        return gap * (block.level <= 2 ? 1.9 : 1.5);
    }
    return block.is_tight ? 3 : gap;
}

class Builder {
  public:
    Builder(const TranscriptItem& item, qreal width, const Theme& theme, RowLayout* previous)
        : item_(item), theme_(theme), sizes_(theme.sizes()), previous_(previous) {
        row_.width = width;
    }

    RowLayout build() {
        using Kind = TranscriptItem::Kind;
        switch (item_.kind) {
            case Kind::User:
                buildUser();
                break;
            case Kind::Context:
                buildContext();
                break;
            case Kind::Thinking:
                buildThinking();
                break;
            case Kind::Answer:
                buildAnswer();
                break;
            case Kind::ToolCall:
                buildToolCall();
                break;
            case Kind::Plan:
                buildPlan();
                break;
            case Kind::Notice:
                buildNotice();
                break;
            case Kind::Error:
                buildError();
                break;
            case Kind::End:
                buildEnd();
                break;
        }
        return std::move(row_);
    }

  private:
    [[nodiscard]] BlockStyle style(Text text, Colour colour) const {
        BlockStyle result;
        result.theme = &theme_;
        result.text = text;
        result.colour = colour;
        return result;
    }

    /// Adds a block at (x, y) and returns the y below it. The layout before is reused where it
    /// stood at the same index.
    qreal add(
        const MarkdownBlock& block, qreal x, qreal y, qreal width, const BlockStyle& block_style) {
        const size_t index = row_.blocks.size();
        BlockLayout* old = previous_ != nullptr && index < previous_->blocks.size()
                               ? &previous_->blocks[index]
                               : nullptr;
        const bool is_same = old != nullptr && old->width() == width && old->block() == block &&
                             previous_->checked == item_.citations_checked;
        row_.blocks.push_back(is_same ? std::move(*old)
                                      : BlockLayout::make(block, width, block_style, old));
        row_.blocks.back().row_x = x;
        row_.blocks.back().row_y = y;
        return y + row_.blocks.back().height();
    }

    void label(const QString& text,
               QRectF rect,
               Text text_style,
               Colour colour,
               Qt::Alignment alignment = Qt::AlignLeft) {
        const QFontMetricsF metrics(theme_.font(text_style));
        row_.labels.push_back({metrics.elidedText(text, Qt::ElideMiddle, rect.width() + 1), rect,
                               text_style, colour, alignment | Qt::AlignVCenter});
    }

    [[nodiscard]] qreal textWidth(const QString& text, Text text_style) const {
        return std::ceil(QFontMetricsF(theme_.font(text_style)).horizontalAdvance(text));
    }

    void icon(const QString& name, qreal x, qreal y, Colour colour) {
        row_.icons.push_back({name, colour, {x, y}, sizes_.icon});
    }

    /// The frame and first line of a collapsible card. Status stands at the right.
    void cardHeader(const QString& icon_name,
                    const QString& title,
                    const QString& status,
                    Colour status_colour,
                    bool can_open) {
        const qreal pad = sizes_.card_padding;
        const qreal icon_y = (kHeaderHeight - sizes_.icon) / 2;
        icon(icon_name, pad, icon_y, Colour::TextMuted);
        const qreal chevron = can_open ? sizes_.icon + 6 : 0;
        const qreal status_width = textWidth(status, Text::Small) + 2;
        const qreal right = row_.width - pad - chevron;
        label(status, {right - status_width, 0, status_width, kHeaderHeight}, Text::Small,
              status_colour, Qt::AlignRight);
        const qreal left = pad + sizes_.icon + 9;
        label(title, {left, 0, right - status_width - 12 - left, kHeaderHeight}, Text::Ui,
              Colour::Text);
        if (can_open) {
            icon(item_.is_expanded ? QStringLiteral("chevron-down")
                                   : QStringLiteral("chevron-right"),
                 row_.width - pad - sizes_.icon + 2, icon_y, Colour::TextFaint);
            row_.areas.push_back(
                {QRectF(0, 0, row_.width, kHeaderHeight),
                 {RowAction::Kind::Toggle, {}, item_.is_expanded ? tr("Collapse") : tr("Expand")}});
        }
    }

    void frame(qreal height, Colour stroke) {
        row_.boxes.insert(row_.boxes.begin(), {QRectF(0.5, 0.5, row_.width - 1, height - 1),
                                               Colour::Window, stroke, qreal(sizes_.radius)});
        row_.height = height + sizes_.row_gap;
    }

    void copyArea(const QString& text, const QString& name, QRectF rect) {
        row_.areas.push_back({rect, {RowAction::Kind::Copy, text, name}, true});
    }

    void buildUser() {
        const qreal pad_x = 14;
        const qreal pad_y = 10;
        const qreal top = 10;
        const qreal bottom = add(textBlock(item_.text), pad_x, top + pad_y, row_.width - 2 * pad_x,
                                 style(Text::Body, Colour::Text));
        row_.boxes.push_back(
            {QRectF(0, top, row_.width, bottom + pad_y - top), Colour::Surface, std::nullopt, 10});
        row_.height = bottom + pad_y + sizes_.row_gap;
    }

    void buildContext() {
        const agent::ContextChanged& context = *item_.context;
        const qreal line = theme_.lineHeight(Text::Small) + 4;
        QString summary = contextSummary(context);
        if (context.is_new_context) {
            summary += tr("  \u00b7  new context");
        }
        icon(QStringLiteral("book"), 2, (line - sizes_.icon) / 2, Colour::TextFaint);
        const qreal left = 2.0 + sizes_.icon + 8;
        const qreal width = std::min(textWidth(summary, Text::Small) + 4, row_.width - left - 24);
        label(summary, {left, 0, width, line}, Text::Small, Colour::TextMuted);
        icon(item_.is_expanded ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right"),
             left + width + 4, (line - sizes_.icon) / 2, Colour::TextFaint);
        row_.areas.push_back({QRectF(0, 0, left + width + 24, line),
                              {RowAction::Kind::Toggle,
                               {},
                               item_.is_expanded ? tr("Hide the sources") : tr("List the sources")},
                              true});
        qreal y = line;
        if (item_.is_expanded) {
            y = listPieces(context, left, y + 4);
        }
        row_.height = y + sizes_.row_gap - 4;
    }

    qreal listPieces(const agent::ContextChanged& context, qreal left, qreal y) {
        const qreal line = theme_.lineHeight(Text::CodeSmall) + 3;
        for (const auto& piece : context.pieces) {
            const QString target = QStringLiteral("%1:%2-%3")
                                       .arg(qstring(piece->path))
                                       .arg(piece->first_line)
                                       .arg(piece->last_line);
            const qreal width = std::min(textWidth(target, Text::CodeSmall) + 2, row_.width - left);
            label(target, {left, y, width, line}, Text::CodeSmall, Colour::Accent);
            row_.areas.push_back(
                {QRectF(left - 4, y, width + 8, line),
                 {RowAction::Kind::OpenCitation, target, tr("Open %1").arg(target)},
                 true});
            y += line;
        }
        return y;
    }

    void buildThinking() {
        const qreal line = theme_.lineHeight(Text::Small) + 4;
        const QString title = item_.is_streaming ? tr("Thinking") : tr("Thought");
        icon(QStringLiteral("brain"), 2, (line - sizes_.icon) / 2, Colour::TextFaint);
        const qreal left = 2.0 + sizes_.icon + 8;
        const qreal width = textWidth(title, Text::Small) + 4;
        const bool is_open = item_.is_expanded || item_.is_streaming;
        label(title, {left, 0, width, line}, Text::Small, Colour::TextMuted);
        icon(is_open ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right"),
             left + width + 4, (line - sizes_.icon) / 2, Colour::TextFaint);
        row_.areas.push_back(
            {QRectF(0, 0, left + width + 24, line),
             {RowAction::Kind::Toggle, {}, is_open ? tr("Collapse") : tr("Expand")},
             true});
        qreal y = line;
        if (is_open) {
            y = add(textBlock(item_.text), left, y + 4, row_.width - left,
                    style(Text::Small, Colour::TextMuted));
            row_.boxes.push_back(
                {QRectF(9, line + 6, 2, y - line - 8), Colour::Border, std::nullopt, 1});
        }
        row_.height = y + sizes_.row_gap - 4;
    }

    void buildAnswer() {
        BlockStyle block_style = style(Text::Body, Colour::Text);
        if (item_.citations_checked) {
            block_style.citation_state = [citations = item_.citations](const QString& target) {
                CitationTarget wanted;
                if (!parseCitation(target, wanted)) {
                    return CitationState::Unchecked;
                }
                const auto found = std::find_if(
                    citations.begin(), citations.end(), [&](const agent::Citation& citation) {
                        return citation.first_line == wanted.first_line &&
                               citation.last_line == wanted.last_line &&
                               qstring(citation.path) == wanted.path;
                    });
                return found == citations.end() ? CitationState::Unchecked
                       : found->is_in_context   ? CitationState::InContext
                                                : CitationState::NotInContext;
            };
        }
        row_.checked = item_.citations_checked;
        const auto& blocks = item_.markdown.blocks();
        qreal y = 0;
        // Settled blocks of an unchanged width are moved over without comparing their text.
        const bool can_move = previous_ != nullptr && previous_->width == row_.width &&
                              previous_->checked == row_.checked;
        const size_t n_moved = can_move ? std::min(previous_->n_stable, blocks.size()) : 0;
        row_.blocks.reserve(blocks.size());
        for (size_t i = 0; i < blocks.size(); ++i) {
            y += i == 0 ? 0 : gapBefore(blocks[i], theme_);
            if (i < n_moved) {
                row_.blocks.push_back(std::move(previous_->blocks[i]));
                row_.blocks.back().row_y = y;
                y += row_.blocks.back().height();
            } else {
                y = add(blocks[i], 0, y, row_.width, block_style);
            }
            const QRectF button = row_.blocks.back().copyButton();
            if (!button.isEmpty()) {
                const QRectF rect = button.translated(0, row_.blocks.back().row_y);
                copyArea(blocks[i].text, tr("Copy code"), rect);
                icon(QStringLiteral("copy"), rect.x() + 6, rect.y() + (rect.height() - 14) / 2,
                     Colour::TextMuted);
                row_.icons.back().size = 14;
                label(tr("Copy"), rect.adjusted(25, 0, 0, 0), Text::Caption, Colour::TextMuted);
            }
        }
        row_.n_stable = std::min(item_.markdown.numStable(), blocks.size());
        row_.height = y + sizes_.row_gap;
    }

    [[nodiscard]] QString toolIcon() const {
        switch (item_.tool_kind) {
            case agent::ToolKind::Read:
                return QStringLiteral("eye");
            case agent::ToolKind::Write:
                return QStringLiteral("edit");
            case agent::ToolKind::Execute:
                return QStringLiteral("terminal");
            case agent::ToolKind::Network:
                return QStringLiteral("link");
        }
        return QStringLiteral("terminal");
    }

    void buildToolCall() {
        Colour status = Colour::TextMuted;
        switch (item_.call_state) {
            case CallState::Done:
                status = Colour::Positive;
                break;
            case CallState::Failed:
            case CallState::Denied:
                status = Colour::Danger;
                break;
            case CallState::Waiting:
                status = Colour::Warning;
                break;
            default:
                break;
        }
        const bool has_details = !item_.output.isEmpty() || !item_.diff.isEmpty();
        cardHeader(toolIcon(), item_.title, callStateText(item_.call_state), status, has_details);
        qreal height = kHeaderHeight;
        if (item_.is_expanded && has_details) {
            height = addOutput(kHeaderHeight);
        }
        frame(height, item_.call_state == CallState::Waiting ? Colour::Warning : Colour::Border);
    }

    qreal addOutput(qreal y) {
        const qreal pad = sizes_.card_padding;
        row_.boxes.push_back({QRectF(1, y, row_.width - 2, 1), Colour::Border, std::nullopt, 0});
        const bool is_diff = !item_.diff.isEmpty();
        QString text = is_diff ? item_.diff : item_.output;
        const qsizetype n_lines = text.count(QLatin1Char('\n')) + 1;
        if (n_lines > kMaxOutputLines) {
            text = text.section(QLatin1Char('\n'), -kMaxOutputLines);
            label(tr("The last %1 of %2 lines")
                      .arg(kMaxOutputLines)
                      .arg(countText(static_cast<size_t>(n_lines))),
                  {pad, y + 8, row_.width - 2 * pad, 18}, Text::Small, Colour::TextFaint);
            y += 22;
        }
        BlockStyle block_style = style(Text::Small, Colour::Text);
        block_style.code = Text::CodeSmall;
        block_style.has_code_frame = false;
        block_style.language = is_diff ? Language::Diff : Language::Plain;
        while (text.endsWith(QLatin1Char('\n'))) {
            text.chop(1);
        }
        y = add(codeBlock(text), pad, y + 10, row_.width - 2 * pad - 34, block_style);
        const QRectF button(row_.width - pad - 24, kHeaderHeight + 7, 24, 24);
        copyArea(is_diff ? item_.diff : item_.output, tr("Copy output"), button);
        row_.icons.push_back(
            {QStringLiteral("copy"), Colour::TextMuted, button.topLeft() + QPointF(5, 5), 14});
        return y + 10;
    }

    void buildPlan() {
        const auto& steps = item_.plan.steps;
        const auto n_done =
            std::count_if(steps.begin(), steps.end(), [](const agent::PlanStep& step) {
                return step.status == agent::StepStatus::Done ||
                       step.status == agent::StepStatus::Skipped;
            });
        cardHeader(QStringLiteral("list"), tr("Plan"),
                   tr("%1 of %2 done").arg(n_done).arg(steps.size()), Colour::TextMuted, true);
        qreal y = kHeaderHeight;
        if (item_.is_expanded) {
            row_.boxes.push_back(
                {QRectF(1, y, row_.width - 2, 1), Colour::Border, std::nullopt, 0});
            y += 7;
            for (const agent::PlanStep& step : steps) {
                y = addStep(step, y);
            }
            y += 8;
        }
        frame(y, Colour::Border);
    }

    qreal addStep(const agent::PlanStep& step, qreal y) {
        struct Look {
            const char* icon;
            Colour colour;
            Colour text;
        };

        Look look{"circle", Colour::TextFaint, Colour::TextMuted};
        switch (step.status) {
            case agent::StepStatus::InProgress:
                look = {"circle-half", Colour::Accent, Colour::Text};
                break;
            case agent::StepStatus::Done:
                look = {"circle-check", Colour::Positive, Colour::TextMuted};
                break;
            case agent::StepStatus::Failed:
                look = {"circle-x", Colour::Danger, Colour::Text};
                break;
            case agent::StepStatus::Skipped:
                look = {"skip", Colour::TextFaint, Colour::TextFaint};
                break;
            case agent::StepStatus::Pending:
                break;
        }
        const qreal pad = sizes_.card_padding;
        icon(QLatin1String(look.icon), pad, y + 4, look.colour);
        MarkdownBlock block = textBlock(qstring(step.title));
        if (step.status == agent::StepStatus::Skipped) {
            block.spans.push_back({0, static_cast<int>(block.text.size()), TextSpan::Strike, {}});
        }
        const qreal left = pad + sizes_.icon + 9;
        y = add(block, left, y + 3, row_.width - left - pad, style(Text::Ui, look.text));
        if (!step.evidence.empty()) {
            y = add(textBlock(qstring(step.evidence)), left, y, row_.width - left - pad,
                    style(Text::Small, Colour::TextFaint));
        }
        return y + 3;
    }

    void buildNotice() {
        const qreal left = 2.0 + sizes_.icon + 8;
        icon(QStringLiteral("info"), 2, 1, Colour::TextFaint);
        const qreal y = add(textBlock(item_.text), left, 0, row_.width - left,
                            style(Text::Small, Colour::TextMuted));
        row_.height = y + sizes_.row_gap - 4;
    }

    void buildError() {
        const qreal pad = sizes_.card_padding + 2;
        const qreal left = pad + sizes_.icon + 10;
        const qreal width = row_.width - left - pad;
        icon(QStringLiteral("alert"), pad, pad + 1, Colour::Danger);
        qreal y =
            add(textBlock(item_.title), left, pad, width, style(Text::UiStrong, Colour::Danger));
        y = add(textBlock(item_.text), left, y + 2, width, style(Text::Ui, Colour::Text));
        if (!item_.advice.isEmpty()) {
            y = add(textBlock(item_.advice), left, y + 4, width,
                    style(Text::Ui, Colour::TextMuted));
        }
        y += 8;
        qreal x = left;
        x = textButton(tr("Try again"), x, y, {RowAction::Kind::Retry, {}, tr("Try again")});
        textButton(tr("Copy message"), x, y,
                   {RowAction::Kind::Copy, transcriptText(item_), tr("Copy message")});
        const qreal height = y + 26 + pad;
        row_.boxes.push_back({QRectF(0.5, 0.5, row_.width - 1, height - 1), Colour::DangerSoft,
                              Colour::Danger, qreal(sizes_.radius)});
        row_.height = height + sizes_.row_gap;
    }

    qreal textButton(const QString& text, qreal x, qreal y, const RowAction& action) {
        const QRectF rect(x, y, textWidth(text, Text::SmallStrong) + 22, 26);
        row_.boxes.push_back({rect, Colour::Window, Colour::BorderStrong, 6});
        label(text, rect, Text::SmallStrong, Colour::Text, Qt::AlignHCenter);
        row_.areas.push_back({rect, action, true});
        return rect.right() + 8;
    }

    void buildEnd() {
        const qreal line = 24;
        qreal x = 0;
        const QString end = turnEndText(item_.end);
        if (!end.isEmpty()) {
            const qreal width = std::min(textWidth(end, Text::Small) + 2, row_.width - 60);
            label(end, {x, 0, width, line}, Text::Small, Colour::Warning);
            x += width + 12;
        }
        if (item_.usage) {
            label(usageText(*item_.usage), {x, 0, row_.width - x - 40, line}, Text::Small,
                  Colour::TextFaint);
        }
        row_.height = (end.isEmpty() && !item_.usage ? 0 : line) + sizes_.row_gap;
    }

    const TranscriptItem& item_;
    const Theme& theme_;
    const Sizes& sizes_;
    RowLayout* previous_;
    RowLayout row_;
};

}  // namespace

RowLayout makeRow(const TranscriptItem& item,
                  qreal width,
                  const Theme& theme,
                  RowLayout* previous) {
    return Builder(item, width, theme, previous).build();
}

std::vector<RowAction> rowActions(const RowLayout& row) {
    std::vector<RowAction> actions;
    const auto add = [&actions](const RowAction& action) {
        if (std::find(actions.begin(), actions.end(), action) == actions.end()) {
            actions.push_back(action);
        }
    };
    for (const RowLayout::Area& area : row.areas) {
        add(area.action);
    }
    for (const BlockLayout& block : row.blocks) {
        for (const TextSpan& span : block.targets()) {
            if ((span.style & TextSpan::Citation) != 0U) {
                add({RowAction::Kind::OpenCitation, span.target, tr("Open %1").arg(span.target)});
            } else if ((span.style & TextSpan::Link) != 0U) {
                add({RowAction::Kind::OpenLink, span.target, tr("Open %1").arg(span.target)});
            }
        }
    }
    return actions;
}

}  // namespace belvedere::app
