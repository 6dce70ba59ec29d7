// SPDX-License-Identifier: Apache-2.0
#pragma once

// A complete model of a few ten kB, made from a seed: a llama with 2 layers, a byte-level tokenizer
// (256 bytes, a few merges, ChatML markers) and a ChatML template. It talks nonsense, but the same
// nonsense every time. Tests only.
//
//     const auto path = dir.write("tiny.gguf", tinyModel());

#include <cstdint>
#include <string>

#include "tests/support/gguf_builder.h"

namespace belvedere::testing {

struct TinyModelOptions {
    uint64_t seed = 1;
    uint32_t n_layers = 2;
    uint32_t context_tokens = 512;
    bool quantized = true;        ///< Q8_0 matrices, else F32
    bool chat_template = true;    ///< else the engine's built-in ChatML serves
    bool weights = true;          ///< else a vocabulary-only file
    uint32_t n_padding_rows = 0;  ///< rows of the embedding that are no tokens
};

/// The bytes of the file.
[[nodiscard]] std::string tinyModel(const TinyModelOptions& options = {});

/// The same, still open for additions.
[[nodiscard]] GgufBuilder tinyModelBuilder(const TinyModelOptions& options = {});

/// A LoRA adapter of rank 4 on every matrix of that model, which also replaces the first norm and
/// the RoPE base.
[[nodiscard]] std::string tinyAdapter(const TinyModelOptions& base = {}, uint64_t seed = 2);

}  // namespace belvedere::testing
