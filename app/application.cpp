// SPDX-License-Identifier: Apache-2.0
#include "app/application.h"

#include <QApplication>
#include <QFileInfo>
#include <utility>

#include "app/bridge/error_text.h"
#include "app/bridge/text.h"
#include "app/startup_probe.h"
#include "app/views/accessible.h"
#include "kernels/base/log.h"

namespace belvedere::app {

namespace {

const QString kLastSession = QStringLiteral("session/last");
const QString kLastFolder = QStringLiteral("folders/last");

Scheme schemeOf(Appearance appearance) {
    switch (appearance) {
        case Appearance::Light:
            return Scheme::Light;
        case Appearance::Dark:
            return Scheme::Dark;
        case Appearance::System:
            break;
    }
    return Scheme::System;
}

}  // namespace

Result<std::unique_ptr<Application>> Application::create(DesktopOptions options,
                                                         Config config,
                                                         Backend backend) {
    std::unique_ptr<Theme> theme = BV_TRY(Theme::load());
    return std::unique_ptr<Application>(new Application(std::move(options), std::move(config),
                                                        std::move(backend), std::move(theme)));
}

Application::Application(DesktopOptions options,
                         Config config,
                         Backend backend,
                         std::unique_ptr<Theme> theme)
    : options_(std::move(options)),
      config_(std::move(config)),
      backend_(std::move(backend)),
      settings_(options_.settings_file),
      theme_(std::move(theme)) {
    openStore();  // its thread works while the window is made
    installAccessibility();
    theme_->setSystemDark(SystemScheme::guessDark());
    theme_->setScheme(preferences().scheme);
    applyTheme();
    models_ = std::make_unique<ModelService>(backend_.models, engineConfig(preferences()));
    repositories_ = std::make_unique<RepositoryService>(backend_.attach);
    window_ =
        std::make_unique<MainWindow>(WindowParts{*theme_, settings_, *models_, *repositories_});
    window_->setPreferenceDefaults({config_.agent.source_budget_tokens, config_.engine.n_threads,
                                    static_cast<double>(config_.agent.generation.temperature),
                                    config_.engine.attention == inference::Attention::Dense});
    connectServices();
}

Application::~Application() = default;

void Application::applyTheme() {
    QApplication::setPalette(theme_->palette());
    QApplication::setFont(theme_->font(Text::Ui));
    qApp->setStyleSheet(theme_->styleSheet());
}

void Application::connectServices() {
    connect(theme_.get(), &Theme::changed, this, &Application::applyTheme);
    connect(&system_scheme_, &SystemScheme::darkChanged, theme_.get(), &Theme::setSystemDark);
    connect(models_.get(), &ModelService::loadedChanged, this, &Application::onModelLoaded);
    connect(repositories_.get(), &RepositoryService::stateChanged, this,
            &Application::onRepositoryState);
    connect(window_.get(), &MainWindow::storeRetryRequested, this, &Application::openStore);
    connect(window_.get(), &MainWindow::preferencesChanged, this, &Application::onPreferences);
    connect(window_.get(), &MainWindow::painted, this, &Application::onPainted);
}

void Application::start() {
    window_->show();
    system_scheme_.watch();
    if (!config_.warnings.empty()) {
        QStringList lines;
        for (const std::string& warning : config_.warnings) {
            lines += sentence(warning);
        }
        window_->showWarning(QStringLiteral("config"), tr("The config file was read with remarks"),
                             lines.join(QLatin1Char('\n')));
    }
    startModel();
    if (!options_.arguments.repository.empty()) {
        window_->attachFolder(qstring(options_.arguments.repository));
    }
}

void Application::startModel() {
    inference::LoadRequest request;
    const std::vector<RecentModel> recent = settings_.recentModels();
    if (!options_.arguments.model.empty()) {
        request = {options_.arguments.model, options_.arguments.adapters};
    } else if (settings_.usesRecentModel() && !recent.empty()) {
        request = recent.front().request;
    } else if (!config_.model.empty()) {
        request = {config_.model.string(), config_.adapters};
    }
    if (!request.model_path.empty()) {
        models_->load(request);
        models_->refreshDefault();
        return;
    }
    // Once it is known whether the default model is there.
    connect(
        models_.get(), &ModelService::defaultChanged, this,
        [this] {
            const auto& model = models_->defaultModel();
            if (model && model->is_installed && models_->state() == ModelService::State::None) {
                models_->loadDefault();
            }
        },
        Qt::SingleShotConnection);
    models_->refreshDefault();
}

void Application::openStore() {
    runTask(
        store_queue_, this, [open = backend_.open_store](std::stop_token) { return open(); },
        [this](Result<std::unique_ptr<agent::SessionStore>> store) {
            finishStore(std::move(store));
        });
}

void Application::finishStore(Result<std::unique_ptr<agent::SessionStore>> store) {
    if (!store) {
        window_->showStoreError(store.error());
        return;
    }
    store_ = std::move(*store);
    agent_ = agent::Agent::create(agentConfig(preferences()), *store_, bridge_);
    controller_ = std::make_unique<AgentController>(*agent_, *store_, bridge_);
    connect(controller_.get(), &AgentController::sessionOpened, this,
            &Application::onSessionOpened);
    connect(controller_.get(), &AgentController::sessionsListed, this, &Application::restoreSession,
            Qt::SingleShotConnection);
    if (models_->loaded()) {
        controller_->setModel(models_->loaded()->model);
    }
    onRepositoryState();
    window_->setController(*controller_);
    controller_->refreshSessions();
    window_->update();  // the next painting shows a window that can be used
}

void Application::restoreSession() {
    QString id = qstring(options_.arguments.session);
    if (!id.isEmpty()) {
        controller_->openSession(id);  // one that does not exist is told
        return;
    }
    id = settings_.value(kLastSession).toString();
    if (controller_->sessions()->find(id) != nullptr) {
        controller_->openSession(id);
    } else if (options_.arguments.repository.empty()) {
        const QString folder = settings_.value(kLastFolder).toString();
        if (!folder.isEmpty() && QFileInfo(folder).isDir()) {
            window_->attachFolder(folder);
        }
    }
}

void Application::onModelLoaded() {
    const LoadedModel& loaded = *models_->loaded();
    if (controller_ != nullptr) {
        controller_->setModel(loaded.model);
    }
    repositories_->setCounter(loaded.model->tokenCounter());
    const auto& known = models_->defaultModel();
    const bool is_default = known && known->path == qstring(loaded.info.path);
    if (options_.arguments.model.empty() || loaded.info.path != options_.arguments.model) {
        settings_.setUsesRecentModel(!is_default && loaded.info.path != config_.model.string());
    }
    if (!is_default) {
        settings_.addRecentModel(
            {qstring(loaded.info.name), {loaded.info.path, loaded.info.adapters}});
    }
}

void Application::onRepositoryState() {
    if (controller_ != nullptr) {
        controller_->setFolder(repositories_->path(), repositories_->folder());
    }
    if (repositories_->state() == RepositoryService::State::Ready) {
        settings_.addRecentFolder(repositories_->path());
    }
    settings_.setValue(kLastFolder, repositories_->path());
}

void Application::onSessionOpened(const QString& id, const QString& repository) {
    settings_.setValue(kLastSession, id);
    // The folder of the command line replaces that of the first session; a new session takes the
    // one that is there.
    const bool is_named = !std::exchange(options_.arguments.repository, {}).empty();
    if (is_named || id.isEmpty() || repository == repositories_->path()) {
        controller_->setFolder(repositories_->path(), repositories_->folder());
    } else {
        repositories_->attach(repository);
    }
}

void Application::onPreferences(const Preferences& chosen) {
    const Preferences before = preferences();
    settings_.setPreferences(chosen);
    theme_->setScheme(chosen.scheme);
    if (controller_ != nullptr) {
        controller_->setConfig(agentConfig(chosen));
    }
    models_->setEngineConfig(engineConfig(chosen));
    const inference::EngineConfig old_engine = engineConfig(before);
    const inference::EngineConfig new_engine = engineConfig(chosen);
    if (models_->loaded() && (old_engine.n_threads != new_engine.n_threads ||
                              old_engine.attention != new_engine.attention)) {
        const inference::ModelInfo& info = models_->loaded()->info;
        models_->load({info.path, info.adapters});
    }
}

Preferences Application::preferences() const {
    return settings_.preferences(schemeOf(config_.appearance));
}

agent::AgentConfig Application::agentConfig(const Preferences& chosen) const {
    agent::AgentConfig config = config_.agent;
    if (chosen.budget_tokens && !options_.arguments.budget) {
        config.source_budget_tokens = *chosen.budget_tokens;
    }
    if (chosen.temperature && !options_.arguments.temperature) {
        config.generation.temperature = static_cast<float>(*chosen.temperature);
    }
    return config;
}

inference::EngineConfig Application::engineConfig(const Preferences& chosen) const {
    inference::EngineConfig config = config_.engine;
    if (chosen.n_threads && !options_.arguments.n_threads) {
        config.n_threads = *chosen.n_threads;
    }
    if (chosen.is_dense && !options_.arguments.attention) {
        config.attention =
            *chosen.is_dense ? inference::Attention::Dense : inference::Attention::Msa;
    }
    return config;
}

void Application::onPainted() {
    if (is_ready_ || controller_ == nullptr) {
        return;
    }
    is_ready_ = true;
    if (options_.is_startup_probe) {
        reportStartup(options_.start);
    }
    Q_EMIT ready();
}

}  // namespace belvedere::app
