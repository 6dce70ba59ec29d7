// SPDX-License-Identifier: Apache-2.0
#include "app/views/source_view.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QVBoxLayout>

#include "app/bridge/error_text.h"
#include "app/views/code_view.h"

namespace belvedere::app {

namespace {

constexpr int kHeaderControls = 240;  // pixels the range and the buttons take

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
    note_->setMargin(7);
    note_->setIndent(7);
    note_->hide();
    column->addWidget(note_);
    pages_ = new QStackedWidget(this);
    code_ = new CodeView(theme, pages_);
    problem_ = new QLabel(pages_);
    problem_->setFont(theme.font(Text::Ui));
    problem_->setTextFormat(Qt::PlainText);
    problem_->setWordWrap(true);
    problem_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    problem_->setMargin(20);  // contents margins are lost to the style sheet
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
    outside_ = new QToolButton(header);
    outside_->setToolTip(tr("Open in another program"));
    outside_->setAccessibleName(tr("Open in another program"));
    row->addWidget(copy_);
    row->addWidget(outside_);
    row->addWidget(close_);
    connect(copy_, &QToolButton::clicked, this,
            [this] { QApplication::clipboard()->setText(path_); });
    connect(outside_, &QToolButton::clicked, this, [this] { Q_EMIT openOutsideRequested(path_); });
    connect(close_, &QToolButton::clicked, this, &SourceView::closeRequested);
    return header;
}

void SourceView::updateHeader() {
    copy_->setIcon(theme_.icon(QStringLiteral("copy")));
    close_->setIcon(theme_.icon(QStringLiteral("close")));
    outside_->setIcon(theme_.icon(QStringLiteral("open-outside")));
    const QFontMetrics metrics(title_->font());
    title_->setText(metrics.elidedText(path_, Qt::ElideLeft, width() - kHeaderControls));
    title_->setToolTip(path_);
    range_->setText(first_line_ == 0 ? QString()
                    : first_line_ == last_line_
                        ? tr("line %1").arg(first_line_)
                        : tr("lines %1\u2013%2").arg(first_line_).arg(last_line_));
}

void SourceView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    updateHeader();
}

void SourceView::openRange(const QString& path, size_t first_line, size_t last_line) {
    path_ = path;
    first_line_ = first_line;
    last_line_ = last_line;
    updateHeader();
    repositories_.readSource(path, this,
                             [this, path](const Result<RepositoryService::Source>& source) {
                                 if (path == path_) {  // not one that was asked for before
                                     showSource(source);
                                 }
                             });
}

void SourceView::showSource(const Result<RepositoryService::Source>& source) {
    note_->hide();
    problem_->clear();
    if (!source.has_value()) {
        code_->setSource(nullptr);
        showProblem(source.error());
        return;
    }
    if ((*source)->hasReplacements()) {
        note_->setText(tr("Bytes that are no UTF-8 are shown as %1.").arg(QChar(0xFFFD)));
        note_->show();
    }
    pages_->setCurrentWidget(code_);
    code_->setSource(*source);
    code_->markLines(first_line_, last_line_);
}

void SourceView::showProblem(const Error& error) {
    const ErrorText words = errorText(error, tr("The file cannot be shown"));
    QStringList parts{words.title, words.detail};
    if (error.code == ErrorCode::NotFound) {
        parts +=
            tr("It was moved or deleted since the folder was read, or the model has made it up.");
    } else if (error.code == ErrorCode::Io) {
        parts += words.advice;
    }
    problem_->setText(parts.join(QStringLiteral("\n\n")));
    pages_->setCurrentWidget(problem_);
}

QString SourceView::problem() const {
    return pages_->currentWidget() == problem_ ? problem_->text() : QString();
}

}  // namespace belvedere::app
