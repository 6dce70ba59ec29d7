// SPDX-License-Identifier: Apache-2.0
#include "inference/format/safetensors_folder.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "inference/format/printable.h"
#include "inference/format/text_file.h"
#include "inference/format/unique_json.h"

namespace belvedere::inference {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr size_t kMaxParts = 100'000;
constexpr int kMaxIndexDepth = 4;

using Index = std::map<std::string, std::vector<std::string>>;  // part -> names of its tensors

bool isPlainName(const std::string& part) {
    const auto is_plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    };
    return part.size() <= 255 && part.ends_with(".safetensors") && !part.starts_with('.') &&
           std::all_of(part.begin(), part.end(), is_plain);
}

Result<Index> readIndex(const fs::path& path) {
    const std::string text = BV_TRY(readTextFile(path));
    Result<nlohmann::json> json = parseUniqueJson(text, "the index", kMaxIndexDepth);
    if (!json.has_value()) {
        return failWithContext(std::move(json).error(), path.string());
    }
    const auto map = json->find("weight_map");
    if (map == json->end() || !map->is_object() || map->empty()) {
        return fail(ErrorCode::Corrupt, "{}: weight_map is missing or empty", path.string());
    }
    Index index;
    for (const auto& [name, part] : map->items()) {
        if (!part.is_string() || !isPlainName(part.get_ref<const std::string&>())) {
            return fail(ErrorCode::Corrupt,
                        "{}: weight_map[\"{}\"] is {}, expected the name of a .safetensors file in "
                        "the same folder",
                        path.string(), printable(name), printable(part.dump()));
        }
        index[part.get<std::string>()].push_back(name);
    }
    if (index.size() > kMaxParts) {
        return fail(ErrorCode::Corrupt, "{}: {} parts", path.string(), index.size());
    }
    return index;
}

/// A part that is a link may lead elsewhere in the folder, or into the blobs of a Hugging Face
/// cache, which keeps its files there (models--X/snapshots/Y/part -> models--X/blobs/hash).
Result<void> refuseEscape(const fs::path& folder, const fs::path& part) {
    std::error_code error;
    const fs::path real = fs::canonical(part, error);
    if (error) {
        return {};  // opening it says what is wrong
    }
    const fs::path home = fs::canonical(folder, error);
    const fs::path blobs = home.parent_path().parent_path() / "blobs";
    if (real.parent_path() != home && real.parent_path() != blobs) {
        return fail(ErrorCode::Corrupt, "{}: a link that leaves the folder: {}", part.string(),
                    real.string());
    }
    return {};
}

}  // namespace

Result<SafetensorsFolder> SafetensorsFolder::open(const fs::path& folder) {
    SafetensorsFolder opened;
    std::error_code error;
    if (fs::exists(folder / kIndexFile, error)) {
        BV_TRY(opened.openIndexed(folder, folder / kIndexFile));
        return opened;
    }
    if (!fs::exists(folder / kSingleFile, error)) {
        return fail(ErrorCode::NotFound, "{}: there is neither {} nor {}", folder.string(),
                    kSingleFile, kIndexFile);
    }
    BV_TRY(refuseEscape(folder, folder / kSingleFile));
    opened.files_.push_back(std::make_unique<SafetensorsFile>(
        BV_TRY(SafetensorsFile::open((folder / kSingleFile).string()))));
    for (const SafetensorsEntry& entry : opened.files_[0]->entries()) {
        opened.tensors_.push_back({&entry, opened.files_[0].get()});
    }
    return opened;
}

Result<void> SafetensorsFolder::openIndexed(const fs::path& folder, const fs::path& index) {
    for (const auto& [part, names] : BV_TRY(readIndex(index))) {
        BV_TRY(refuseEscape(folder, folder / part));
        Result<SafetensorsFile> file = SafetensorsFile::open((folder / part).string());
        if (!file.has_value()) {
            return failWithContext(std::move(file).error(), index.string());
        }
        files_.push_back(std::make_unique<SafetensorsFile>(std::move(*file)));
        std::unordered_map<std::string_view, const SafetensorsEntry*> entries;
        for (const SafetensorsEntry& entry : files_.back()->entries()) {
            entries.emplace(entry.name, &entry);
        }
        for (const std::string& name : names) {
            const auto found = entries.find(name);
            if (found == entries.end()) {
                return fail(ErrorCode::Corrupt,
                            "{}: tensor {} is not in {}, where the index has it", index.string(),
                            printable(name), part);
            }
            tensors_.push_back({found->second, files_.back().get()});
        }
        if (entries.size() > names.size()) {
            notices_.push_back(fmt::format("{} holds {} tensors that the index does not list", part,
                                           entries.size() - names.size()));
        }
    }
    return {};
}

uint64_t SafetensorsFolder::fileBytes() const {
    uint64_t n_bytes = 0;
    for (const std::unique_ptr<SafetensorsFile>& file : files_) {
        n_bytes += file->mapping()->bytes().size();
    }
    return n_bytes;
}

Result<void> SafetensorsFolder::checkWhole() const {
    for (const std::unique_ptr<SafetensorsFile>& file : files_) {
        BV_TRY(file->mapping()->checkWhole());
    }
    return {};
}

}  // namespace belvedere::inference
