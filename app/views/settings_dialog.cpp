// SPDX-License-Identifier: Apache-2.0
#include "app/views/settings_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>
#include <cmath>

namespace belvedere::app {

namespace {

constexpr int kMaxBudget = 1'000'000;
constexpr int kBudgetStep = 1024;
constexpr int kMaxThreads = 256;

QWidget* withHint(QWidget* field, const QString& hint, const Theme& theme, QWidget* parent) {
    auto* box = new QWidget(parent);
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 6);
    column->setSpacing(3);
    column->addWidget(field);
    auto* label = new QLabel(hint, box);
    label->setFont(theme.font(Text::Small));
    label->setProperty("tone", QStringLiteral("muted"));
    label->setWordWrap(true);
    column->addWidget(label);
    field->setAccessibleDescription(hint);
    return box;
}

}  // namespace

SettingsDialog::SettingsDialog(Theme& theme,
                               const Preferences& preferences,
                               const PreferenceDefaults& defaults,
                               QWidget* parent)
    : QDialog(parent), theme_(theme), before_(preferences), defaults_(defaults) {
    setWindowTitle(tr("Settings"));
    setMinimumWidth(440);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(20, 18, 20, 16);
    column->setSpacing(12);
    auto* form = new QFormLayout;
    form->setHorizontalSpacing(18);
    form->setVerticalSpacing(8);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form->setLabelAlignment(Qt::AlignLeft | Qt::AlignTop);
    column->addLayout(form);

    scheme_ = new QComboBox(this);
    scheme_->addItem(tr("As the system"), static_cast<int>(Scheme::System));
    scheme_->addItem(tr("Light"), static_cast<int>(Scheme::Light));
    scheme_->addItem(tr("Dark"), static_cast<int>(Scheme::Dark));
    form->addRow(tr("&Appearance"), scheme_);

    budget_ = new QSpinBox(this);
    budget_->setRange(512, kMaxBudget);
    budget_->setSingleStep(kBudgetStep);
    budget_->setGroupSeparatorShown(true);
    budget_->setSuffix(tr(" tokens"));
    form->addRow(
        tr("&Sources"),
        withHint(budget_,
                 tr("How much of a folder is put before the model when it does not fit as a "
                    "whole. More finds more and takes longer to read."),
                 theme, this));
    threads_ = new QSpinBox(this);
    threads_->setRange(0, kMaxThreads);
    threads_->setSpecialValueText(tr("One per core"));
    form->addRow(tr("&Threads"),
                 withHint(threads_, tr("A change loads the model again."), theme, this));
    temperature_ = new QDoubleSpinBox(this);
    temperature_->setRange(0, 2);
    temperature_->setSingleStep(0.1);
    temperature_->setDecimals(2);
    temperature_->setSpecialValueText(tr("0 (always the likeliest)"));
    form->addRow(tr("T&emperature"),
                 withHint(temperature_,
                          tr("Higher is more varied and less reliable. Citations are best at 0."),
                          theme, this));
    attention_ = new QComboBox(this);
    attention_->addItem(tr("Sparse (MSA)"), false);
    attention_->addItem(tr("Dense"), true);
    form->addRow(
        tr("A&ttention"),
        withHint(attention_,
                 tr("Of models with an MSA index, as the default one. Sparse is faster the longer "
                    "the context is; dense cites better above 8,000 tokens of sources. A change "
                    "loads the model again."),
                 theme, this));
    for (int row = 0; row < form->rowCount(); ++row) {
        auto* label = qobject_cast<QLabel*>(form->itemAt(row, QFormLayout::LabelRole)->widget());
        label->setContentsMargins(0, 6, 0, 0);
    }
    scheme_->setAccessibleName(tr("Appearance"));
    budget_->setAccessibleName(tr("Tokens of sources"));
    threads_->setAccessibleName(tr("Threads"));
    temperature_->setAccessibleName(tr("Temperature"));
    attention_->setAccessibleName(tr("Attention"));
    if (auto* label = qobject_cast<QLabel*>(form->itemAt(1, QFormLayout::LabelRole)->widget())) {
        label->setBuddy(budget_);
    }

    auto* buttons = new QDialogButtonBox(this);
    QPushButton* defaults_button = buttons->addButton(tr("Defaults"), QDialogButtonBox::ResetRole);
    buttons->addButton(tr("Cancel"), QDialogButtonBox::RejectRole);
    QPushButton* save = buttons->addButton(tr("Save"), QDialogButtonBox::AcceptRole);
    save->setProperty("kind", QStringLiteral("primary"));
    save->setDefault(true);
    column->addSpacing(4);
    column->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &SettingsDialog::reject);
    connect(defaults_button, &QPushButton::clicked, this, [this] { show(Preferences()); });
    show(preferences);
    connect(scheme_, &QComboBox::currentIndexChanged, this,
            [this] { theme_.setScheme(static_cast<Scheme>(scheme_->currentData().toInt())); });
}

void SettingsDialog::show(const Preferences& preferences) {
    scheme_->setCurrentIndex(scheme_->findData(static_cast<int>(preferences.scheme)));
    budget_->setValue(static_cast<int>(
        std::min<size_t>(preferences.budget_tokens.value_or(defaults_.budget_tokens), kMaxBudget)));
    threads_->setValue(static_cast<int>(
        std::min<size_t>(preferences.n_threads.value_or(defaults_.n_threads), kMaxThreads)));
    temperature_->setValue(preferences.temperature.value_or(defaults_.temperature));
    attention_->setCurrentIndex(
        attention_->findData(preferences.is_dense.value_or(defaults_.is_dense)));
}

Preferences SettingsDialog::preferences() const {
    // What equals the default is not pinned: it follows the config file.
    Preferences chosen;
    chosen.scheme = static_cast<Scheme>(scheme_->currentData().toInt());
    if (const auto budget = static_cast<size_t>(budget_->value());
        budget != defaults_.budget_tokens) {
        chosen.budget_tokens = budget;
    }
    if (const auto threads = static_cast<size_t>(threads_->value());
        threads != defaults_.n_threads) {
        chosen.n_threads = threads;
    }
    if (std::abs(temperature_->value() - defaults_.temperature) > 0.004) {
        chosen.temperature = temperature_->value();
    }
    if (const bool is_dense = attention_->currentData().toBool(); is_dense != defaults_.is_dense) {
        chosen.is_dense = is_dense;
    }
    return chosen;
}

void SettingsDialog::reject() {
    theme_.setScheme(before_.scheme);
    QDialog::reject();
}

}  // namespace belvedere::app
