// SPDX-License-Identifier: Apache-2.0
#include "app/desktop_settings.h"

#include <algorithm>

#include "app/bridge/text.h"

namespace belvedere::app {

namespace {

constexpr qsizetype kMaxRecent = 8;

QString schemeName(Scheme scheme) {
    switch (scheme) {
        case Scheme::Light:
            return QStringLiteral("light");
        case Scheme::Dark:
            return QStringLiteral("dark");
        case Scheme::System:
            break;
    }
    return QStringLiteral("system");
}

/// A number in [low, high]; anything else counts as not set.
template <class T>
std::optional<T> numberIn(const QVariant& value, double low, double high) {
    bool is_number = false;
    const double number = value.toDouble(&is_number);
    if (!is_number || !(number >= low && number <= high)) {
        return std::nullopt;
    }
    return static_cast<T>(number);
}

template <class T>
void setOptional(QSettings& settings, const QString& key, const std::optional<T>& value) {
    if (value) {
        settings.setValue(key, QString::number(*value));
    } else {
        settings.remove(key);
    }
}

}  // namespace

DesktopSettings::DesktopSettings(const QString& file)
    : settings_(file.isEmpty() ? std::make_unique<QSettings>(QSettings::IniFormat,
                                                             QSettings::UserScope,
                                                             QStringLiteral("belvedere"),
                                                             QStringLiteral("window"))
                               : std::make_unique<QSettings>(file, QSettings::IniFormat)) {}

Preferences DesktopSettings::preferences(Scheme default_scheme) const {
    Preferences preferences;
    const QString scheme = value(QStringLiteral("preferences/scheme")).toString();
    preferences.scheme = scheme.isEmpty() ? default_scheme : Scheme::System;
    for (const Scheme known : {Scheme::Light, Scheme::Dark}) {
        if (scheme == schemeName(known)) {
            preferences.scheme = known;
        }
    }
    preferences.budget_tokens =
        numberIn<size_t>(value(QStringLiteral("preferences/budget_tokens")), 1, 1e9);
    preferences.n_threads = numberIn<size_t>(value(QStringLiteral("preferences/threads")), 0, 1024);
    preferences.temperature =
        numberIn<double>(value(QStringLiteral("preferences/temperature")), 0, 2);
    preferences.is_dense = numberIn<bool>(value(QStringLiteral("preferences/dense")), 0, 1);
    return preferences;
}

void DesktopSettings::setPreferences(const Preferences& preferences) {
    settings_->setValue(QStringLiteral("preferences/scheme"), schemeName(preferences.scheme));
    setOptional(*settings_, QStringLiteral("preferences/budget_tokens"), preferences.budget_tokens);
    setOptional(*settings_, QStringLiteral("preferences/threads"), preferences.n_threads);
    setOptional(*settings_, QStringLiteral("preferences/temperature"), preferences.temperature);
    setOptional(*settings_, QStringLiteral("preferences/dense"), preferences.is_dense);
}

std::vector<RecentModel> DesktopSettings::recentModels() const {
    std::vector<RecentModel> models;
    const int n_models = settings_->beginReadArray(QStringLiteral("models"));
    for (int i = 0; i < n_models; ++i) {
        settings_->setArrayIndex(i);
        RecentModel model;
        model.name = value(QStringLiteral("name")).toString();
        model.request.model_path = utf8(value(QStringLiteral("path")).toString());
        for (const QVariant& entry : value(QStringLiteral("adapters")).toList()) {
            const QVariantMap adapter = entry.toMap();
            model.request.adapters.push_back(
                {utf8(adapter.value(QStringLiteral("path")).toString()),
                 adapter.value(QStringLiteral("scale")).toFloat()});
        }
        if (!model.request.model_path.empty()) {
            models.push_back(std::move(model));
        }
    }
    settings_->endArray();
    return models;
}

void DesktopSettings::addRecentModel(const RecentModel& model) {
    std::vector<RecentModel> models = recentModels();
    std::erase_if(models, [&](const RecentModel& known) {
        return known.request.model_path == model.request.model_path;
    });
    models.insert(models.begin(), model);
    const int n_models = static_cast<int>(std::min<qsizetype>(kMaxRecent, std::ssize(models)));
    settings_->beginWriteArray(QStringLiteral("models"), n_models);
    for (int i = 0; i < n_models; ++i) {
        const RecentModel& recent = models[static_cast<size_t>(i)];
        settings_->setArrayIndex(i);
        settings_->setValue(QStringLiteral("name"), recent.name);
        settings_->setValue(QStringLiteral("path"), qstring(recent.request.model_path));
        QVariantList adapters;
        for (const inference::AdapterFile& adapter : recent.request.adapters) {
            adapters += QVariantMap{{QStringLiteral("path"), qstring(adapter.path)},
                                    {QStringLiteral("scale"), adapter.scale}};
        }
        settings_->setValue(QStringLiteral("adapters"), adapters);
    }
    settings_->endArray();
}

bool DesktopSettings::usesRecentModel() const {
    return value(QStringLiteral("model/uses_recent"), false).toBool();
}

void DesktopSettings::setUsesRecentModel(bool uses) {
    setValue(QStringLiteral("model/uses_recent"), uses);
}

QStringList DesktopSettings::recentFolders() const {
    return value(QStringLiteral("folders/recent")).toStringList();
}

void DesktopSettings::addRecentFolder(const QString& path) {
    QStringList folders = recentFolders();
    folders.removeAll(path);
    folders.prepend(path);
    setValue(QStringLiteral("folders/recent"), folders.mid(0, kMaxRecent));
}

}  // namespace belvedere::app
