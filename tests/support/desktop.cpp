// SPDX-License-Identifier: Apache-2.0
#include "tests/support/desktop.h"

#include <QTest>
#include <cstdlib>

#include "app/bridge/text.h"

namespace belvedere::testing {

namespace {

constexpr int kPatienceMs = 60'000;

agent::ModelDescription describeModel() {
    agent::ModelDescription description;
    description.name = "Scripted model";
    description.window_tokens = 32'768;
    description.tool_calls = agent::ToolCallFormat::Hermes;
    description.has_native_tools = true;
    return description;
}

}  // namespace

bool waitUntil(const std::function<bool()>& condition) {
    return QTest::qWaitFor(condition, kPatienceMs);
}

void prepareApplication() {
    QApplication::setApplicationName(QStringLiteral("belvedere"));
    QApplication::setStyle(QStringLiteral("Fusion"));
}

Desktop::Desktop(const DesktopSetup& setup)
    : setup_(setup), model_(std::make_shared<FakeLanguageModel>(describeModel())) {
    const std::filesystem::path data = dir_.path() / "data";
    std::filesystem::create_directories(data);
    if (setup.uses_real_model) {
        const char* home = std::getenv("HOME");
        std::filesystem::create_directory_symlink(
            std::filesystem::path(home == nullptr ? "" : home) / ".local/share/belvedere/models",
            data / "models");
    }
    setenv("BV_DATA_DIR", data.c_str(), 1);
    dir_.write("folder/src/pages.h",
               "#pragma once\n\n/// Tokens in one page of the cache.\n"
               "inline constexpr int kPageTokens = 128;\n\n"
               "/// Pages that hold n tokens.\nint pagesFor(int n_tokens);\n");
    dir_.write("folder/src/pages.cpp",
               "#include \"pages.h\"\n\nint pagesFor(int n_tokens) {\n"
               "    return (n_tokens + kPageTokens - 1) / kPageTokens;\n}\n");
    dir_.write("folder/README.md", "# Pages\n\nHow the cache is cut into pages.\n");
}

Desktop::~Desktop() {
    close();
}

QString Desktop::folder() const {
    return app::qstring((dir_.path() / "folder").string());
}

app::Backend Desktop::backend(const app::Config& config) {
    app::Backend backend = app::makeBackend(config);
    if (setup_.uses_real_model) {
        return backend;
    }
    const auto describe = backend.models.describe_default;
    backend.models.describe_default = [describe, has_model = setup_.has_model] {
        Result<app::DefaultModel> model = describe();
        if (model.has_value()) {
            model->is_installed = has_model;
        }
        return model;
    };
    backend.models.default_request = []() -> Result<inference::LoadRequest> {
        return inference::LoadRequest{"scripted.gguf", {}};
    };
    backend.models.load = [model = model_](const inference::LoadRequest& request,
                                           const inference::EngineConfig&,
                                           const inference::LoadProgress&,
                                           std::stop_token) -> Result<app::LoadedModel> {
        app::LoadedModel loaded{model, {}};
        loaded.info.path = request.model_path;
        loaded.info.name = "Scripted model";
        loaded.info.context_tokens = model->description().window_tokens;
        return loaded;
    };
    return backend;
}

bool Desktop::start() {
    app::Config config;
    config.appearance = setup_.is_dark ? app::Appearance::Dark : app::Appearance::Light;
    app::DesktopOptions options;
    options.settings_file = app::qstring((dir_.path() / "settings.ini").string());
    if (setup_.has_folder) {
        options.arguments.repository = (dir_.path() / "folder").string();
    }
    auto application = app::Application::create(options, config, backend(config));
    if (!application.has_value()) {
        return false;
    }
    application_ = std::move(*application);
    bool is_ready = false;
    QObject::connect(application_.get(), &app::Application::ready,
                     [&is_ready] { is_ready = true; });
    application_->start();
    return waitUntil([&] {
        const bool has_model = !setup_.has_model || application_->models().loaded().has_value();
        const bool has_folder =
            !setup_.has_folder || !setup_.has_model ||
            application_->repositories().state() == app::RepositoryService::State::Ready;
        return is_ready && has_model && has_folder;
    });
}

void Desktop::close() {
    if (application_ != nullptr) {
        application_->window().close();
        application_.reset();
    }
}

}  // namespace belvedere::testing
