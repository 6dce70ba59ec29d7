// SPDX-License-Identifier: Apache-2.0
#include "app/headless/paths.h"

#include <cstdlib>
#include <string_view>
#include <system_error>

namespace belvedere::app {
namespace {

namespace fs = std::filesystem;

std::string_view environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
}

/// The base directory specification of freedesktop.org: relative values are ignored.
fs::path baseDir(const char* variable, const char* below_home) {
    const fs::path named(environment(variable));
    return named.is_absolute() ? named : fs::path(environment("HOME")) / below_home;
}

fs::path programDir() {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

}  // namespace

fs::path dataDir() {
    const std::string_view named = environment("BV_DATA_DIR");
    return named.empty() ? baseDir("XDG_DATA_HOME", ".local/share") / "belvedere" : fs::path(named);
}

fs::path configFile() {
    return baseDir("XDG_CONFIG_HOME", ".config") / "belvedere" / "config.json";
}

fs::path resourceDir() {
    const fs::path installed = programDir() / ".." / "share" / "belvedere";
    std::error_code ignored;
    return fs::is_directory(installed, ignored) ? installed : fs::path(BV_RESOURCE_DIR);
}

fs::path siblingProgram(const char* name) {
    return programDir() / name;
}

bool canOpenWindow() {
    std::error_code ignored;
    return (!environment("DISPLAY").empty() || !environment("WAYLAND_DISPLAY").empty()) &&
           fs::exists(siblingProgram(kWindowProgram), ignored);
}

}  // namespace belvedere::app
