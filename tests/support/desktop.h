// SPDX-License-Identifier: Apache-2.0
#pragma once

// The whole window over a data folder of its own, with a scripted model in place of the engine; the
// store, the folder and the tools are real. GUI thread only.

#include <QApplication>
#include <QString>
#include <functional>
#include <memory>

#include "app/application.h"
#include "tests/support/fake_language_model.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {

struct DesktopSetup {
    bool has_model = true;   ///< else the default model is not installed
    bool has_folder = true;  ///< a small folder of sources is attached
    bool is_dark = false;
    bool uses_real_model = false;  ///< the installed default model instead of the script
};

class Desktop {
  public:
    explicit Desktop(const DesktopSetup& setup);
    ~Desktop();

    /// Starts (again: the same data folder, as after closing the program) and waits until the
    /// window can be used. False where it does not come to that within a minute.
    [[nodiscard]] bool start();
    void close();

    [[nodiscard]] app::Application& application() { return *application_; }

    [[nodiscard]] app::MainWindow& window() { return application_->window(); }

    [[nodiscard]] FakeLanguageModel& model() { return *model_; }

    [[nodiscard]] QString folder() const;

    /// The child of the window that has this name.
    template <class T>
    [[nodiscard]] T* find(const char* name) {
        return window().findChild<T*>(QString::fromLatin1(name));
    }

    template <class T>
    [[nodiscard]] T* find() {
        return window().findChild<T*>();
    }

  private:
    [[nodiscard]] app::Backend backend(const app::Config& config);

    DesktopSetup setup_;
    TempDir dir_;
    std::shared_ptr<FakeLanguageModel> model_;
    std::unique_ptr<app::Application> application_;
};

/// Runs the event loop until the condition holds; false after a minute.
[[nodiscard]] bool waitUntil(const std::function<bool()>& condition);

/// What main() of the program sets before its first window.
void prepareApplication();

}  // namespace belvedere::testing
