// SPDX-License-Identifier: Apache-2.0
#include "app/views/empty_page.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

namespace belvedere::app {

namespace {

constexpr int kColumn = 440;
constexpr int kMark = 36;

}  // namespace

EmptyPage::EmptyPage(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setObjectName(QStringLiteral("emptyPage"));
    setAttribute(Qt::WA_StyledBackground);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(24, 8, 24, 8);
    column->setSpacing(8);
    const auto label = [&](Text style, const char* tone) {
        auto* made = new QLabel(this);
        made->setFont(theme.font(style));
        made->setProperty("tone", QLatin1String(tone));
        made->setAlignment(Qt::AlignHCenter);
        made->setTextFormat(Qt::PlainText);
        return made;
    };
    column->addStretch(1);
    mark_ = label(Text::Ui, "");
    column->addWidget(mark_);
    title_ = label(Text::Heading1, "");
    title_->setWordWrap(true);
    column->addWidget(title_);
    text_ = label(Text::Ui, "muted");
    text_->setWordWrap(true);
    text_->setMaximumWidth(kColumn);
    // In the middle by stretches: a label that is aligned is given no height for its second line.
    auto* middle = new QHBoxLayout;
    middle->addStretch(1);
    middle->addWidget(text_, 1000);
    middle->addStretch(1);
    column->addLayout(middle);
    button_ = new QPushButton(this);
    button_->setProperty("kind", QStringLiteral("primary"));
    column->addSpacing(4);
    column->addWidget(button_, 0, Qt::AlignHCenter);
    examples_ = new QWidget(this);
    auto* list = new QVBoxLayout(examples_);
    list->setContentsMargins(0, 0, 0, 0);
    list->setSpacing(6);
    for (const QString& question :
         {tr("Where is \u2026 defined?"), tr("What is the value of \u2026?"),
          tr("What does the function \u2026 take?")}) {
        auto* example = new QPushButton(question, examples_);
        example->setToolTip(tr("Put this question into the message and fill in a name"));
        list->addWidget(example);
        connect(example, &QPushButton::clicked, this,
                [this, question] { Q_EMIT exampleChosen(question); });
    }
    column->addWidget(examples_, 0, Qt::AlignHCenter);
    column->addStretch(1);
    connect(button_, &QPushButton::clicked, this, &EmptyPage::buttonClicked);
    connect(&theme, &Theme::changed, this, &EmptyPage::updateMark);
    updateMark();
}

void EmptyPage::updateMark() {
    mark_->setPixmap(
        theme_.pixmap(QStringLiteral("belvedere"), Colour::Text, kMark, devicePixelRatioF()));
}

void EmptyPage::setWords(const Words& words) {
    title_->setText(words.title);
    text_->setText(words.text);
    button_->setText(words.button);
    button_->setVisible(!words.button.isEmpty());
    examples_->setVisible(words.has_examples);
}

}  // namespace belvedere::app
