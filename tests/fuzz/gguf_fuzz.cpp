// SPDX-License-Identifier: Apache-2.0
// Any bytes as GGUF: refused with a message, or a model that decodes a token, or an adapter of a
// tiny model. The files of the corpus are written by make_gguf_corpus.cpp.
#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "inference/format/gguf.h"
#include "inference/model/adapter.h"
#include "inference/model/gguf_source.h"
#include "inference/model/weights.h"
#include "kernels/base/check.h"
#include "tests/inference/format/model_probe.h"
#include "tests/support/tiny_model.h"

namespace {

using namespace belvedere;
using namespace belvedere::inference;

/// Bytes as a file in memory: what loads models maps files.
class MemoryFile {
  public:
    explicit MemoryFile(std::span<const std::byte> bytes)
        : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
        BV_CHECK(descriptor_ >= 0);
        BV_CHECK(::write(descriptor_, bytes.data(), bytes.size()) ==
                 static_cast<ssize_t>(bytes.size()));
    }

    ~MemoryFile() { ::close(descriptor_); }

    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    [[nodiscard]] std::string path() const {
        return "/proc/self/fd/" + std::to_string(descriptor_);
    }

  private:
    int descriptor_;
};

void checkError(const Error& error) {
    BV_CHECK(!error.message.empty() && error.code != ErrorCode::Internal);
}

const ModelSource& base() {
    static const std::string bytes = [] {
        testing::TinyModelOptions options;
        options.n_layers = 1;
        return testing::tinyModel(options);
    }();
    static const GgufSource source(*GgufFile::parse(std::as_bytes(std::span(bytes)), "base"));
    return source;
}

void useAsAdapter(const std::string& path) {
    AdapterSet adapters;
    const auto added = adapters.add(path, 0.5F, base());
    if (!added.has_value()) {
        checkError(added.error());
        return;
    }
    const auto config = base().config(adapters.overrides());
    if (config.has_value()) {
        static_cast<void>(checkTensors(base(), adapters, *config));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are bytes.
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    const auto read = testing::readModel(bytes);
    if (read.has_value()) {
        const MemoryFile file(bytes);
        const auto decoded = testing::decodeOneToken(file.path());
        if (!decoded.has_value()) {
            checkError(decoded.error());
        }
        return 0;
    }
    checkError(read.error());
    const auto file = GgufFile::parse(bytes, "fuzz.gguf");
    if (file.has_value() && file->findValue("adapter.type") != nullptr) {
        useAsAdapter(MemoryFile(bytes).path());
    }
    return 0;
}
