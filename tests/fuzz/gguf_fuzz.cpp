// SPDX-License-Identifier: Apache-2.0
// Any bytes as GGUF: an error, or a file whose config, tensors and vocabulary can be read.
#include <cstddef>
#include <cstdint>

#include "inference/format/gguf.h"
#include "inference/format/gguf_vocabulary.h"
#include "inference/model/adapter.h"
#include "inference/model/model.h"
#include "inference/model/model_config.h"
#include "inference/model/weights.h"
#include "inference/tokenizer/tokenizer.h"

namespace {

using namespace belvedere;
using namespace belvedere::inference;

void readModel(const GgufFile& file) {
    static_cast<void>(describeFile(file));
    const auto config = modelConfigFromGguf(file);
    if (config) {
        static_cast<void>(checkTensors(file, AdapterSet(), *config));
        static_cast<void>(ropeDivisors(file, AdapterSet(), *config));
    }
    auto vocabulary = vocabularyFromGguf(file);
    if (!vocabulary) {
        return;
    }
    const auto tokenizer = Tokenizer::create(std::move(*vocabulary));
    if (tokenizer) {
        static_cast<void>(
            (*tokenizer)->encode("it's 12 \xFF <s> ab\r\n", SpecialTokens::Recognise));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are bytes.
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    const auto file = GgufFile::parse(bytes, "fuzz.gguf");
    if (file) {
        readModel(*file);
    }
    return 0;
}
