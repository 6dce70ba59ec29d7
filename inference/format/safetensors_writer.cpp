// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <numeric>

#include <nlohmann/json.hpp>

#include "inference/format/partial_file.h"
#include "inference/format/safetensors.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

std::span<const std::byte> bytesOf(const OutputTensor& tensor) {
    return std::visit([](const auto& values) { return std::as_bytes(std::span(values)); },
                      tensor.values);
}

/// The length of the header and the header, padded to 8 bytes.
std::string headerOf(std::span<const OutputTensor> tensors) {
    nlohmann::ordered_json header;
    size_t begin = 0;
    for (const OutputTensor& tensor : tensors) {
        const size_t n_bytes = bytesOf(tensor).size();
        BV_CHECK(std::accumulate(tensor.shape.begin(), tensor.shape.end(), sizeof(float),
                                 std::multiplies<>()) == n_bytes);
        header[tensor.name] = {
            {"dtype", std::holds_alternative<std::vector<float>>(tensor.values) ? "F32" : "I32"},
            {"shape", tensor.shape},
            {"data_offsets", {begin, begin + n_bytes}}};
        begin += n_bytes;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t n_header = text.size();
    return std::string(reinterpret_cast<const char*>(&n_header), sizeof(n_header)) + text;
}

}  // namespace

Result<void> writeSafetensorsFile(const std::string& path, std::span<const OutputTensor> tensors) {
    const std::string header = headerOf(tensors);
    uint64_t n_bytes = header.size();
    for (const OutputTensor& tensor : tensors) {
        n_bytes += bytesOf(tensor).size();
    }
    PartialFile file(path, PartialFile::Readers::Everybody);
    BV_TRY(file.open(n_bytes));
    BV_TRY(file.write(std::as_bytes(std::span(header)), 0));
    uint64_t begin = header.size();
    for (const OutputTensor& tensor : tensors) {
        BV_TRY(file.write(bytesOf(tensor), begin));
        begin += bytesOf(tensor).size();
    }
    return file.finish(n_bytes);
}

}  // namespace belvedere::inference
