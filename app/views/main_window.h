// SPDX-License-Identifier: Apache-2.0
#pragma once

// The window: sessions and files at the left, the conversation in the middle, source at the right,
// the context below. Puts the views together and passes on what the user wants; the work is done by
// the services and the controller. GUI thread only.
//
// It is shown before there is a controller (the store is opened meanwhile) and lives without one
// where the store cannot be used.

#include <QMainWindow>
#include <QPointer>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>

#include "app/bridge/agent_controller.h"
#include "app/bridge/model_service.h"
#include "app/bridge/repository_service.h"
#include "app/desktop_settings.h"
#include "app/theme/theme.h"
#include "app/views/settings_dialog.h"

namespace belvedere::app {

class Composer;
class ContextMeter;
class EmptyPage;
class FirstRunPage;
class ModelPicker;
class NoticeArea;
class PermissionCard;
class RepositoryPanel;
class RepositoryPicker;
class SessionPanel;
class SourceView;
class Toast;
class TranscriptView;

/// What the window is made over; all outlive it.
struct WindowParts {
    Theme& theme;
    DesktopSettings& settings;
    ModelService& models;
    RepositoryService& repositories;
};

class MainWindow : public QMainWindow {
    Q_OBJECT

  public:
    explicit MainWindow(const WindowParts& parts);
    ~MainWindow() override;

    /// From now on sessions can be used. Outlives the window.
    void setController(AgentController& controller);
    /// The sessions cannot be used: says why, with a button to try again.
    void showStoreError(const Error& error);
    /// A card above the conversation.
    void showError(const QString& key, const Error& error, const QString& what);
    void showWarning(const QString& key, const QString& title, const QString& detail);

    void setPreferenceDefaults(const PreferenceDefaults& defaults) { defaults_ = defaults; }

    void attachFolder(const QString& path);
    /// Lines [first, last] of a file of the folder in the source view.
    void openSource(const QString& path, size_t first_line, size_t last_line);

  Q_SIGNALS:
    void storeRetryRequested();
    void preferencesChanged(const belvedere::app::Preferences& preferences);
    /// After each painting of the whole window.
    void painted();

  protected:
    void closeEvent(QCloseEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

  private:
    QWidget* makeSidebar();
    QWidget* makeConversation();
    QWidget* makeHeader(QWidget* parent);
    void connectViews();
    void connectServices();
    void makeActions();
    QMenu* makeMenu();
    void updateIcons();
    void restoreGeometryOf();
    void saveGeometryOf();

    void onTranscriptChanged();
    void onModelState();
    void onRepositoryState();
    /// Which page stands in the middle, what it says, and whether a message can be sent.
    void refreshPage();
    /// The keyboard is on the pages in the middle or the composer, not in the sidebar.
    [[nodiscard]] bool isFocusOfPages() const;
    void refreshComposer();
    void refreshTitle();
    void setSidebarVisible(bool is_visible);
    void closeSource();
    void openLink(const QString& address);
    /// A file of the folder in the program the system has for it.
    void openOutside(const QString& path);
    /// Sends the last question again.
    void retry();

    void chooseFolder();
    void chooseModel();
    void showSettings();
    void showAboutModel();
    void showAbout();
    void copyLog();
    void deleteSession(const QString& id);

    WindowParts parts_;
    PreferenceDefaults defaults_;
    QPointer<AgentController> controller_;
    QSplitter* splitter_;
    QSplitter* sidebar_splitter_;
    QWidget* sidebar_;
    SessionPanel* sessions_;
    RepositoryPanel* repository_panel_;
    QToolButton* sidebar_button_;
    RepositoryPicker* repository_picker_;
    ModelPicker* model_picker_;
    QToolButton* menu_button_;
    NoticeArea* notices_;
    QStackedWidget* pages_;
    TranscriptView* transcript_view_;
    EmptyPage* empty_page_;
    FirstRunPage* first_run_page_;
    PermissionCard* permission_card_;
    Composer* composer_;
    SourceView* source_view_;
    ContextMeter* meter_;
    Toast* toast_;
    bool sidebar_hidden_for_source_ = false;
    bool store_failed_ = false;
    bool has_chosen_setup_ = false;  ///< the user asked for the page of models
};

}  // namespace belvedere::app
