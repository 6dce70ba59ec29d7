// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which model answers: a button with its name, or how far loading has come, and a menu of the
// default, recent and other models. GUI thread only.

#include <QMenu>
#include <QToolButton>

#include "app/bridge/model_service.h"
#include "app/desktop_settings.h"
#include "app/theme/theme.h"

namespace belvedere::app {

/// Facts of a loaded model, a line each: family, weights, window, adapters, what it is bad at.
[[nodiscard]] QString modelFacts(const inference::ModelInfo& info);

class ModelPicker : public QToolButton {
    Q_OBJECT

  public:
    ModelPicker(const Theme& theme,
                ModelService& models,
                const DesktopSettings& settings,
                QWidget* parent);

  Q_SIGNALS:
    void defaultRequested();
    void recentRequested(const belvedere::inference::LoadRequest& request);
    void openRequested();
    void aboutRequested();

  private:
    void refresh();
    void fillMenu();

    const Theme& theme_;
    ModelService& models_;
    const DesktopSettings& settings_;
    QMenu* menu_;
};

}  // namespace belvedere::app
