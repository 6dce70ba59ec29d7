// SPDX-License-Identifier: Apache-2.0
#include "app/views/first_run_page.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

#include "app/bridge/error_text.h"
#include "app/bridge/text.h"

namespace belvedere::app {

namespace {

constexpr int kColumn = 560;
constexpr int kMark = 44;

}  // namespace

FirstRunPage::FirstRunPage(const Theme& theme, ModelService& models, QWidget* parent)
    : QScrollArea(parent), theme_(theme), models_(models) {
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* page = new QWidget(this);
    page->setObjectName(QStringLiteral("firstRun"));
    page->setAttribute(Qt::WA_StyledBackground);
    setWidget(page);
    auto* across = new QHBoxLayout(page);
    across->setContentsMargins(24, 20, 24, 20);
    auto* column = new QVBoxLayout;
    column->setSpacing(6);
    across->addStretch(1);
    auto* inner = new QWidget(page);
    inner->setMaximumWidth(kColumn);
    inner->setLayout(column);
    across->addWidget(inner, 100);
    across->addStretch(1);
    column->setContentsMargins(0, 0, 0, 0);

    column->addStretch(1);
    mark_ = new QLabel(inner);
    mark_->setFixedHeight(kMark);
    column->addWidget(mark_);
    column->addSpacing(4);
    QLabel* title = makeLabel(inner, Text::Title, "");
    title->setText(tr("Ask your source code"));
    column->addWidget(title);
    QLabel* intro = makeLabel(inner, Text::Body, "muted");
    intro->setText(
        tr("Belvedere answers questions about a folder of source files and shows the lines it "
           "used. Everything runs on this computer: nothing you ask or attach leaves it. "
           "First it needs a model."));
    column->addWidget(intro);
    column->addSpacing(10);
    column->addWidget(makeCard(inner));
    column->addStretch(2);

    connect(&models, &ModelService::stateChanged, this, &FirstRunPage::refresh);
    connect(&models, &ModelService::defaultChanged, this, &FirstRunPage::refresh);
    connect(&models, &ModelService::progressChanged, this, &FirstRunPage::refreshProgress);
    connect(&theme, &Theme::changed, this, &FirstRunPage::updateMark);
    updateMark();
    refresh();
}

QLabel* FirstRunPage::makeLabel(QWidget* parent, Text style, const char* tone) {
    auto* label = new QLabel(parent);
    label->setFont(theme_.font(style));
    label->setProperty("tone", QLatin1String(tone));
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    return label;
}

QWidget* FirstRunPage::makeCard(QWidget* parent) {
    auto* card = new QWidget(parent);
    card->setObjectName(QStringLiteral("card"));
    card->setAttribute(Qt::WA_StyledBackground);
    auto* column = new QVBoxLayout(card);
    column->setContentsMargins(18, 16, 18, 16);
    column->setSpacing(8);
    name_ = makeLabel(card, Text::Heading3, "");
    summary_ = makeLabel(card, Text::Ui, "");
    facts_ = makeLabel(card, Text::Small, "muted");
    limits_ = makeLabel(card, Text::Small, "muted");
    limits_->setTextFormat(Qt::RichText);
    for (QLabel* label : {name_, facts_, summary_, limits_}) {
        column->addWidget(label);
    }

    error_ = new QWidget(card);
    error_->setObjectName(QStringLiteral("banner"));
    error_->setAttribute(Qt::WA_StyledBackground);
    auto* error_column = new QVBoxLayout(error_);
    error_column->setContentsMargins(12, 9, 12, 9);
    error_text_ = makeLabel(error_, Text::Small, "");
    error_text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    error_column->addWidget(error_text_);
    column->addWidget(error_);

    progress_row_ = new QWidget(card);
    auto* progress = new QHBoxLayout(progress_row_);
    progress->setContentsMargins(0, 4, 0, 0);
    progress->setSpacing(12);
    auto* texts = new QVBoxLayout;
    progress_ = new QProgressBar(progress_row_);
    progress_->setTextVisible(false);
    progress_->setRange(0, 1000);
    progress_->setAccessibleName(tr("Progress of the model"));
    progress_text_ = makeLabel(progress_row_, Text::Small, "muted");
    texts->addWidget(progress_);
    texts->addWidget(progress_text_);
    progress->addLayout(texts, 1);
    cancel_ = new QPushButton(tr("Cancel"), progress_row_);
    progress->addWidget(cancel_, 0, Qt::AlignVCenter);
    column->addWidget(progress_row_);

    buttons_ = new QWidget(card);
    auto* row = new QHBoxLayout(buttons_);
    row->setContentsMargins(0, 4, 0, 0);
    row->setSpacing(10);
    get_ = new QPushButton(buttons_);
    get_->setProperty("kind", QStringLiteral("primary"));
    get_->setObjectName(QStringLiteral("getModel"));
    open_ = new QPushButton(tr("Open a model file\u2026"), buttons_);
    open_->setToolTip(tr("A GGUF file, or a safetensors file of a checkpoint, on this computer"));
    row->addWidget(get_);
    row->addWidget(open_);
    row->addStretch(1);
    column->addWidget(buttons_);

    setFocusProxy(get_);
    connect(cancel_, &QPushButton::clicked, &models_, &ModelService::cancel);
    connect(open_, &QPushButton::clicked, this, &FirstRunPage::openModelRequested);
    connect(get_, &QPushButton::clicked, this, [this] {
        const auto& model = models_.defaultModel();
        if (model && model->is_installed) {
            models_.loadDefault();
        } else {
            models_.fetchDefault();
        }
    });
    return card;
}

void FirstRunPage::updateMark() {
    mark_->setPixmap(
        theme_.pixmap(QStringLiteral("belvedere"), Colour::Text, kMark, devicePixelRatioF()));
}

void FirstRunPage::refresh() {
    const auto& model = models_.defaultModel();
    if (model) {
        name_->setText(model->name);
        summary_->setText(model->summary);
        facts_->setText(model->is_installed ? tr("%1 on disk, installed \u00b7 %2")
                                                  .arg(bytesText(model->n_bytes), model->licence)
                                            : tr("%1 to download, %2 on disk \u00b7 %3")
                                                  .arg(bytesText(model->n_bytes_to_fetch),
                                                       bytesText(model->n_bytes), model->licence));
        QString items;
        for (const QString& limit : model->limits) {
            items +=
                QStringLiteral("<tr><td>\u2022</td><td style='padding:0 0 3px 8px'>%1</td></tr>")
                    .arg(limit.toHtmlEscaped());
        }
        limits_->setText(QStringLiteral("<p style='margin:0 0 4px 0'>%1</p>"
                                        "<table cellspacing='0' cellpadding='0'>%2</table>")
                             .arg(tr("What to expect:"), items));
        get_->setText(model->is_installed
                          ? tr("Load it")
                          : tr("Download (%1)").arg(bytesText(model->n_bytes_to_fetch)));
    } else {
        name_->setText(tr("Default model"));
    }
    get_->setEnabled(model.has_value());
    const bool has_failed = models_.state() == ModelService::State::Failed;
    error_->setVisible(has_failed);
    if (has_failed) {
        const ErrorText text = errorText(models_.error(), tr("The model is not ready."));
        error_text_->setText(
            QStringList{text.title, text.detail, text.advice}.join(QLatin1Char(' ')));
    }
    buttons_->setVisible(!models_.isBusy());
    progress_row_->setVisible(models_.isBusy());
    refreshProgress();
}

void FirstRunPage::refreshProgress() {
    progress_->setValue(static_cast<int>(models_.fraction() * 1000));
    const QString what = models_.state() == ModelService::State::Fetching ? tr("Getting the model")
                                                                          : tr("Loading the model");
    progress_text_->setText(models_.activity().isEmpty() ? what
                                                         : sentence(utf8(models_.activity())));
}

}  // namespace belvedere::app
