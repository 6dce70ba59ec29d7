// SPDX-License-Identifier: Apache-2.0
#pragma once

// The few settings a person changes in the window. Appearance is shown while it is chosen; the rest
// holds from "Save" on. GUI thread only.

#include <QComboBox>
#include <QDialog>
#include <QDoubleSpinBox>
#include <QSpinBox>

#include "app/desktop_settings.h"
#include "app/theme/theme.h"

namespace belvedere::app {

/// What is in force where the user has not chosen.
struct PreferenceDefaults {
    size_t budget_tokens = 0;
    size_t n_threads = 0;
    double temperature = 0;
    bool is_dense = false;
};

class SettingsDialog : public QDialog {
    Q_OBJECT

  public:
    SettingsDialog(Theme& theme,
                   const Preferences& preferences,
                   const PreferenceDefaults& defaults,
                   QWidget* parent);

    [[nodiscard]] Preferences preferences() const;

    void reject() override;

  private:
    void show(const Preferences& preferences);

    Theme& theme_;
    Preferences before_;
    PreferenceDefaults defaults_;
    QComboBox* scheme_;
    QSpinBox* budget_;
    QSpinBox* threads_;
    QDoubleSpinBox* temperature_;
    QComboBox* attention_;
};

}  // namespace belvedere::app
