// SPDX-License-Identifier: Apache-2.0
#include "inference/vision/codecs.h"

#include <filesystem>

#include <dlfcn.h>

namespace belvedere::inference {

Result<const CodecModule*> loadCodecs() {
    namespace fs = std::filesystem;
    const fs::path built = BV_CODEC_MODULE;
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    for (const fs::path& path : {program.parent_path() / built.filename(), built}) {
        void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        void* symbol = module != nullptr ? ::dlsym(module, kCodecModuleSymbol) : nullptr;
        if (symbol != nullptr) {
            return static_cast<const CodecModule*>(symbol);
        }
    }
    const char* reason = ::dlerror();
    return fail(ErrorCode::Unsupported, "images and videos cannot be decoded: {}",
                reason != nullptr ? reason : built.string().c_str());
}

RgbImage toRgb(const Pixels& pixels) {
    RgbImage image{{pixels.n_columns, pixels.n_rows},
                   std::vector<uint8_t>(pixels.n_rows * pixels.n_columns * 3)};
    uint8_t* out = image.rgb.data();
    for (size_t row = 0; row < pixels.n_rows; ++row) {
        const uint8_t* in = pixels.bgr + row * pixels.row_bytes;
        for (size_t column = 0; column < pixels.n_columns; ++column, in += 3, out += 3) {
            out[0] = in[2];
            out[1] = in[1];
            out[2] = in[0];
        }
    }
    return image;
}

}  // namespace belvedere::inference
