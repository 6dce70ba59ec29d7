// SPDX-License-Identifier: Apache-2.0
#include "app/views/composer.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMimeData>
#include <QMimeDatabase>
#include <QScrollBar>
#include <QStyle>
#include <QTextBlock>
#include <QTextLayout>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/views/column.h"

namespace belvedere::app {

namespace {

constexpr int kMaxLines = 9;
constexpr int kEditPadding = 4;
constexpr QSize kButtonSize(34, 34);

/// A picture, or files of pictures. What is copied from a browser has its text beside a picture.
bool isImage(const QMimeData& data) {
    const QList<QUrl> urls = data.urls();
    const bool has_image_file = std::any_of(urls.begin(), urls.end(), [](const QUrl& url) {
        const QMimeType type =
            QMimeDatabase().mimeTypeForFile(url.fileName(), QMimeDatabase::MatchExtension);
        return type.name().startsWith(QLatin1String("image/"));
    });
    return has_image_file || (data.hasImage() && !data.hasText());
}

}  // namespace

ComposerEdit::ComposerEdit(QWidget* parent) : QPlainTextEdit(parent) {
    setFrameShape(QFrame::NoFrame);
    setTabChangesFocus(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    document()->setDocumentMargin(kEditPadding);
    setAccessibleName(tr("Message"));
}

int ComposerEdit::wantedHeight() const {
    // Lines as they are wrapped. QPlainTextEdit lays blocks out when they are shown; blocks that
    // are not laid out yet count as one line.
    int n_lines = 0;
    for (QTextBlock block = document()->begin(); block.isValid() && n_lines < kMaxLines;
         block = block.next()) {
        n_lines += std::max(1, block.layout() != nullptr ? block.layout()->lineCount() : 1);
    }
    n_lines = std::clamp(n_lines, 1, kMaxLines);
    const qreal line = QFontMetricsF(font()).lineSpacing();
    return static_cast<int>(std::ceil(n_lines * line)) + 2 * kEditPadding + 2;
}

void ComposerEdit::keyPressEvent(QKeyEvent* event) {
    const bool is_return = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (is_return && is_composing_) {
        return;  // belongs to the input method, which has not taken it
    }
    if (is_return && (event->modifiers() & Qt::ShiftModifier) == 0U) {
        Q_EMIT submitted();
        return;
    }
    if (event->key() == Qt::Key_Escape) {
        Q_EMIT escaped();
        return;
    }
    if (is_return) {
        // Qt would insert a line separator, which is not a newline once it is text.
        insertPlainText(QStringLiteral("\n"));
        ensureCursorVisible();
        return;
    }
    QPlainTextEdit::keyPressEvent(event);
}

void ComposerEdit::inputMethodEvent(QInputMethodEvent* event) {
    is_composing_ = !event->preeditString().isEmpty();
    QPlainTextEdit::inputMethodEvent(event);
}

bool ComposerEdit::canInsertFromMimeData(const QMimeData* source) const {
    return isImage(*source) || QPlainTextEdit::canInsertFromMimeData(source);
}

void ComposerEdit::insertFromMimeData(const QMimeData* source) {
    if (isImage(*source)) {
        Q_EMIT imageRefused();
        return;
    }
    QPlainTextEdit::insertFromMimeData(source);
}

void ComposerEdit::focusInEvent(QFocusEvent* event) {
    QPlainTextEdit::focusInEvent(event);
    Q_EMIT focusChanged(true);
}

void ComposerEdit::focusOutEvent(QFocusEvent* event) {
    QPlainTextEdit::focusOutEvent(event);
    Q_EMIT focusChanged(false);
}

Composer::Composer(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setObjectName(QStringLiteral("composerArea"));
    setAttribute(Qt::WA_StyledBackground);
    auto* outer = new QHBoxLayout(this);
    box_ = new QWidget(this);
    box_->setObjectName(QStringLiteral("composerBox"));
    box_->setAttribute(Qt::WA_StyledBackground);
    outer->addWidget(box_);
    auto* column = new QVBoxLayout(box_);
    column->setContentsMargins(10, 8, 8, 8);
    column->setSpacing(4);
    edit_ = new ComposerEdit(box_);
    edit_->setFont(theme.font(Text::Body));
    column->addWidget(edit_);
    auto* row = new QHBoxLayout;
    row->setSpacing(8);
    row->addWidget(makeModes());
    hint_ = new QLabel(box_);
    hint_->setFont(theme.font(Text::Small));
    hint_->setProperty("tone", QStringLiteral("faint"));
    hint_->setTextFormat(Qt::PlainText);
    row->addWidget(hint_, 1);
    button_ = new QToolButton(box_);
    button_->setFixedSize(kButtonSize);
    row->addWidget(button_);
    column->addLayout(row);
    setFocusProxy(edit_);

    connect(edit_, &ComposerEdit::submitted, this, &Composer::submit);
    connect(edit_, &ComposerEdit::escaped, this, [this] {
        if (is_running_) {
            Q_EMIT stop();
        }
    });
    connect(edit_, &ComposerEdit::imageRefused, this, [this] {
        has_refused_image_ = true;
        refresh();
    });
    connect(edit_, &ComposerEdit::focusChanged, this, [this](bool has_focus) {
        box_->setProperty("focused", has_focus);
        box_->style()->unpolish(box_);
        box_->style()->polish(box_);
    });
    connect(edit_, &QPlainTextEdit::textChanged, this, [this] {
        has_refused_image_ = false;
        fit();
        refresh();
    });
    connect(work_, &QToolButton::toggled, this, &Composer::refresh);
    connect(button_, &QToolButton::clicked, this, [this] {
        if (is_running_) {
            Q_EMIT stop();
        } else {
            submit();
        }
    });
    connect(&theme, &Theme::changed, this, &Composer::refresh);
    refresh();
    fit();
}

Composer::~Composer() {
    edit_->disconnect(this);  // it loses the focus after this has died
}

QWidget* Composer::makeModes() {
    auto* segment = new QWidget(box_);
    segment->setObjectName(QStringLiteral("segment"));
    segment->setAttribute(Qt::WA_StyledBackground);
    auto* row = new QHBoxLayout(segment);
    row->setContentsMargins(2, 2, 2, 2);
    row->setSpacing(0);
    auto* group = new QButtonGroup(segment);
    const auto mode = [&](const QString& text, const QString& tip) {
        auto* button = new QToolButton(segment);
        button->setText(text);
        button->setToolTip(tip);
        button->setAccessibleName(tr("%1: %2").arg(text, tip));
        button->setCheckable(true);
        button->setFont(theme_.font(Text::Small));
        group->addButton(button);
        row->addWidget(button);
        return button;
    };
    ask_ = mode(tr("Ask"), tr("Answer from the sources"));
    work_ = mode(tr("Work"), tr("Let the model use tools; every change asks first"));
    ask_->setChecked(true);
    return segment;
}

agent::TurnMode Composer::mode() const {
    return work_->isChecked() ? agent::TurnMode::Work : agent::TurnMode::Ask;
}

void Composer::setText(const QString& text) {
    edit_->setPlainText(text);
    edit_->moveCursor(QTextCursor::End);
    // An example holds an ellipsis for the name to fill in.
    const qsizetype gap = text.indexOf(QChar(0x2026));
    if (gap >= 0) {
        QTextCursor cursor = edit_->textCursor();
        cursor.setPosition(static_cast<int>(gap));
        cursor.setPosition(static_cast<int>(gap) + 1, QTextCursor::KeepAnchor);
        edit_->setTextCursor(cursor);
    }
    edit_->setFocus();
}

void Composer::setRunning(bool is_running) {
    is_running_ = is_running;
    refresh();
}

void Composer::setBlocked(const QString& why) {
    blocked_ = why;
    refresh();
}

void Composer::submit() {
    const QString text = edit_->toPlainText().trimmed();
    if (text.isEmpty() || is_running_ || !blocked_.isEmpty()) {
        return;
    }
    edit_->clear();
    Q_EMIT send(text, mode());
}

void Composer::refresh() {
    const bool has_text = !edit_->toPlainText().trimmed().isEmpty();
    edit_->setPlaceholderText(mode() == agent::TurnMode::Ask ? tr("Ask about the code")
                                                             : tr("Say what is to be done"));
    QString hint = is_running_ ? tr("Esc stops") : tr("Shift+Enter for a new line");
    if (has_refused_image_) {
        hint = tr("Images are not supported by a text model");
    } else if (!blocked_.isEmpty() && !is_running_) {
        hint = blocked_;
    }
    hint_->setText(hint);
    hint_->setAccessibleName(hint);
    const QString kind = is_running_ ? QStringLiteral("stop") : QStringLiteral("send");
    button_->setIcon(theme_.icon(kind, is_running_ ? Colour::Danger : Colour::AccentText));
    button_->setToolTip(is_running_ ? tr("Stop (Esc)") : tr("Send (Enter)"));
    button_->setAccessibleName(is_running_ ? tr("Stop") : tr("Send"));
    button_->setEnabled(is_running_ || (has_text && blocked_.isEmpty()));
    if (button_->property("kind").toString() != kind) {
        button_->setProperty("kind", kind);
        button_->style()->unpolish(button_);
        button_->style()->polish(button_);
    }
}

void Composer::fit() {
    edit_->setFixedHeight(edit_->wantedHeight());
}

void Composer::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    const ColumnPlace column = columnIn(width(), theme_.sizes());
    layout()->setContentsMargins(column.left, 6, width() - column.left - column.width, 14);
    fit();
}

}  // namespace belvedere::app
