// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the window remembers between two runs: the user's preferences, recent models and folders,
// the last session, its own geometry. An INI file of Qt's in the config folder; the program's
// config file stays the user's own. GUI thread only.

#include <QByteArray>
#include <QSettings>
#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <vector>

#include "app/theme/theme.h"
#include "inference/engine.h"

namespace belvedere::app {

/// What the settings dialog changes. An empty value: what the config file says.
struct Preferences {
    Scheme scheme = Scheme::System;
    std::optional<size_t> budget_tokens;
    std::optional<size_t> n_threads;
    std::optional<double> temperature;
    std::optional<bool> is_dense;  ///< layers with an MSA index attend to everything

    bool operator==(const Preferences&) const = default;
};

struct RecentModel {
    QString name;
    inference::LoadRequest request;
};

class DesktopSettings {
  public:
    /// Empty: the platform's place for the user's settings.
    explicit DesktopSettings(const QString& file = {});

    [[nodiscard]] Preferences preferences(Scheme default_scheme) const;
    void setPreferences(const Preferences& preferences);

    /// Newest first; the default model is not among them.
    [[nodiscard]] std::vector<RecentModel> recentModels() const;
    void addRecentModel(const RecentModel& model);
    /// True where the user's last choice was a file of his own: the first of recentModels().
    [[nodiscard]] bool usesRecentModel() const;
    void setUsesRecentModel(bool uses);

    [[nodiscard]] QStringList recentFolders() const;  ///< newest first
    void addRecentFolder(const QString& path);

    /// Anything else by name: "window/geometry", "session/last".
    [[nodiscard]] QVariant value(const QString& key, const QVariant& fallback = {}) const {
        return settings_->value(key, fallback);
    }

    void setValue(const QString& key, const QVariant& value) { settings_->setValue(key, value); }

  private:
    std::unique_ptr<QSettings> settings_;
};

}  // namespace belvedere::app
