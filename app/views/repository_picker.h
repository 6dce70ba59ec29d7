// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which folder questions are about: a button with its name and a menu of recent and other folders.
// GUI thread only.

#include <QMenu>
#include <QToolButton>

#include "app/bridge/repository_service.h"
#include "app/desktop_settings.h"
#include "app/theme/theme.h"

namespace belvedere::app {

class RepositoryPicker : public QToolButton {
    Q_OBJECT

  public:
    RepositoryPicker(const Theme& theme,
                     RepositoryService& repositories,
                     const DesktopSettings& settings,
                     QWidget* parent);

  Q_SIGNALS:
    void folderRequested(const QString& path);  ///< empty: detach
    void openRequested();

  private:
    void refresh();
    void fillMenu();

    const Theme& theme_;
    RepositoryService& repositories_;
    const DesktopSettings& settings_;
    QMenu* menu_;
};

}  // namespace belvedere::app
