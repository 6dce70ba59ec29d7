// SPDX-License-Identifier: Apache-2.0
// doctor: what this machine is and what the program found on it; the first thing to put into a bug
// report.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/headless/cli.h"
#include "app/headless/model_library.h"
#include "app/headless/paths.h"
#include "inference/inspect.h"

namespace belvedere::app {
namespace {

namespace fs = std::filesystem;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

/// A line of /proc/meminfo in bytes; 0 where it is not there.
uint64_t memoryInfo(const std::string& name) {
    std::ifstream in("/proc/meminfo");
    std::string key;
    uint64_t kib = 0;
    for (std::string rest; in >> key >> kib; std::getline(in, rest)) {
        if (key == name + ":") {
            return kib * 1024;
        }
    }
    return 0;
}

std::string findProgram(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::string folders = path == nullptr ? "" : path;
    for (size_t begin = 0; begin <= folders.size();) {
        const size_t end = std::min(folders.find(':', begin), folders.size());
        const fs::path file = fs::path(folders.substr(begin, end - begin)) / name;
        if (access(file.c_str(), X_OK) == 0) {
            return file.string();
        }
        begin = end + 1;
    }
    return "not found";
}

std::string folderState(const fs::path& folder) {
    std::error_code error;
    if (!fs::exists(folder, error)) {
        return folder.string() + " (made at first use)";
    }
    if (access(folder.c_str(), W_OK) != 0) {
        return folder.string() + " (READ-ONLY: set BV_DATA_DIR to a folder that can be written)";
    }
    const fs::space_info space = fs::space(folder, error);
    return fmt::format("{} ({:.1f} GiB free)", folder.string(),
                       static_cast<double>(space.available) / kGiB);
}

std::string displayState() {
    const char* display = std::getenv("DISPLAY");
    const char* wayland = std::getenv("WAYLAND_DISPLAY");
    std::string text = display != nullptr && *display != '\0' ? fmt::format("X11 {}", display) : "";
    if (wayland != nullptr && *wayland != '\0') {
        text += fmt::format("{}Wayland {}", text.empty() ? "" : ", ", wayland);
    }
    return text.empty() ? "none: the terminal programs work, the window and the screen tools do not"
                        : text;
}

std::string modelState() {
    const Result<ModelLibrary> library = ModelLibrary::open(resourceDir(), dataDir());
    if (!library) {
        return library.error().message;
    }
    return fmt::format(
        "{}: {}", library->manifest().name,
        library->isInstalled() ? "installed" : "not installed: run belvedere models fetch");
}

}  // namespace

Result<void> runDoctor(const Arguments& arguments, std::stop_token /*stop*/) {
    const inference::ComputeInfo compute = BV_TRY(inference::computeInfo());
    const nlohmann::ordered_json report = {
        {"version", BV_VERSION},
        {"cpu", compute.cpu},
        {"cpu features", compute.cpu_features},
        {"instruction set", compute.instruction_set},
        {"cores", compute.n_cores},
        {"gpu", compute.gpu},
        {"memory", fmt::format("{:.1f} GiB, {:.1f} GiB available",
                               static_cast<double>(memoryInfo("MemTotal")) / kGiB,
                               static_cast<double>(memoryInfo("MemAvailable")) / kGiB)},
        {"display", displayState()},
        {"sandbox helper",
         "bwrap " + findProgram("bwrap") + " (commands run unconfined for now: each one asks)"},
        {"pip for models", findProgram("python3")},
        {"default model", modelState()},
        {"data folder", folderState(dataDir())},
        {"config file",
         configFile().string() + (fs::exists(configFile()) ? "" : " (none: defaults)")},
        {"resources", resourceDir().string()},
    };
    if (arguments.json) {
        fmt::print("{}\n", report.dump());
        return {};
    }
    for (const auto& [key, value] : report.items()) {
        fmt::print("{:<16} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
    }
    return {};
}

}  // namespace belvedere::app
