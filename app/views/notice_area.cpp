// SPDX-License-Identifier: Apache-2.0
#include "app/views/notice_area.h"

#include <QAccessible>
#include <QEvent>
#include <QHBoxLayout>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

namespace belvedere::app {

namespace {

constexpr int kToastMs = 9000;
constexpr int kToastMargin = 16;
constexpr size_t kMaxCards = 3;

const char* toneName(NoticeTone tone) {
    switch (tone) {
        case NoticeTone::Warning:
            return "warning";
        case NoticeTone::Notice:
            return "notice";
        case NoticeTone::Danger:
            break;
    }
    return "danger";
}

QLabel* makeLabel(const QString& text, const QFont& font, QWidget* parent) {
    auto* label = new QLabel(text, parent);
    label->setFont(font);
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    return label;
}

}  // namespace

NoticeArea::NoticeArea(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    layout_ = new QVBoxLayout(this);
    layout_->setContentsMargins(14, 10, 14, 0);
    layout_->setSpacing(8);
    hide();
}

void NoticeArea::post(const QString& key, const NoticeCard& card) {
    remove(key);
    if (cards_.size() >= kMaxCards) {
        remove(cards_.begin()->first);
    }
    QWidget* widget = makeCard(key, card);
    layout_->addWidget(widget);
    cards_[key] = widget;
    show();
    QAccessibleEvent event(widget, QAccessible::Alert);
    QAccessible::updateAccessibility(&event);
}

void NoticeArea::post(const QString& key, const ErrorText& error) {
    NoticeCard card;
    card.title = error.title;
    card.detail = error.detail;
    card.advice = error.advice;
    post(key, card);
}

void NoticeArea::remove(const QString& key) {
    const auto found = cards_.find(key);
    if (found == cards_.end()) {
        return;
    }
    found->second->hide();
    found->second->deleteLater();
    cards_.erase(found);
    setVisible(!cards_.empty());
}

QWidget* NoticeArea::makeCard(const QString& key, const NoticeCard& card) {
    auto* widget = new QWidget(this);
    widget->setObjectName(QStringLiteral("banner"));
    widget->setAttribute(Qt::WA_StyledBackground);
    widget->setProperty("tone", QLatin1String(toneName(card.tone)));
    widget->setAccessibleName(
        QStringList{card.title, card.detail, card.advice}.join(QLatin1Char(' ')));
    auto* row = new QHBoxLayout(widget);
    row->setContentsMargins(14, 10, 10, 10);
    row->setSpacing(10);
    auto* texts = new QVBoxLayout;
    texts->setSpacing(2);
    row->addLayout(texts, 1);
    texts->addWidget(makeLabel(card.title, theme_.font(Text::UiStrong), widget));
    if (!card.detail.isEmpty()) {
        texts->addWidget(makeLabel(card.detail, theme_.font(Text::Small), widget));
    }
    if (!card.advice.isEmpty()) {
        QLabel* advice = makeLabel(card.advice, theme_.font(Text::Small), widget);
        advice->setProperty("tone", QStringLiteral("muted"));
        texts->addWidget(advice);
    }
    if (!card.action.isEmpty()) {
        auto* button = new QPushButton(card.action, widget);
        row->addWidget(button, 0, Qt::AlignVCenter);
        connect(button, &QPushButton::clicked, this, [this, key, action = card.on_action] {
            remove(key);
            action();
        });
    }
    auto* close = new QToolButton(widget);
    close->setIcon(theme_.icon(QStringLiteral("close")));
    close->setToolTip(tr("Close"));
    close->setAccessibleName(tr("Close this message"));
    row->addWidget(close, 0, Qt::AlignTop);
    connect(close, &QToolButton::clicked, this, [this, key] { remove(key); });
    return widget;
}

Toast::Toast(const Theme& theme, QWidget* parent) : QWidget(parent) {
    setObjectName(QStringLiteral("toast"));
    setAttribute(Qt::WA_StyledBackground);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(14, 7, 8, 7);
    row->setSpacing(8);
    label_ = new QLabel(this);
    label_->setFont(theme.font(Text::Ui));
    label_->setTextFormat(Qt::PlainText);
    button_ = new QPushButton(this);
    row->addWidget(label_, 1);
    row->addWidget(button_);
    timer_.setSingleShot(true);
    connect(&timer_, &QTimer::timeout, this, &Toast::dismiss);
    connect(button_, &QPushButton::clicked, this, [this] {
        on_gone_ = nullptr;
        const auto action = std::exchange(on_action_, nullptr);
        dismiss();
        if (action) {
            action();
        }
    });
    parent->installEventFilter(this);
    hide();
}

void Toast::post(const QString& text,
                 const QString& action,
                 std::function<void()> on_action,
                 std::function<void()> on_gone) {
    dismiss();
    on_action_ = std::move(on_action);
    on_gone_ = std::move(on_gone);
    label_->setText(text);
    setAccessibleName(text);
    button_->setText(action);
    button_->setVisible(!action.isEmpty());
    place();
    show();
    raise();
    timer_.start(kToastMs);
    QAccessibleEvent event(this, QAccessible::Alert);
    QAccessible::updateAccessibility(&event);
}

void Toast::dismiss() {
    timer_.stop();
    hide();
    on_action_ = nullptr;
    if (const auto gone = std::exchange(on_gone_, nullptr)) {
        gone();
    }
}

void Toast::place() {
    const QSize room = parentWidget()->size();
    const QSize size = sizeHint().boundedTo({room.width() - 2 * kToastMargin, room.height()});
    setGeometry((room.width() - size.width()) / 2, room.height() - size.height() - kToastMargin,
                size.width(), size.height());
}

bool Toast::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Resize && isVisible()) {
        place();
    }
    return QWidget::eventFilter(watched, event);
}

}  // namespace belvedere::app
