// SPDX-License-Identifier: Apache-2.0
#pragma once

// The composition root of the window: settings, theme, store, agent, model, folder, window, built
// in this order and torn down in reverse. It knows who is told what; the work is done on the
// threads of the services. GUI thread only.

#include <QElapsedTimer>
#include <QObject>
#include <chrono>
#include <memory>

#include "agent/agent.h"
#include "app/bridge/agent_controller.h"
#include "app/bridge/event_bridge.h"
#include "app/bridge/model_service.h"
#include "app/bridge/repository_service.h"
#include "app/bridge/task_queue.h"
#include "app/config.h"
#include "app/desktop_backend.h"
#include "app/desktop_settings.h"
#include "app/headless/arguments.h"
#include "app/theme/system_scheme.h"
#include "app/theme/theme.h"
#include "app/views/main_window.h"

namespace belvedere::app {

struct DesktopOptions {
    Arguments arguments;  ///< --model, --adapter, --repo, --session and the engine's options
    bool is_startup_probe =
        false;  ///< print how long the start took and how much memory it holds, then end
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    QString settings_file;  ///< empty: the platform's place
};

class Application : public QObject {
    Q_OBJECT

  public:
    static Result<std::unique_ptr<Application>> create(DesktopOptions options,
                                                       Config config,
                                                       Backend backend);
    ~Application() override;

    /// Shows the window, then brings the store, the model and the folder.
    void start();

    [[nodiscard]] MainWindow& window() { return *window_; }

    /// nullptr until the store is open.
    [[nodiscard]] AgentController* controller() { return controller_.get(); }

    [[nodiscard]] ModelService& models() { return *models_; }

    [[nodiscard]] RepositoryService& repositories() { return *repositories_; }

    [[nodiscard]] DesktopSettings& settings() { return settings_; }

  Q_SIGNALS:
    /// The window is painted and its sessions can be used.
    void ready();

  private:
    Application(DesktopOptions options,
                Config config,
                Backend backend,
                std::unique_ptr<Theme> theme);

    void applyTheme();
    void connectServices();
    void openStore();
    void finishStore(Result<std::unique_ptr<agent::SessionStore>> store);
    /// The session of the command line, else the one of the last run.
    void restoreSession();
    void startModel();
    void onModelLoaded();
    void onRepositoryState();
    void onSessionOpened(const QString& id, const QString& repository);
    void onPreferences(const Preferences& preferences);
    void onPainted();

    [[nodiscard]] agent::AgentConfig agentConfig(const Preferences& preferences) const;
    [[nodiscard]] inference::EngineConfig engineConfig(const Preferences& preferences) const;
    [[nodiscard]] Preferences preferences() const;

    DesktopOptions options_;
    Config config_;
    Backend backend_;
    DesktopSettings settings_;
    std::unique_ptr<Theme> theme_;
    SystemScheme system_scheme_;
    EventBridge bridge_;
    std::unique_ptr<agent::SessionStore> store_;
    std::unique_ptr<agent::Agent> agent_;
    std::unique_ptr<ModelService> models_;
    std::unique_ptr<RepositoryService> repositories_;
    std::unique_ptr<AgentController> controller_;
    std::unique_ptr<MainWindow> window_;
    bool is_ready_ = false;
    TaskQueue store_queue_;  // last: joins before the state above dies
};

}  // namespace belvedere::app
