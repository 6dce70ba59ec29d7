// SPDX-License-Identifier: Apache-2.0
#pragma once

// Does the desktop prefer dark? Qt 6.4 does not say, so: the desktop portal's "color-scheme"
// (org.freedesktop.appearance), which also tells of changes; before it answers, and without a
// session bus, GTK's settings and the brightness of the palette. GUI thread only.

#include <QDBusVariant>
#include <QObject>
#include <QVariant>

namespace belvedere::app {

class SystemScheme : public QObject {
    Q_OBJECT

  public:
    explicit SystemScheme(QObject* parent = nullptr);

    /// The best guess without waiting. Call before a palette of our own is set.
    [[nodiscard]] static bool guessDark();

    /// Asks the portal; the answer comes as darkChanged().
    void watch();

  Q_SIGNALS:
    void darkChanged(bool is_dark);

  private Q_SLOTS:
    void onSettingChanged(const QString& group, const QString& key, const QDBusVariant& value);

  private:
    void apply(const QVariant& value);
};

}  // namespace belvedere::app
