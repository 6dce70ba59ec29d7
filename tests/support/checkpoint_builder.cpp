// SPDX-License-Identifier: Apache-2.0
#include "tests/support/checkpoint_builder.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <fmt/core.h>

#include "kernels/base/check.h"

namespace belvedere::testing {
namespace {

void writeFile(const std::filesystem::path& path, const std::string& bytes) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

std::string CheckpointBuilder::nameEnding(const std::string& suffix) const {
    const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) {
        return tensor.first.ends_with(suffix);
    });
    BV_CHECK(found != tensors.end());
    return found->first;
}

StoredTensor& CheckpointBuilder::ending(const std::string& suffix) {
    return tensors.at(nameEnding(suffix));
}

std::string CheckpointBuilder::write(const std::filesystem::path& folder) const {
    writeFile(folder / "config.json", config.dump(1));
    writeFile(folder / "model.safetensors", safetensorsBytes(tensors));
    return folder.string();
}

std::string CheckpointBuilder::writeSharded(const std::filesystem::path& folder,
                                            size_t n_parts) const {
    std::vector<std::map<std::string, StoredTensor>> parts(n_parts);
    nlohmann::json map;
    size_t next = 0;
    for (const auto& [name, tensor] : tensors) {
        const size_t part = next++ % n_parts;
        parts[part].emplace(name, tensor);
        map[name] = fmt::format("model-{:05}-of-{:05}.safetensors", part + 1, n_parts);
    }
    for (size_t part = 0; part < n_parts; ++part) {
        writeFile(folder / fmt::format("model-{:05}-of-{:05}.safetensors", part + 1, n_parts),
                  safetensorsBytes(parts[part]));
    }
    writeFile(folder / "model.safetensors.index.json",
              nlohmann::json{{"metadata", {{"total_size", 0}}}, {"weight_map", map}}.dump());
    writeFile(folder / "config.json", config.dump(1));
    return folder.string();
}

std::string readFile(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    BV_CHECK(file.good());
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string safetensorsBytes(const std::map<std::string, StoredTensor>& tensors) {
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    for (const auto& [name, tensor] : tensors) {
        header[name] = {{"dtype", tensor.dtype},
                        {"shape", tensor.shape},
                        {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
        data += tensor.bytes;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t n_header = text.size();
    return std::string(reinterpret_cast<const char*>(&n_header), sizeof(n_header)) + text + data;
}

}  // namespace belvedere::testing
