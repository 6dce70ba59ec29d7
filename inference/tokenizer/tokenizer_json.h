// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the tokenizer.json of a Hugging Face model: byte-level BPE with a known split pattern.
// Every other component is refused by name, never approximated. Any thread.

#include <string_view>

#include "inference/tokenizer/vocabulary.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// `config_json`: the text of tokenizer_config.json (names of bos, eos, unk and pad,
/// add_bos_token), empty if there is none. Errors: Corrupt for JSON that is broken or of the wrong
/// shape, Unsupported for a component we do not know.
[[nodiscard]] Result<VocabularyData> fromTokenizerJson(std::string_view json,
                                                       std::string_view config_json = {});

}  // namespace belvedere::inference
