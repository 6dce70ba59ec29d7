// SPDX-License-Identifier: Apache-2.0
// Writes tests/fuzz/corpus/gguf: build/fuzz/bin/make_gguf_corpus tests/fuzz/corpus/gguf
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/inference/format/sparse_model.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/tiny_model.h"

namespace {

using namespace belvedere::testing;

/// One of every kind of value, and two tensors.
GgufBuilder everyType() {
    GgufBuilder builder;
    builder.version = 2;
    builder.alignment = 64;
    builder.addUint32("general.alignment", 64);
    builder.addRaw("a", 0, rawBytes(uint8_t{1}));
    builder.addRaw("b", 1, rawBytes(int8_t{-1}));
    builder.addRaw("c", 2, rawBytes(uint16_t{2}));
    builder.addRaw("d", 3, rawBytes(int16_t{-2}));
    builder.addRaw("e", 5, rawBytes(int32_t{-3}));
    builder.addFloat("f", 0.5F);
    builder.addBool("g", true);
    builder.addUint64("h", 4);
    builder.addRaw("i", 11, rawBytes(int64_t{-4}));
    builder.addRaw("j", 12, rawBytes(0.25));
    builder.addStrings("k", {"x", ""});
    builder.addRaw("l", 9, rawBytes(uint32_t{6}) + rawBytes(uint64_t{1}) + rawBytes(1.5F));
    builder.addTensor("m", 39, {32, 2}, std::string(34, '\x11'));
    builder.addTensor("n", 30, {3}, std::string(6, '\x11'));
    return builder;
}

/// The other kind of tokenizer: scores and byte tokens.
GgufBuilder sentencePiece() {
    GgufBuilder builder;
    builder.addString("general.architecture", "llama");
    builder.addString("tokenizer.ggml.model", "llama");
    builder.addStrings("tokenizer.ggml.tokens",
                       {"<unk>", "<s>", "</s>", "<0x0A>", "\xE2\x96\x81", "a",
                        "\xE2\x96\x81"
                        "a"});
    const int32_t types[] = {2, 3, 3, 6, 1, 1, 1};
    builder.addInts("tokenizer.ggml.token_type", types);
    std::string scores = rawBytes(uint32_t{6}) + rawBytes(uint64_t{7});
    for (int i = 0; i < 7; ++i) {
        scores += rawBytes(static_cast<float>(-i));
    }
    builder.addRaw("tokenizer.ggml.scores", 9, scores);
    builder.addUint32("tokenizer.ggml.unknown_token_id", 0);
    builder.addUint32("tokenizer.ggml.bos_token_id", 1);
    builder.addUint32("tokenizer.ggml.eos_token_id", 2);
    return builder;
}

void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: make_gguf_corpus FOLDER\n", stderr);
        return 2;
    }
    const std::string folder = std::string(argv[1]) + "/";
    TinyModelOptions options;
    options.n_layers = 1;
    options.context_tokens = 64;
    write(folder + "model.gguf", tinyModel(options));
    write(folder + "sparse.gguf", sparseModel());
    write(folder + "adapter.gguf", tinyAdapter(options));
    options.weights = false;
    write(folder + "vocabulary.gguf", tinyModel(options));
    write(folder + "every_type.gguf", everyType().build());
    write(folder + "sentence_piece.gguf", sentencePiece().build());
    return 0;
}
