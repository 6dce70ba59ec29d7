// SPDX-License-Identifier: Apache-2.0
#include "app/desktop_main.h"

#include <QApplication>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <unistd.h>

#include "app/application.h"
#include "app/bridge/text.h"
#include "app/headless/paths.h"
#include "app/headless/runtime.h"
#include "kernels/base/log.h"

namespace belvedere::app {

namespace {

constexpr const char* kHelp =
    R"(belvedere-desktop: the window of Belvedere

  --model FILE            a GGUF file or a checkpoint folder; without it the last one used, else the default one
  --adapter FILE[:scale]  a LoRA adapter in GGUF; may be repeated
  --repo PATH             the folder that questions are about
  --session ID            open this session; without it the last one
  --budget N, --context N, --threads N, --max-tokens N, --temperature T, --seed N
  --startup-probe         print how long the start took and how much memory is in use, then end
)";

int complain(const std::string& what, int code) {
    fmt::print(stderr, "belvedere-desktop: {}\n", what);
    return code;
}

/// Qt's messages go where ours go. A fatal one (no display that answers) ends with one line and no
/// core.
void onQtMessage(QtMsgType type, const QMessageLogContext& /*context*/, const QString& message) {
    const std::string text = utf8(message.simplified());
    switch (type) {
        case QtDebugMsg:
            BV_LOG(LogLevel::Debug, "qt", "{}", text);
            return;
        case QtInfoMsg:
            BV_LOG(LogLevel::Info, "qt", "{}", text);
            return;
        case QtWarningMsg:
            BV_LOG(LogLevel::Warn, "qt", "{}", text);
            return;
        case QtCriticalMsg:
            BV_LOG(LogLevel::Error, "qt", "{}", text);
            return;
        case QtFatalMsg:
            _exit(complain(text + ": belvedere chat works in the terminal", 1));
    }
}

bool hasDisplay() {
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) {
        const char* value = std::getenv(name);
        if (value != nullptr && *value != '\0') {
            return true;
        }
    }
    return false;
}

Result<DesktopOptions> parseOptions(const std::vector<std::string>& words) {
    DesktopOptions options;
    std::vector<std::string> rest;
    for (const std::string& word : words) {
        if (word == "--startup-probe") {
            options.is_startup_probe = true;
        } else {
            rest.push_back(word);
        }
    }
    options.arguments = BV_TRY(parseArguments(rest));
    if (!options.arguments.command.empty()) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: the window has no commands: see --help, or belvedere --help",
                    options.arguments.command);
    }
    return options;
}

/// The config file; where it has mistakes, the defaults, with the mistakes among the warnings: the
/// window opens all the same.
Config configOrDefaults(const Arguments& arguments) {
    Result<Config> config = configFor(arguments);
    if (config) {
        return std::move(*config);
    }
    Config defaults;
    defaults.warnings.push_back(config.error().message + " (the defaults are used)");
    return defaults;
}

}  // namespace

int runDesktop(int argc, char** argv) {
    const auto start = std::chrono::steady_clock::now();
    Result<DesktopOptions> options = parseOptions(std::vector<std::string>(argv + 1, argv + argc));
    if (!options) {
        return complain(options.error().message, 2);
    }
    if (options->arguments.help) {
        fmt::print("{}", kHelp);
        return 0;
    }
    if (!hasDisplay()) {
        return complain(
            "there is no display (DISPLAY and WAYLAND_DISPLAY are not set): belvedere chat works "
            "in the terminal",
            1);
    }
    options->start = start;
    std::error_code ignored;  // the store tells what is wrong with the folder
    std::filesystem::create_directories(dataDir(), ignored);
    configureLog(
        {logLevelFromEnvironment(LogLevel::Warn), std::filesystem::is_directory(dataDir(), ignored)
                                                      ? (dataDir() / "window.log").string()
                                                      : ""});
    std::signal(SIGPIPE, SIG_IGN);
    qInstallMessageHandler(onQtMessage);

    int qt_argc = 1;  // options of Qt's own come by its environment variables
    QApplication qt(qt_argc, argv);
    QApplication::setApplicationName(QStringLiteral("belvedere"));
    QApplication::setApplicationDisplayName(QStringLiteral("Belvedere"));
    QApplication::setDesktopFileName(QStringLiteral("belvedere"));
    QApplication::setStyle(QStringLiteral("Fusion"));
    const Config config = configOrDefaults(options->arguments);
    Result<std::unique_ptr<Application>> application =
        Application::create(std::move(*options), config, makeBackend(config));
    if (!application) {
        return complain(application.error().message, 1);
    }
    (*application)->start();
    return QApplication::exec();
}

}  // namespace belvedere::app
