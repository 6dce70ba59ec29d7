// SPDX-License-Identifier: Apache-2.0
#include "app/views/repository_picker.h"

#include <QDir>
#include <QFileInfo>
#include <QFontMetrics>

namespace belvedere::app {

namespace {

constexpr int kMaxRepositoryWidth = 200;

QString shortPath(const QString& path) {
    const QString home = QDir::homePath();
    return path.startsWith(home + QLatin1Char('/')) ? QLatin1Char('~') + path.mid(home.size())
                                                    : path;
}

}  // namespace

RepositoryPicker::RepositoryPicker(const Theme& theme,
                                   RepositoryService& repositories,
                                   const DesktopSettings& settings,
                                   QWidget* parent)
    : QToolButton(parent), theme_(theme), repositories_(repositories), settings_(settings) {
    menu_ = new QMenu(this);
    menu_->setToolTipsVisible(true);
    setMenu(menu_);
    setPopupMode(QToolButton::InstantPopup);
    setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    setAccessibleName(tr("Folder"));
    connect(menu_, &QMenu::aboutToShow, this, &RepositoryPicker::fillMenu);
    connect(&repositories, &RepositoryService::stateChanged, this, &RepositoryPicker::refresh);
    connect(&theme, &Theme::changed, this, &RepositoryPicker::refresh);
    refresh();
}

void RepositoryPicker::refresh() {
    const bool has_folder = repositories_.state() != RepositoryService::State::None;
    const QString text = has_folder ? repositories_.name() : tr("Open folder");
    // The space: beside an icon the style leaves too little.
    setText(QLatin1Char(' ') +
            QFontMetrics(font()).elidedText(text, Qt::ElideMiddle, kMaxRepositoryWidth));
    setIcon(theme_.icon(QStringLiteral("folder")));
    setToolTip(has_folder ? repositories_.path() : tr("Attach a folder of source files (Ctrl+O)"));
    setAccessibleDescription(has_folder ? repositories_.path() : tr("none attached"));
}

void RepositoryPicker::fillMenu() {
    menu_->clear();
    menu_->addAction(theme_.icon(QStringLiteral("folder")), tr("Open folder\u2026\tCtrl+O"), this,
                     &RepositoryPicker::openRequested);
    const QStringList folders = settings_.recentFolders();
    if (!folders.isEmpty()) {
        menu_->addSeparator();
    }
    for (const QString& path : folders) {
        const QString name = QFileInfo(path).fileName();
        QAction* action = menu_->addAction(name.isEmpty() ? path : name, this,
                                           [this, path] { Q_EMIT folderRequested(path); });
        action->setToolTip(shortPath(path));
        action->setCheckable(true);
        action->setChecked(path == repositories_.path());
    }
    if (repositories_.state() != RepositoryService::State::None) {
        menu_->addSeparator();
        menu_->addAction(theme_.icon(QStringLiteral("retry")), tr("Read again"), this,
                         [this] { Q_EMIT folderRequested(repositories_.path()); });
        menu_->addAction(theme_.icon(QStringLiteral("close")), tr("Detach"), this,
                         [this] { Q_EMIT folderRequested({}); });
    }
}

}  // namespace belvedere::app
