// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the program's files stand. Pure functions of the environment; any thread.

#include <filesystem>

namespace belvedere::app {

/// $BV_DATA_DIR, else $XDG_DATA_HOME/belvedere, else ~/.local/share/belvedere: sessions, models,
/// indexes, the log.
[[nodiscard]] std::filesystem::path dataDir();

/// $XDG_CONFIG_HOME/belvedere/config.json, else below ~/.config.
[[nodiscard]] std::filesystem::path configFile();

/// Where the files of resources/ stand: beside an installed program, else the source tree it was
/// built from.
[[nodiscard]] std::filesystem::path resourceDir();

inline constexpr const char* kWindowProgram = "belvedere-desktop";

/// The file of a program that stands beside this one.
[[nodiscard]] std::filesystem::path siblingProgram(const char* name);

/// True where a window can be opened: a display is named and the window's program stands beside
/// this one.
[[nodiscard]] bool canOpenWindow();

}  // namespace belvedere::app
