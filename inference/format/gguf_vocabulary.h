// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tokenizer's facts as a GGUF states them (keys tokenizer.ggml.*). Any thread.

#include "inference/format/gguf.h"
#include "inference/tokenizer/vocabulary.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// Errors: Corrupt where a key has another type than the format says, arrays differ in length or an
/// id is no token.
[[nodiscard]] Result<VocabularyData> vocabularyFromGguf(const GgufFile& file);

}  // namespace belvedere::inference
