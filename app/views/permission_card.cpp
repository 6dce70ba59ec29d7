// SPDX-License-Identifier: Apache-2.0
#include "app/views/permission_card.h"

#include <QHBoxLayout>
#include <QStyle>
#include <QSyntaxHighlighter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/bridge/error_text.h"
#include "app/bridge/text.h"
#include "app/theme/highlighter.h"
#include "app/views/column.h"

namespace belvedere::app {

namespace {

constexpr int kMaxPreviewLines = 12;

/// Colours of a diff.
class DiffHighlighter : public QSyntaxHighlighter {
  public:
    DiffHighlighter(const Theme& theme, QTextDocument* document)
        : QSyntaxHighlighter(document), theme_(theme) {}

  protected:
    void highlightBlock(const QString& line) override {
        HighlightState state = 0;
        for (const CodeSpan& span : highlightLine(line, Language::Diff, state)) {
            setFormat(span.begin, span.length, theme_.colour(span.colour));
        }
    }

  private:
    const Theme& theme_;
};

}  // namespace

PermissionCard::PermissionCard(const Theme& theme, QWidget* parent)
    : QWidget(parent), theme_(theme) {
    auto* outer = new QHBoxLayout(this);
    card_ = new QWidget(this);
    card_->setObjectName(QStringLiteral("permission"));
    card_->setAttribute(Qt::WA_StyledBackground);
    outer->addWidget(card_);
    auto* column = new QVBoxLayout(card_);
    column->setContentsMargins(14, 12, 14, 12);
    column->setSpacing(8);

    auto* head = new QHBoxLayout;
    head->setSpacing(9);
    icon_ = new QLabel(card_);
    title_ = new QLabel(card_);
    title_->setFont(theme.font(Text::UiStrong));
    title_->setTextFormat(Qt::PlainText);
    title_->setWordWrap(true);
    count_ = new QLabel(card_);
    count_->setFont(theme.font(Text::Small));
    count_->setProperty("tone", QStringLiteral("muted"));
    head->addWidget(icon_, 0, Qt::AlignTop);
    head->addWidget(title_, 1);
    head->addWidget(count_, 0, Qt::AlignTop);
    column->addLayout(head);

    reason_ = new QLabel(card_);
    reason_->setFont(theme.font(Text::Small));
    reason_->setProperty("tone", QStringLiteral("muted"));
    reason_->setTextFormat(Qt::PlainText);
    reason_->setWordWrap(true);
    column->addWidget(reason_);

    preview_ = new QPlainTextEdit(card_);
    preview_->setObjectName(QStringLiteral("permissionPreview"));
    preview_->setReadOnly(true);
    preview_->setFont(theme.font(Text::CodeSmall));
    preview_->setLineWrapMode(QPlainTextEdit::NoWrap);
    preview_->setTabChangesFocus(true);
    preview_->setAccessibleName(tr("What would be done"));
    new DiffHighlighter(theme, preview_->document());
    column->addWidget(preview_);

    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(8);
    deny_ = new QPushButton(tr("Deny"), card_);
    deny_->setProperty("kind", QStringLiteral("danger"));
    session_ = new QPushButton(tr("Allow in this session"), card_);
    session_->setToolTip(tr("Do not ask again for this in this session"));
    once_ = new QPushButton(tr("Allow once"), card_);
    once_->setProperty("kind", QStringLiteral("primary"));
    // No button answers to Enter unless the focus is on it.
    for (QPushButton* button : {deny_, session_, once_}) {
        button->setAutoDefault(false);
    }
    deny_->setShortcut(Qt::ALT | Qt::Key_N);
    once_->setShortcut(Qt::ALT | Qt::Key_Y);
    deny_->setToolTip(tr("Alt+N"));
    once_->setToolTip(tr("Alt+Y"));
    buttons->addWidget(deny_);
    buttons->addStretch(1);
    buttons->addWidget(session_);
    buttons->addWidget(once_);
    column->addLayout(buttons);

    connect(deny_, &QPushButton::clicked, this, [this] { answer(agent::PermissionAnswer::Deny); });
    connect(session_, &QPushButton::clicked, this,
            [this] { answer(agent::PermissionAnswer::AllowForSession); });
    connect(once_, &QPushButton::clicked, this,
            [this] { answer(agent::PermissionAnswer::AllowOnce); });
    connect(&theme, &Theme::changed, this, &PermissionCard::refresh);
    hide();
}

void PermissionCard::setTranscript(TranscriptModel* transcript) {
    if (transcript_ != nullptr) {
        transcript_->disconnect(this);
    }
    transcript_ = transcript;
    if (transcript != nullptr) {
        connect(transcript, &TranscriptModel::questionsChanged, this, &PermissionCard::refresh);
    }
    refresh();
}

void PermissionCard::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    const ColumnPlace column = columnIn(width(), theme_.sizes());
    layout()->setContentsMargins(column.left, 4, width() - column.left - column.width, 6);
}

void PermissionCard::refresh() {
    if (transcript_ == nullptr || transcript_->questions().empty()) {
        call_id_.clear();
        hide();
        return;
    }
    const auto& questions = transcript_->questions();
    const agent::PermissionQuestion& question = questions.front();
    call_id_ = question.call_id;
    icon_->setPixmap(theme_.pixmap(QStringLiteral("shield"), Colour::Warning, theme_.sizes().icon,
                                   devicePixelRatioF()));
    title_->setText(qstring(question.title.empty() ? question.tool : question.title));
    count_->setText(questions.size() > 1 ? tr("1 of %1").arg(questions.size()) : QString());
    reason_->setText(sentence(question.reason));
    reason_->setVisible(!question.reason.empty());
    QString preview = qstring(question.preview.empty() ? question.subject : question.preview);
    while (preview.endsWith(QLatin1Char('\n'))) {
        preview.chop(1);
    }
    preview_->setPlainText(preview);
    preview_->setVisible(!preview.isEmpty());
    const auto n_lines = static_cast<int>(
        std::min<qsizetype>(kMaxPreviewLines, preview.count(QLatin1Char('\n')) + 1));
    const qreal line = QFontMetricsF(preview_->font()).lineSpacing();
    preview_->setFixedHeight(static_cast<int>(std::ceil(n_lines * line)) + 26);
    // A tool that always asks would ask again all the same.
    session_->setVisible(question.kind == agent::ToolKind::Write ||
                         question.kind == agent::ToolKind::Read);
    card_->setAccessibleName(tr("Permission: %1").arg(title_->text()));
    show();
}

void PermissionCard::answer(agent::PermissionAnswer answer) {
    // Copied: the answer may bring the next question, or none.
    const std::string call_id = call_id_;
    if (!call_id.empty()) {
        Q_EMIT answered(call_id, answer);
    }
}

}  // namespace belvedere::app
