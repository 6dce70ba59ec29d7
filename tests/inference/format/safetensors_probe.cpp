// SPDX-License-Identifier: Apache-2.0
#include "tests/inference/format/safetensors_probe.h"

#include "inference/format/byte_cursor.h"
#include "inference/format/safetensors.h"
#include "inference/format/unique_json.h"
#include "inference/model/checkpoint_config.h"
#include "inference/model/checkpoint_tensors.h"

namespace belvedere::testing {

using namespace inference;  // the file is about it

namespace {

void touch(std::span<const std::byte> bytes) {
    volatile unsigned sum = 0;
    for (const std::byte byte : bytes) {
        sum = sum + static_cast<unsigned>(byte);
    }
}

}  // namespace

Result<void> readSafetensors(std::span<const std::byte> bytes) {
    const SafetensorsFile file = BV_TRY(SafetensorsFile::parse(bytes, "probe"));
    CheckpointTensors tensors;
    for (const SafetensorsEntry& entry : file.entries()) {
        touch(entry.bytes);
        const CheckpointName name = parseCheckpointName(entry.name);
        static_cast<void>(publishedName(entry.name));
        BV_TRY(tensors.add({&entry, &file}, name));
    }
    for (const ModelTensor& tensor : BV_TRY(tensors.join())) {
        for (const TensorPiece& piece : tensor.pieces) {
            touch(piece.bytes);
            touch(piece.scales);
        }
    }
    return {};
}

Result<void> readConfigJson(std::span<const std::byte> bytes) {
    constexpr int kDepth = 16;
    const nlohmann::json json = BV_TRY(parseUniqueJson(asText(bytes), "the config", kDepth));
    const CheckpointConfig config = BV_TRY(readCheckpointConfig(json, "probe"));
    ModelConfig model = config.model;
    BV_TRY(applyOverrides("probe", {}, model));
    static_cast<void>(ropeFrequencies(model.rope, model.rope.divisors));
    return {};
}

}  // namespace belvedere::testing
