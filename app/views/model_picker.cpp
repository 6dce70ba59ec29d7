// SPDX-License-Identifier: Apache-2.0
#include "app/views/model_picker.h"

#include <QFileInfo>
#include <QFontMetrics>
#include <QLocale>

#include "app/bridge/text.h"

namespace belvedere::app {

namespace {

constexpr int kMaxNameWidth = 280;

}  // namespace

QString modelFacts(const inference::ModelInfo& info) {
    const auto tr = [](const char* text) {
        return QCoreApplication::translate("ModelPicker", text);
    };
    QStringList lines;
    lines += tr("%1, %2 million parameters")
                 .arg(qstring(info.architecture), countText(info.n_parameters / 1'000'000));
    lines += tr("Weights: %1").arg(qstring(info.weight_types));
    lines += tr("Window: %1 tokens").arg(countText(info.context_tokens));
    lines += tr("Chat template: %1").arg(qstring(info.chat_template));
    lines += tr("Memory: %1 beside the file of %2")
                 .arg(bytesText(info.resident_bytes), bytesText(info.file_bytes));
    lines += tr("Runs on %1, %2 threads")
                 .arg(qstring(info.instruction_set), QString::number(info.n_threads));
    lines += tr("File: %1").arg(qstring(info.path));
    for (const inference::AdapterFile& adapter : info.adapters) {
        lines +=
            tr("Adapter: %1, scale %2")
                .arg(qstring(adapter.path), QLocale().toString(static_cast<double>(adapter.scale)));
    }
    for (const std::string& notice : info.notices) {
        lines += tr("Note: %1").arg(qstring(notice));
    }
    return lines.join(QLatin1Char('\n'));
}

ModelPicker::ModelPicker(const Theme& theme,
                         ModelService& models,
                         const DesktopSettings& settings,
                         QWidget* parent)
    : QToolButton(parent), theme_(theme), models_(models), settings_(settings) {
    menu_ = new QMenu(this);
    menu_->setToolTipsVisible(true);
    setMenu(menu_);
    setPopupMode(QToolButton::InstantPopup);
    setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    setAccessibleName(tr("Model"));
    connect(menu_, &QMenu::aboutToShow, this, &ModelPicker::fillMenu);
    connect(&models, &ModelService::stateChanged, this, &ModelPicker::refresh);
    connect(&models, &ModelService::progressChanged, this, &ModelPicker::refresh);
    connect(&models, &ModelService::loadedChanged, this, &ModelPicker::refresh);
    connect(&models, &ModelService::defaultChanged, this, &ModelPicker::refresh);
    connect(&theme, &Theme::changed, this, &ModelPicker::refresh);
    refresh();
}

void ModelPicker::refresh() {
    const auto& loaded = models_.loaded();
    QString text = loaded ? models_.name() : tr("No model");
    if (models_.isBusy()) {
        const int percent = static_cast<int>(models_.fraction() * 100);
        text = models_.state() == ModelService::State::Fetching
                   ? tr("Getting model, %1 %").arg(percent)
                   : tr("Loading model, %1 %").arg(percent);
    }
    // The space: beside an icon the style leaves too little.
    setText(QLatin1Char(' ') +
            QFontMetrics(font()).elidedText(text, Qt::ElideRight, kMaxNameWidth));
    setIcon(theme_.icon(QStringLiteral("model")));
    setToolTip(loaded ? QStringLiteral("%1\n%2").arg(models_.name(), modelFacts(loaded->info))
                      : tr("No model is loaded"));
    setAccessibleDescription(text);
}

void ModelPicker::fillMenu() {
    menu_->clear();
    if (models_.isBusy()) {
        menu_->addAction(theme_.icon(QStringLiteral("stop")), tr("Cancel loading"), &models_,
                         &ModelService::cancel);
        menu_->addSeparator();
    }
    const std::string loaded_path = models_.loaded() ? models_.loaded()->info.path : std::string();
    if (const auto& model = models_.defaultModel()) {
        QAction* action = menu_->addAction(
            model->is_installed ? tr("Default: %1").arg(model->name)
                                : tr("Default: %1 (download %2)")
                                      .arg(model->name, bytesText(model->n_bytes_to_fetch)),
            this, &ModelPicker::defaultRequested);
        action->setToolTip(model->summary);
        action->setCheckable(true);
        action->setChecked(qstring(loaded_path) == model->path);
    }
    for (const RecentModel& recent : settings_.recentModels()) {
        QAction* action = menu_->addAction(recent.name, this, [this, request = recent.request] {
            Q_EMIT recentRequested(request);
        });
        action->setToolTip(qstring(recent.request.model_path));
        action->setCheckable(true);
        action->setChecked(recent.request.model_path == loaded_path);
    }
    menu_->addSeparator();
    menu_->addAction(theme_.icon(QStringLiteral("folder")), tr("Open model file\u2026"), this,
                     &ModelPicker::openRequested);
    if (models_.loaded()) {
        menu_->addAction(theme_.icon(QStringLiteral("info")), tr("About this model\u2026"), this,
                         &ModelPicker::aboutRequested);
    }
}

}  // namespace belvedere::app
