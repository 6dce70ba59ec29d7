// SPDX-License-Identifier: Apache-2.0
#include "app/views/source_view.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QVBoxLayout>

#include "app/bridge/error_text.h"
#include "app/bridge/text.h"
#include "app/views/code_view.h"

namespace belvedere::app {

namespace {

/// A text editor's document takes many times the memory of its text.
constexpr size_t kMaxShownBytes = size_t{4} << 20;

}  // namespace

SourceView::SourceView(const Theme& theme, RepositoryService& repositories, QWidget* parent)
    : QWidget(parent), theme_(theme), repositories_(repositories) {
    setObjectName(QStringLiteral("source"));
    setAttribute(Qt::WA_StyledBackground);
    setMinimumWidth(260);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(1, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(makeHeader());
    note_ = new QLabel(this);
    note_->setFont(theme.font(Text::Small));
    note_->setProperty("tone", QStringLiteral("muted"));
    note_->setContentsMargins(14, 6, 14, 6);
    note_->hide();
    column->addWidget(note_);
    pages_ = new QStackedWidget(this);
    code_ = new CodeView(theme, pages_);
    problem_ = new QLabel(pages_);
    problem_->setFont(theme.font(Text::Ui));
    problem_->setTextFormat(Qt::PlainText);
    problem_->setWordWrap(true);
    problem_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    problem_->setContentsMargins(20, 20, 20, 20);
    problem_->setProperty("tone", QStringLiteral("muted"));
    pages_->addWidget(code_);
    pages_->addWidget(problem_);
    column->addWidget(pages_, 1);
    connect(&theme, &Theme::changed, this, &SourceView::updateHeader);
    updateHeader();
}

QWidget* SourceView::makeHeader() {
    auto* header = new QWidget(this);
    header->setObjectName(QStringLiteral("sourceHeader"));
    header->setAttribute(Qt::WA_StyledBackground);
    header->setFixedHeight(theme_.sizes().header);
    auto* row = new QHBoxLayout(header);
    row->setContentsMargins(14, 0, 8, 0);
    row->setSpacing(8);
    title_ = new QLabel(header);
    title_->setFont(theme_.font(Text::UiStrong));
    title_->setTextFormat(Qt::PlainText);
    title_->setMinimumWidth(40);
    range_ = new QLabel(header);
    range_->setFont(theme_.font(Text::Small));
    range_->setProperty("tone", QStringLiteral("muted"));
    copy_ = new QToolButton(header);
    copy_->setToolTip(tr("Copy the path"));
    copy_->setAccessibleName(tr("Copy the path"));
    close_ = new QToolButton(header);
    close_->setToolTip(tr("Close (Esc)"));
    close_->setAccessibleName(tr("Close the source"));
    row->addWidget(title_);
    row->addWidget(range_);
    row->addStretch(1);
    row->addWidget(copy_);
    row->addWidget(close_);
    connect(copy_, &QToolButton::clicked, this,
            [this] { QApplication::clipboard()->setText(path_); });
    connect(close_, &QToolButton::clicked, this, &SourceView::closeRequested);
    return header;
}

void SourceView::updateHeader() {
    copy_->setIcon(theme_.icon(QStringLiteral("copy")));
    close_->setIcon(theme_.icon(QStringLiteral("close")));
    const QFontMetrics metrics(title_->font());
    title_->setText(metrics.elidedText(path_, Qt::ElideLeft, theme_.sizes().source - 190));
    title_->setToolTip(path_);
    range_->setText(first_line_ == 0 ? QString()
                    : first_line_ == last_line_
                        ? tr("line %1").arg(first_line_)
                        : tr("lines %1\u2013%2").arg(first_line_).arg(last_line_));
}

void SourceView::openRange(const QString& path, size_t first_line, size_t last_line) {
    path_ = path;
    first_line_ = first_line;
    last_line_ = last_line;
    updateHeader();
    repositories_.readFile(path, this, [this, path](const Result<std::string>& text) {
        if (path == path_) {  // not one that was asked for before
            showText(text);
        }
    });
}

void SourceView::showText(const Result<std::string>& text) {
    note_->hide();
    QString problem;
    if (!text.has_value()) {
        const ErrorText words = errorText(text.error(), tr("The file cannot be shown"));
        problem = QStringList{words.title, words.detail, words.advice}.join(QStringLiteral("\n\n"));
    } else if (text->find('\0') != std::string::npos) {
        problem = tr("%1 is a binary file.").arg(path_);
    } else if (text->size() > kMaxShownBytes) {
        problem = tr("%1 has %2: more than is shown here (%3).")
                      .arg(path_, bytesText(text->size()), bytesText(kMaxShownBytes));
    }
    problem_->setText(problem.trimmed());
    pages_->setCurrentWidget(problem.isEmpty() ? static_cast<QWidget*>(code_) : problem_);
    if (!problem.isEmpty()) {
        return;
    }
    const QString shown = qstring(*text);
    if (shown.contains(QChar(QChar::ReplacementCharacter))) {
        note_->setText(tr("Bytes that are no UTF-8 are shown as %1.").arg(QChar(0xFFFD)));
        note_->show();
    }
    code_->setSource(shown, languageOfPath(path_));
    code_->markLines(first_line_, last_line_);
}

QString SourceView::problem() const {
    return pages_->currentWidget() == problem_ ? problem_->text() : QString();
}

}  // namespace belvedere::app
