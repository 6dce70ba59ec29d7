// SPDX-License-Identifier: Apache-2.0
#include "app/theme/system_scheme.h"

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QDir>
#include <QGuiApplication>
#include <QPalette>
#include <QSettings>
#include <QStandardPaths>

namespace belvedere::app {

namespace {

constexpr auto kService = "org.freedesktop.portal.Desktop";
constexpr auto kPath = "/org/freedesktop/portal/desktop";
constexpr auto kInterface = "org.freedesktop.portal.Settings";
constexpr auto kGroup = "org.freedesktop.appearance";
constexpr auto kKey = "color-scheme";
constexpr uint kPreferDark = 1;

}  // namespace

SystemScheme::SystemScheme(QObject* parent) : QObject(parent) {}

bool SystemScheme::guessDark() {
    const QString gtk_theme = qEnvironmentVariable("GTK_THEME").toLower();
    if (!gtk_theme.isEmpty()) {
        return gtk_theme.endsWith(QLatin1String("dark"));
    }
    const QString file = QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation) +
                         QStringLiteral("/gtk-3.0/settings.ini");
    if (QFile::exists(file)) {
        const QSettings settings(file, QSettings::IniFormat);
        const QString key = QStringLiteral("Settings/gtk-application-prefer-dark-theme");
        const QString theme =
            settings.value(QStringLiteral("Settings/gtk-theme-name")).toString().toLower();
        if (settings.value(key).toString() == QLatin1String("1") || settings.value(key).toBool() ||
            theme.endsWith(QLatin1String("dark"))) {
            return true;
        }
    }
    const QPalette palette = QGuiApplication::palette();
    return palette.color(QPalette::Window).lightness() <
           palette.color(QPalette::WindowText).lightness();
}

void SystemScheme::watch() {
    if (qEnvironmentVariableIsEmpty("DBUS_SESSION_BUS_ADDRESS")) {
        return;  // connecting would start a bus of its own
    }
    QDBusConnection bus = QDBusConnection::sessionBus();
    if (!bus.isConnected()) {
        return;
    }
    bus.connect(QLatin1String(kService), QLatin1String(kPath), QLatin1String(kInterface),
                QStringLiteral("SettingChanged"), this,
                SLOT(onSettingChanged(QString, QString, QDBusVariant)));
    QDBusMessage call =
        QDBusMessage::createMethodCall(QLatin1String(kService), QLatin1String(kPath),
                                       QLatin1String(kInterface), QStringLiteral("Read"));
    call << QString(QLatin1String(kGroup)) << QString(QLatin1String(kKey));
    auto* watcher = new QDBusPendingCallWatcher(bus.asyncCall(call, 2000), this);
    connect(watcher, &QDBusPendingCallWatcher::finished, this, [this, watcher] {
        const QDBusPendingReply<QDBusVariant> reply = *watcher;
        if (!reply.isError()) {
            apply(reply.value().variant());
        }
        watcher->deleteLater();
    });
}

void SystemScheme::onSettingChanged(const QString& group,
                                    const QString& key,
                                    const QDBusVariant& value) {
    if (group == QLatin1String(kGroup) && key == QLatin1String(kKey)) {
        apply(value.variant());
    }
}

void SystemScheme::apply(const QVariant& value) {
    // Read wraps the number once more than SettingChanged does.
    const QVariant inner =
        value.canConvert<QDBusVariant>() ? value.value<QDBusVariant>().variant() : value;
    bool is_number = false;
    const uint scheme = inner.toUInt(&is_number);
    if (is_number && scheme != 0) {  // 0: no preference, keep the guess
        Q_EMIT darkChanged(scheme == kPreferDark);
    }
}

}  // namespace belvedere::app
